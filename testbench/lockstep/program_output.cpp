#include "testbench/lockstep/program_output.hpp"

#include <cerrno>
#include <iostream>
#include <system_error>
#include <utility>

namespace rnic::testbench {
namespace {

std::FILE* open_cookie(void* cookie, cookie_write_function_t* write) {
  std::FILE* const file =
      fopencookie(cookie, "w", {.read = nullptr, .write = write, .seek = nullptr, .close = nullptr});
  if (file == nullptr) throw std::system_error(errno, std::generic_category(), "fopencookie");
  // Or the lines of one program would wait among those of another.
  std::setvbuf(file, nullptr, _IONBF, 0);
  return file;
}

}  // namespace

ProgramOutput::ProgramOutput(std::function<std::string()> name_of_caller)
    : name_of_caller_(std::move(name_of_caller)),
      out_(stdout),
      errors_(stderr),
      named_(open_cookie(this, write)),
      buffer_(named_),
      cout_(std::cout.rdbuf(&buffer_)),
      cerr_(std::cerr.rdbuf(&buffer_)) {
  stdout = stderr = named_;
}

ProgramOutput::~ProgramOutput() {
  stdout = out_;
  stderr = errors_;
  std::cout.rdbuf(cout_);
  std::cerr.rdbuf(cerr_);
  std::fclose(named_);
  for (const auto& [name, rest] : lines_)
    if (!rest.empty()) std::fprintf(out_, "%s | %s\n", name.c_str(), rest.c_str());
  std::fflush(out_);
}

ssize_t ProgramOutput::write(void* self, const char* text, std::size_t bytes) {
  static_cast<ProgramOutput*>(self)->take(text, bytes);
  return static_cast<ssize_t>(bytes);
}

void ProgramOutput::take(const char* text, std::size_t bytes) {
  const std::string name = name_of_caller_();
  if (name.empty()) {
    std::fwrite(text, 1, bytes, out_);
  } else {
    std::string& line = lines_[name];
    line.append(text, bytes);
    for (std::size_t end = 0; (end = line.find('\n')) != std::string::npos; line.erase(0, end + 1))
      std::fprintf(out_, "%s | %s\n", name.c_str(), line.substr(0, end).c_str());
  }
  std::fflush(out_);
}

}  // namespace rnic::testbench
