#include "driver/remote/remote_port.hpp"

#include <unistd.h>

#include <cstring>

#include "driver/remote/fork.hpp"
#include "driver/remote/machine_socket.hpp"
#include "driver/remote/status.hpp"

namespace rnic::remote {
namespace {

/// Maps a piece of what a descriptor stands for, whole pages around it, for as long as the pointer is kept.
Result<std::shared_ptr<std::uint8_t>> map_piece(int descriptor, std::uint64_t offset, std::size_t bytes) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t before = offset % page;
  if (!keeps_its_size(descriptor, offset + bytes)) return Error::kAccessViolation;
  auto mapping = SharedMapping::map(descriptor, offset - before, bytes + before);
  if (!mapping) return mapping.error();
  std::uint8_t* const at = (*mapping)->data() + before;
  return std::shared_ptr<std::uint8_t>(mapping.take(), at);
}

/// What is given back is gone with the machine, or, in a child of fork, was never the caller's.
bool gives_back(std::span<const std::byte> request) {
  calls::RequestHeader header;
  if (request.size() < sizeof header) return false;
  std::memcpy(&header, request.data(), sizeof header);
  return header.call == calls::Call::kDestroy;
}

}  // namespace

RemotePort::~RemotePort() { static_cast<void>(connection_->request(FrameKind::kClose, client_, {}, {})); }

void RemotePort::call(std::span<const std::byte> request, std::span<std::byte> answer) {
  const auto got = connection_->request(FrameKind::kCall, client_, request, answer);
  if (got.status == calls::Status::kSuccess && got.bytes >= sizeof(calls::AnswerHeader)) return;
  auto status = got.status == calls::Status::kSuccess ? calls::Status::kDeviceFailed : got.status;
  if (connection_->gone() && gives_back(request)) status = calls::Status::kSuccess;
  const calls::AnswerHeader header{.size = sizeof(calls::AnswerHeader), .version = calls::kVersion, .status = status};
  if (answer.size() >= sizeof header) std::memcpy(answer.data(), &header, sizeof header);
}

Result<std::shared_ptr<std::uint8_t>> RemotePort::map(const calls::MemoryRange& range) {
  MapAnswer where;
  auto got = connection_->request(FrameKind::kMap, client_, std::as_bytes(std::span(&range, 1)),
                                  std::as_writable_bytes(std::span(&where, 1)));
  if (got.status != calls::Status::kSuccess) return error_of(got.status);
  if (where.in_connection != 0) {
    if (where.offset > sizeof(ConnectionMemory) - sizeof(std::uint32_t)) return Error::kAccessViolation;
    return std::shared_ptr<std::uint8_t>(connection_,
                                         reinterpret_cast<std::uint8_t*>(&connection_->memory()) + where.offset);
  }
  if (!got.descriptors[0] || where.bytes < range.bytes) return Error::kOutOfResources;
  return map_piece(got.descriptors[0].get(), where.offset, range.bytes);
}

Result<int> RemotePort::descriptor(calls::Handle channel) {
  auto got = connection_->request(FrameKind::kDescriptor, client_, std::as_bytes(std::span(&channel, 1)), {});
  if (got.status != calls::Status::kSuccess) return error_of(got.status);
  return got.descriptors[0] ? Result<int>(got.descriptors[0].release()) : Error::kOutOfResources;
}

}  // namespace rnic::remote
