#pragma once

#include <cstdio>
#include <ext/stdio_sync_filebuf.h>
#include <functional>
#include <map>
#include <streambuf>
#include <string>

namespace rnic::testbench {

/// While it is there, what goes to the standard streams (of C and of C++) comes a line at a time, each behind the name
/// of whose it is: programs of one process have these streams together. One at a time.
class ProgramOutput {
 public:
  /// `name_of_caller`: whose the output is; empty: nobody's, it goes as it is.
  explicit ProgramOutput(std::function<std::string()> name_of_caller);
  /// What was no whole line becomes one.
  ~ProgramOutput();
  ProgramOutput(const ProgramOutput&) = delete;
  ProgramOutput& operator=(const ProgramOutput&) = delete;

 private:
  static ssize_t write(void* self, const char* text, std::size_t bytes);
  void take(const char* text, std::size_t bytes);

  const std::function<std::string()> name_of_caller_;
  std::map<std::string, std::string> lines_;  ///< That have not ended, by name
  std::FILE* const out_;
  std::FILE* const errors_;
  std::FILE* const named_;
  __gnu_cxx::stdio_sync_filebuf<char> buffer_;
  std::streambuf* const cout_;
  std::streambuf* const cerr_;
};

}  // namespace rnic::testbench
