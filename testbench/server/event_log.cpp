#include "testbench/server/event_log.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include "driver/remote/protocol.hpp"

namespace rnic::testbench {
namespace {

const char* name_of(LogPlace place) {
  return place == LogPlace::kOwn ? "of the kernel driver" : place == LogPlace::kShared ? "of a ring" : "of a process";
}

const char* name_of(remote::FrameKind kind) {
  switch (kind) {
    case remote::FrameKind::kOpen: return "open";
    case remote::FrameKind::kClose: return "close";
    case remote::FrameKind::kCall: return "kernel call";
    case remote::FrameKind::kMap: return "map";
    case remote::FrameKind::kDescriptor: return "descriptor";
    case remote::FrameKind::kHello: break;
  }
  return "unknown";
}

}  // namespace

std::uint32_t log_checksum(std::span<const std::uint8_t> bytes, std::uint32_t before) {
  return bytes.empty() ? before : libdeflate_crc32(before, bytes.data(), bytes.size());
}

std::string describe(const LogRecord& record) {
  const auto dma = [&](const char* verb) {
    return fmt::format("host{} {} {} bytes {} at {:#x}{}", record.host, verb, record.length * 4, name_of(record.place),
                       record.address, record.good ? "" : ", which are not there");
  };
  switch (record.kind) {
    case LogKind::kAttach: return fmt::format("process {} comes to host{}", record.process, record.host);
    case LogKind::kDetach: return fmt::format("connection {} ends", record.session);
    case LogKind::kDoorbell:
      return fmt::format("connection {} rings: {} bytes at {:#x}", record.session, record.data.size(), record.address);
    case LogKind::kRequest:
      return fmt::format("request {} of connection {}: {}", record.number, record.session,
                         name_of(static_cast<remote::FrameKind>(record.code)));
    case LogKind::kLook: return "somebody asks for counters";
    case LogKind::kRest: return fmt::format("{} ps pass at rest", record.length);
    case LogKind::kFinish: return "the machine is told to end";
    case LogKind::kFailed: return "the simulation fails: " + std::string(record.data.begin(), record.data.end());
    case LogKind::kEnd: return "the machine has ended";
    case LogKind::kFrame: return fmt::format("{} bytes come in at socket {}", record.data.size(), record.socket);
    case LogKind::kReach:
      return fmt::format("{} bytes at {:#x} of address space {} are registered", record.length, record.address,
                         record.process);
    case LogKind::kDmaRead: return dma("reads");
    case LogKind::kDmaWrite: return dma("writes");
    case LogKind::kAnswer: return fmt::format("connection {} is answered to request {}", record.session, record.number);
  }
  return "nothing known";
}

}  // namespace rnic::testbench
