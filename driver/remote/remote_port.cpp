#include "driver/remote/remote_port.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "driver/remote/status.hpp"

namespace rnic::remote {
namespace {

/// Maps a piece of what a descriptor stands for, whole pages around it, for as long as the pointer is kept.
Result<std::shared_ptr<std::uint8_t>> map_piece(int descriptor, std::uint64_t offset, std::size_t bytes) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t before = offset % page;
  const std::size_t length = bytes + before;
  void* const at =
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(offset - before));
  if (at == MAP_FAILED) return Error::kOutOfMemory;
  return or_out_of_memory([&]() -> Result<std::shared_ptr<std::uint8_t>> {
    return std::shared_ptr<std::uint8_t>(static_cast<std::uint8_t*>(at) + before,
                                         [at, length](std::uint8_t*) { munmap(at, length); });
  });
}

}  // namespace

RemotePort::~RemotePort() { static_cast<void>(connection_->request(FrameKind::kClose, client_, {}, {})); }

void RemotePort::call(std::span<const std::byte> request, std::span<std::byte> answer) {
  const auto got = connection_->request(FrameKind::kCall, client_, request, answer);
  if (got.status == calls::Status::kSuccess && got.bytes >= sizeof(calls::AnswerHeader)) return;
  const calls::AnswerHeader header{
      .size = sizeof(calls::AnswerHeader),
      .version = calls::kVersion,
      .status = got.status == calls::Status::kSuccess ? calls::Status::kDeviceFailed : got.status};
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
