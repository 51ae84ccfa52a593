#include "testbench/gtkwave_view.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <ios>
#include <system_error>

namespace rnic::testbench {
namespace {

/// "@flags" of a save file hold for what follows (GTKWave's analyzer.h): a number or bit, right-justified; shown
/// through a filter file; begin and end of a group, open or closed.
constexpr std::string_view kHex = "@22\n", kBit = "@28\n", kNames = "@100000028\n", kFiltered = "@2022\n",
                           kGroup = "@800200\n", kGroupEnd = "@1000200\n", kClosedGroup = "@c00200\n",
                           kClosedGroupEnd = "@1401200\n";

}  // namespace

GtkwaveView::GtkwaveView(const std::filesystem::path& fst, const std::string& top, std::uint64_t from_ps,
                         std::uint64_t to_ps, std::uint64_t mark_ps)
    : names_(std::filesystem::path(fst).replace_extension("names")),
      out_(std::filesystem::path(fst).replace_extension("gtkw")) {
  constexpr double kPixels = 900, kFrame = 200;  // of the waves, and of what GTKWave's zoom is about
  const double zoom = std::log2(std::max(1.0, kFrame * static_cast<double>(to_ps - from_ps) / kPixels));
  // The line with an asterisk: zoom, as minus log2 of picoseconds a frame; the primary marker; named markers A to Z.
  out_ << "[dumpfile] " << std::filesystem::absolute(fst) << "\n[timestart] " << from_ps << "\n[size] 1600 900\n"
       << "[pos] -1 -1\n*" << -zoom << ' ' << mark_ps << ' ' << mark_ps;
  constexpr int kNamedMarkers = 26;
  for (int i = 1; i < kNamedMarkers; ++i) out_ << " -1";
  out_ << "\n[treeopen] " << top.substr(0, top.rfind('.')) << ".\n[treeopen] " << top << ".\n"
       << "[sst_width] 240\n[signals_width] 420\n[sst_expanded] 1\n";
}

void GtkwaveView::begin(std::string_view title) { out_ << kGroup << '-' << title << '\n'; }
void GtkwaveView::end(std::string_view title) { out_ << kGroupEnd << '-' << title << '\n'; }

void GtkwaveView::add(const FstSignal& signal) {
  out_ << (signal.has_names ? kNames : signal.bits == 1 ? kBit : kHex) << signal.path() << signal.range << '\n';
}

void GtkwaveView::add_fields(const FstSignal& signal, const rtl::StreamFields& stream) {
  const std::string title = signal.name + ": fields";
  out_ << kClosedGroup << '-' << title << '\n';
  for (const auto& field : stream.fields) {
    if (!field.values.empty()) {
      use_names(field);
    } else {
      out_ << (field.width == 1 ? kBit : kHex);
    }
    // A vector under a name, made of bits of the signal, which count from the highest one down.
    out_ << "#{" << signal.name << '.' << field.name;
    if (field.width > 1) out_ << '[' << field.width - 1 << ":0]";
    out_ << '}';
    for (std::uint32_t i = 0; i < field.width; ++i)
      out_ << " (" << signal.bits - field.bit - field.width + i << ')' << signal.path() << signal.range;
    out_ << '\n';
  }
  out_ << kClosedGroupEnd << '-' << title << '\n';
}

/// Writes the filter file of a field's enumeration once, and has the next signal shown through it.
void GtkwaveView::use_names(const rtl::StreamField& field) {
  constexpr int kBitsADigit = 4;
  const int digits = (field.width + kBitsADigit - 1) / kBitsADigit;
  const std::string file = std::string(field.enumeration) + "." + std::to_string(digits) + ".txt";
  const auto [filter, is_new] = filters_.try_emplace(file, static_cast<unsigned>(filters_.size() + 1));
  const std::filesystem::path path = std::filesystem::absolute(names_ / file);
  if (is_new) {
    std::error_code error;  // without the file GTKWave shows numbers
    std::filesystem::create_directories(names_, error);
    std::ofstream text(path);
    text << std::hex << std::uppercase << std::setfill('0');
    for (const auto& [value, name] : field.values) text << std::setw(digits) << value << ' ' << name << '\n';
  }
  out_ << kFiltered << '^' << filter->second << ' ' << path.string() << '\n';
}

}  // namespace rnic::testbench
