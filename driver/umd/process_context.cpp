#include "driver/umd/process_context.hpp"

#include "driver/generated/host_interface.hpp"

namespace rnic::umd {

Result<std::shared_ptr<ProcessContext>> ProcessContext::open(kmd::KernelDevice& kernel) { return open(kernel, false); }

Result<std::shared_ptr<ProcessContext>> ProcessContext::open_kernel(kmd::KernelDevice& kernel) {
  return open(kernel, true);
}

Result<std::shared_ptr<ProcessContext>> ProcessContext::open(kmd::KernelDevice& kernel, bool of_kernel) {
  return or_out_of_memory([&]() -> Result<std::shared_ptr<ProcessContext>> {
    if (auto well = kernel.recover(); !well) return well.error();
    std::shared_ptr<ProcessContext> context(new ProcessContext(kernel));
    context->life_ = kernel.life();
    auto uar = of_kernel ? Result<std::uint32_t>(hw::kKernelUar) : kernel.acquire_uar();
    if (!uar) return uar.error();
    context->uar_ = *uar;
    auto pd = kernel.acquire_pd();
    if (!pd) return pd.error();
    context->pd_ = *pd;
    return context;
  });
}

ProcessContext::~ProcessContext() {
  if (pd_) kernel_.release_pd(*pd_);
  if (uar_ && *uar_ != hw::kKernelUar) kernel_.release_uar(*uar_);
}

}  // namespace rnic::umd
