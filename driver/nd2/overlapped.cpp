#include "driver/nd2/overlapped.hpp"

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

HRESULT OverlappedRequest::begin(OVERLAPPED* overlapped, std::shared_ptr<OverlappedFile> file,
                                 OverlappedRequest& request) {
  if (overlapped == nullptr) return ND_INVALID_PARAMETER;
  std::shared_ptr<Event> event;
  if (overlapped->hEvent != nullptr) {
    event = find_handle_as<Event>(overlapped->hEvent);
    if (event == nullptr) return ND_INVALID_HANDLE;
    event->reset();
  }
  const bool no_port = (reinterpret_cast<std::uintptr_t>(overlapped->hEvent) & kNoPortBit) != 0;
  request.overlapped_ = overlapped;
  request.event_ = std::move(event);
  request.file_ = no_port ? nullptr : std::move(file);
  overlapped->InternalHigh = 0;
  store_status(overlapped, ND_PENDING);
  return ND_SUCCESS;
}

void OverlappedRequest::complete(HRESULT status) {
  store_status(overlapped_, status);
  if (file_ != nullptr) file_->post(overlapped_, status);
  if (event_ != nullptr) event_->set();
}

HRESULT overlapped_result(kmd::KernelDevice& kernel, OVERLAPPED* overlapped, bool wait) {
  if (overlapped == nullptr) return ND_INVALID_PARAMETER_1;
  if (!wait || load_status(overlapped) != ND_PENDING) return load_status(overlapped);
  const auto event = find_handle_as<Event>(overlapped->hEvent);
  if (event == nullptr) return ND_INVALID_HANDLE;
  HRESULT status = ND_PENDING;
  kernel.wait_until([&] { return (status = load_status(overlapped)) != ND_PENDING; });
  event->try_take();
  return status;
}

}  // namespace rnic::nd2
