#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include "testbench/fst_file.hpp"
#include "testbench/generated/stream_fields.hpp"

namespace rnic::testbench {

/// Save file of GTKWave beside an FST file, and in a folder waves.names beside it the filter files that show values of
/// fields by name. A file that cannot be written is left out.
class GtkwaveView {
 public:
  /// Shows the time from `from_ps` to `to_ps`, with the marker A at `mark_ps`. `top`: scope of rnic_top.
  GtkwaveView(const std::filesystem::path& fst, const std::string& top, std::uint64_t from_ps, std::uint64_t to_ps,
              std::uint64_t mark_ps);

  void begin(std::string_view title);
  /// A signal; values by name where the FST file has names.
  void add(const FstSignal& signal);
  /// The fields of a signal that carries a stream, each under its own name, in a closed group.
  void add_fields(const FstSignal& signal, const rtl::StreamFields& stream);
  void end(std::string_view title);

 private:
  void use_names(const rtl::StreamField& field);

  std::filesystem::path names_;
  std::ofstream out_;
  std::map<std::string, unsigned> filters_;  ///< Number of each filter file by its name
};

}  // namespace rnic::testbench
