#include "model/pcap_writer.hpp"

#include <pcap/pcap.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace rnic::model {
namespace {

constexpr int kSnapLength = 65535;
constexpr std::uint64_t kPicosecondsPerSecond = 1'000'000'000'000;

}  // namespace

void PcapWriter::PcapClose::operator()(pcap* handle) const { pcap_close(handle); }
void PcapWriter::DumperClose::operator()(pcap_dumper* dumper) const {
  pcap_dump_close(reinterpret_cast<pcap_dumper_t*>(dumper));
}

PcapWriter::PcapWriter(const std::string& path)
    : path_(path), handle_(pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kSnapLength, PCAP_TSTAMP_PRECISION_NANO)) {
  if (!handle_) throw std::runtime_error("cannot write capture file '" + path + "': libpcap has no memory");
  dumper_.reset(pcap_dump_open(handle_.get(), path.c_str()));
  if (!dumper_) throw std::runtime_error("cannot write capture file '" + path + "': " + pcap_geterr(handle_.get()));
}

PcapWriter::~PcapWriter() = default;

void PcapWriter::write(Picoseconds time, std::span<const std::uint8_t> frame) {
  if (!dumper_) throw std::logic_error("capture file '" + path_ + "' is closed");
  pcap_pkthdr header{};
  header.ts.tv_sec = static_cast<decltype(header.ts.tv_sec)>(time / kPicosecondsPerSecond);
  // With nanosecond precision the field counts nanoseconds.
  header.ts.tv_usec =
      static_cast<decltype(header.ts.tv_usec)>(time % kPicosecondsPerSecond / kPicosecondsPerNanosecond);
  header.caplen = header.len = static_cast<bpf_u_int32>(frame.size());
  errno = 0;
  pcap_dump(reinterpret_cast<u_char*>(dumper_.get()), &header, frame.data());
  require_good();
  ++frames_;
}

void PcapWriter::flush() {
  if (!dumper_) throw std::logic_error("capture file '" + path_ + "' is closed");
  errno = 0;
  static_cast<void>(pcap_dump_flush(dumper_.get()));
  require_good();
}

void PcapWriter::close() {
  if (!dumper_) return;
  flush();
  dumper_.reset();
}

void PcapWriter::require_good() {
  if (std::ferror(pcap_dump_file(dumper_.get())) == 0) return;
  throw std::runtime_error("cannot write capture file '" + path_ + "': " + std::strerror(errno));
}

}  // namespace rnic::model
