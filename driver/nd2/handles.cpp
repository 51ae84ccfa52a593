#include "driver/nd2/handles.hpp"

#include <unordered_map>

#include "driver/umd/waiting.hpp"

namespace rnic::nd2 {
namespace {

struct HandleTable {
  std::mutex mutex;
  std::unordered_map<std::uintptr_t, std::shared_ptr<HandleObject>> objects;
  std::uintptr_t next = kStep;

  static constexpr std::uintptr_t kStep = 4;  // the two low bits are the client's
};

HandleTable& table() {
  static HandleTable instance;
  return instance;
}

std::uintptr_t number_of(HANDLE handle) { return reinterpret_cast<std::uintptr_t>(handle) & ~(HandleTable::kStep - 1); }

}  // namespace

void Event::set() {
  set([] {});
}

void Event::reset() {
  const std::lock_guard lock(mutex_);
  set_ = false;
}

bool Event::try_take() {
  const std::lock_guard lock(mutex_);
  const bool taken = set_;
  if (!manual_reset_) set_ = false;
  return taken;
}

bool Event::wait(std::uint64_t timeout_ns) {
  return umd::wait_until(
      node_, [this] { return try_take(); }, timeout_ns);
}

void CompletionPort::post(const Packet& packet) {
  post(Packets{packet}, [] {});
}

std::optional<CompletionPort::Packet> CompletionPort::try_take() {
  const std::lock_guard lock(mutex_);
  if (packets_.empty()) return std::nullopt;
  const Packet packet = packets_.front();
  packets_.pop_front();
  return packet;
}

std::optional<CompletionPort::Packet> CompletionPort::take(std::uint64_t timeout_ns) {
  std::optional<Packet> packet;
  umd::wait_until(
      node_, [&] { return (packet = try_take()).has_value(); }, timeout_ns);
  return packet;
}

bool OverlappedFile::bind(std::shared_ptr<CompletionPort> port, std::uintptr_t key) {
  const std::lock_guard lock(mutex_);
  if (port_ != nullptr) return false;
  port_ = std::move(port);
  key_ = key;
  return true;
}

HANDLE open_handle(std::shared_ptr<HandleObject> object) {
  auto& handles = table();
  const std::lock_guard lock(handles.mutex);
  const std::uintptr_t number = handles.next;
  handles.next += HandleTable::kStep;
  handles.objects.emplace(number, std::move(object));
  return reinterpret_cast<HANDLE>(number);
}

bool close_handle(HANDLE handle) {
  auto& handles = table();
  std::shared_ptr<HandleObject> last;  // destroyed after the lock is gone
  const std::lock_guard lock(handles.mutex);
  const auto found = handles.objects.find(number_of(handle));
  if (found == handles.objects.end()) return false;
  last = std::move(found->second);
  handles.objects.erase(found);
  return true;
}

std::shared_ptr<HandleObject> find_handle(HANDLE handle) {
  auto& handles = table();
  const std::lock_guard lock(handles.mutex);
  const auto found = handles.objects.find(number_of(handle));
  return found == handles.objects.end() ? nullptr : found->second;
}

HANDLE create_event(DeviceNode& node, bool manual_reset) {
  return open_handle(std::make_shared<Event>(node, manual_reset));
}

HANDLE create_completion_port(DeviceNode& node) { return open_handle(std::make_shared<CompletionPort>(node)); }

}  // namespace rnic::nd2
