#include "driver/umd/process_context.hpp"

#include "driver/generated/host_interface.hpp"

namespace rnic::umd {

Result<std::shared_ptr<ProcessContext>> ProcessContext::open(kmd::KernelDevice& kernel) {
  auto uar = kernel.acquire_uar();
  if (!uar) return uar.error();
  auto pd = kernel.acquire_pd();
  if (!pd) {
    kernel.release_uar(*uar);
    return pd.error();
  }
  return std::shared_ptr<ProcessContext>(new ProcessContext(kernel, *uar, *pd));
}

Result<std::shared_ptr<ProcessContext>> ProcessContext::open_kernel(kmd::KernelDevice& kernel) {
  auto pd = kernel.acquire_pd();
  if (!pd) return pd.error();
  return std::shared_ptr<ProcessContext>(new ProcessContext(kernel, hw::kKernelUar, *pd));
}

ProcessContext::~ProcessContext() {
  kernel_.release_pd(pd_);
  if (uar_ != hw::kKernelUar) kernel_.release_uar(uar_);
}

void ProcessContext::ring(std::uint32_t doorbell, std::uint64_t value) {
  device().write64(std::uint64_t{uar_} * hw::kUarPageBytes + doorbell, value);
}

void ProcessContext::push_wqe(std::span<const std::uint8_t> wqe) {
  const std::lock_guard lock(window_mutex_);
  const std::uint64_t window = std::uint64_t{uar_} * hw::kUarPageBytes + hw::uar::kWqeWindow;
  for (std::size_t offset = 0; offset < wqe.size(); offset += 64) {
    device().write_burst64(window + offset, wqe.subspan(offset).first<64>());
  }
}

}  // namespace rnic::umd
