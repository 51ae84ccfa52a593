#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "model/time.hpp"

struct pcap;
struct pcap_dumper;

namespace rnic::model {

/// Writes Ethernet frames to a capture file with nanosecond time stamps (libpcap; link type Ethernet, no frame check
/// sequence).
class PcapWriter {
 public:
  /// Creates or overwrites `path`. Throws std::runtime_error, with the path and the reason, when it cannot be written.
  explicit PcapWriter(const std::string& path);
  /// Closes the file; errors at this point are lost, so call close first where they matter.
  ~PcapWriter();
  PcapWriter(const PcapWriter&) = delete;
  PcapWriter& operator=(const PcapWriter&) = delete;

  /// Appends a frame. Throws std::runtime_error when the file cannot be written, std::logic_error after close.
  void write(Picoseconds time, std::span<const std::uint8_t> frame);
  /// Makes all frames visible to readers of the file. Errors as write.
  void flush();
  /// Flushes and closes. Errors as write. Closing twice does nothing.
  void close();

  [[nodiscard]] std::uint64_t frames() const { return frames_; }

 private:
  void require_good();

  struct PcapClose {
    void operator()(pcap* handle) const;
  };
  struct DumperClose {
    void operator()(pcap_dumper* dumper) const;
  };
  std::string path_;
  std::unique_ptr<pcap, PcapClose> handle_;
  std::unique_ptr<pcap_dumper, DumperClose> dumper_;
  std::uint64_t frames_ = 0;
};

}  // namespace rnic::model
