#include "driver/nd2/overlapped.hpp"

#include "driver/umd/waiting.hpp"

namespace rnic::nd2 {
namespace {

constexpr std::uintptr_t kNoPortBit = 1;

HRESULT load_status(const OVERLAPPED* overlapped) {
  return static_cast<HRESULT>(__atomic_load_n(&overlapped->Internal, __ATOMIC_ACQUIRE));
}

void store_status(OVERLAPPED* overlapped, HRESULT status) {
  __atomic_store_n(&overlapped->Internal, static_cast<std::uint32_t>(status), __ATOMIC_RELEASE);
}

}  // namespace

HRESULT OverlappedRequest::prepare(OVERLAPPED* overlapped, std::shared_ptr<OverlappedFile> file,
                                   OverlappedRequest& request) {
  if (overlapped == nullptr) return ND_INVALID_PARAMETER;
  if (overlapped->hEvent != nullptr) {
    request.event_ = find_handle_as<Event>(overlapped->hEvent);
    if (request.event_ == nullptr) return ND_INVALID_HANDLE;
  }
  request.overlapped_ = overlapped;
  const bool no_port = (reinterpret_cast<std::uintptr_t>(overlapped->hEvent) & kNoPortBit) != 0;
  if (no_port || file == nullptr) return ND_SUCCESS;
  request.packet_.push_back({.key = 0, .overlapped = overlapped, .status = ND_PENDING});
  request.file_ = std::move(file);
  return ND_SUCCESS;
}

void OverlappedRequest::begin() {
  if (event_ != nullptr) event_->reset();
  overlapped_->InternalHigh = 0;
  store_status(overlapped_, ND_PENDING);
}

// The status last, and with the locks of port and event held: who polls it finds the packet and the event there, who
// takes those finds the status.
void OverlappedRequest::complete(HRESULT status) {
  const auto store = [&] { store_status(overlapped_, status); };
  const auto set = [&] {
    if (event_ != nullptr)
      event_->set(store);
    else
      store();
  };
  if (file_ == nullptr) return set();
  packet_.front().status = status;
  file_->post(std::move(packet_), set);
}

HRESULT prepare_request(OVERLAPPED* overlapped, std::shared_ptr<OverlappedFile> file, OverlappedRequests& request) {
  return OverlappedRequest::prepare(overlapped, std::move(file), request.emplace_back());
}

void take_requests(OverlappedRequests& from, const OVERLAPPED* one, OverlappedRequests& to) {
  for (auto at = from.begin(); at != from.end();) {
    const auto next = std::next(at);
    if (one == nullptr || at->is(one)) to.splice(to.end(), from, at);
    at = next;
  }
}

HRESULT overlapped_result(DeviceNode& node, OVERLAPPED* overlapped, bool wait) {
  if (overlapped == nullptr) return ND_INVALID_PARAMETER_1;
  if (load_status(overlapped) != ND_PENDING) return load_status(overlapped);
  if (!wait) {
    // A thread may do nothing but ask.
    umd::poll_in_vain(node.machine());
    node.takers().take_events();
    return load_status(overlapped);
  }
  const auto event = find_handle_as<Event>(overlapped->hEvent);
  if (event == nullptr) return ND_INVALID_HANDLE;
  HRESULT status = ND_PENDING;
  const bool done = umd::wait_until(node, [&] { return (status = load_status(overlapped)) != ND_PENDING; });
  // The event is set when the status is there; this wait was for it.
  event->try_take();
  return done ? status : ND_DEVICE_REMOVED;
}

}  // namespace rnic::nd2
