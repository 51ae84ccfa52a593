#include "testbench/timeline/trace_file.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace rnic::testbench {
namespace {

/// Microseconds, with nanoseconds behind the point.
std::string us(std::uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

}  // namespace

TraceFile::TraceFile(const std::string& path, const TimelineWindow& window, std::uint64_t epoch_ps)
    : path_(path), file_(path), window_(window), epoch_ps_(epoch_ps) {
  if (!file_) throw std::runtime_error(fmt::format("cannot write timeline '{}'", path));
  file_ << "[";
}

bool TraceFile::outside(std::uint64_t from_ps, std::uint64_t to_ps) const {
  return ns(to_ps) < window_.from_ns || ns(from_ps) > window_.to_ns;
}

void TraceFile::event(std::string_view text) {
  file_ << (first_ ? "\n" : ",\n") << text;
  first_ = false;
}

void TraceFile::name_process(unsigned process, std::string_view name) {
  event(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":"{}"}}}})", process, name));
  event(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{0},"tid":0,"args":{{"sort_index":{0}}}}})",
                    process));
}

TraceFile::Track TraceFile::track(unsigned process, const std::string& name, unsigned order) {
  const auto [found, is_new] = tracks_.try_emplace({process, name}, static_cast<unsigned>(tracks_.size()) + 1);
  const Track track{process, found->second};
  if (!is_new) return track;
  event(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", process,
                    track.thread, name));
  event(fmt::format(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", process,
                    track.thread, order));
  return track;
}

void TraceFile::slice(Track track, std::uint64_t from_ps, std::uint64_t to_ps, std::string_view name,
                      std::string_view args) {
  if (to_ps < from_ps || outside(from_ps, to_ps)) return;
  event(fmt::format(R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})", name, track.process,
                    track.thread, us(ns(from_ps)), us(ns(to_ps) - ns(from_ps)), args));
}

void TraceFile::instant(Track track, std::uint64_t at_ps, std::string_view name, std::string_view args) {
  if (outside(at_ps, at_ps)) return;
  event(fmt::format(R"({{"ph":"i","name":"{}","pid":{},"tid":{},"ts":{},"s":"t","args":{{{}}}}})", name, track.process,
                    track.thread, us(ns(at_ps)), args));
}

void TraceFile::flow(Flow kind, Track track, std::uint64_t at_ps, std::uint64_t id) {
  if (outside(at_ps, at_ps)) return;
  event(fmt::format(R"({{"ph":"{}","name":"flow","cat":"flow","id":"{:#x}","pid":{},"tid":{},"ts":{}{}}})",
                    static_cast<char>(kind), id, track.process, track.thread, us(ns(at_ps)),
                    kind == Flow::kEnd ? R"(,"bp":"e")" : ""));
}

void TraceFile::close() {
  if (!file_.is_open()) return;
  file_ << "\n]\n";
  file_.close();
  if (!file_) throw std::runtime_error(fmt::format("cannot write timeline '{}'", path_));
}

}  // namespace rnic::testbench
