#include "driver/ndk/protection_domain.hpp"

#include "driver/ndk/memory_region.hpp"
#include "driver/ndk/memory_window.hpp"
#include "driver/ndk/queue_pair.hpp"
#include "driver/ndk/shared_receive_queue.hpp"

namespace rnic::ndk {

const NDK_PD_DISPATCH ProtectionDomain::kDispatch{.NdkClosePd = close_object,
                                                  .NdkQueryExtensionInterface = query_extension,
                                                  .NdkCreateMr = MemoryRegion::create,
                                                  .NdkCreateMw = MemoryWindow::create,
                                                  .NdkCreateSrq = SharedReceiveQueue::create,
                                                  .NdkCreateQp = QueuePair::create,
                                                  .NdkCreateQpWithSrq = QueuePair::create_with_srq,
                                                  .NdkGetPrivilegedMemoryRegionToken = privileged_token};

ProtectionDomain::ProtectionDomain(Adapter& adapter, std::unique_ptr<umd::ProtectionDomain> domain)
    : ObjectOf(adapter.worker(), NdkObjectTypePd, kDispatch), adapter_(adapter), domain_(std::move(domain)) {
  need(adapter);
}

NTSTATUS ProtectionDomain::create(NDK_ADAPTER* face, NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_PD**) {
  Adapter& adapter = Adapter::of(face);
  return pend_creation(adapter, completion, context,
                       [&adapter](NDK_OBJECT_HEADER*& header) { return make(adapter, header); });
}

NTSTATUS ProtectionDomain::make(Adapter& adapter, NDK_OBJECT_HEADER*& header) {
  const auto made = or_out_of_memory([&]() -> Result<void> {
    auto domain = adapter.context()->alloc_pd();
    if (!domain) return domain.error();
    if (auto added = adapter.logical_memory().add_domain((*domain)->handle()); !added) return added;
    const auto handle = (*domain)->handle();
    try {
      header = (new ProtectionDomain(adapter, domain.take()))->header();
    } catch (const std::bad_alloc&) {
      adapter.logical_memory().remove_domain(handle);
      throw;
    }
    return {};
  });
  return made ? STATUS_SUCCESS : control_status(made.error());
}

/// Of all domains the same: a request is looked up in that of its queue pair.
VOID ProtectionDomain::privileged_token(NDK_PD*, UINT32* token) { *token = kPrivilegedToken; }

void ProtectionDomain::end() {
  adapter_.logical_memory().remove_domain(domain_->handle());
  static_cast<void>(domain_->destroy().ok());
}

}  // namespace rnic::ndk
