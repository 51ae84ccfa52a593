// Protection domains, parent domains, thread domains.
#include "driver/verbs/objects.hpp"

namespace rnic::verbs {

/// The driver needs no hint of who uses an object from which thread; a thread domain is but a name.
ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attributes) {
  if (attributes->comp_mask != 0) return refuse(EINVAL);
  return or_null([&] { return &(new Td{.face = {.context = context}})->face; });
}

int dealloc_td(ibv_td* td) {
  delete reinterpret_cast<Td*>(td);
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes) {
  constexpr std::uint32_t kKnown = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if ((attributes->comp_mask & ~kKnown) != 0 || attributes->pd == nullptr) return refuse(EINVAL);
  return or_null([&]() -> ibv_pd* {
    auto& parent = Pd::of(attributes->pd);
    auto pd = std::make_unique<Pd>();
    pd->face = {.context = context, .handle = parent.face.handle};
    pd->parent_of = parent.own != nullptr ? &parent : parent.parent_of;
    ++pd->parent_of->users;
    return &pd.release()->face;
  });
}

}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return or_null([&]() -> ibv_pd* {
    auto pd = std::make_unique<Pd>();
    auto own = Context::of(context).process->alloc_pd();
    if (!own) return refuse(own.error());
    pd->own = own.take();
    pd->face = {.context = context, .handle = pd->own->handle()};
    return &pd.release()->face;
  });
}

int ibv_dealloc_pd(ibv_pd* face) {
  auto& pd = Pd::of(face);
  if (pd.users != 0) return EBUSY;
  if (pd.own == nullptr) {
    --pd.parent_of->users;
  } else if (const int error = errno_of(pd.own->destroy()); error != 0) {
    return error;
  }
  delete &pd;
  return 0;
}

}  // extern "C"
