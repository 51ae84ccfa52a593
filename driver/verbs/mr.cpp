// Memory regions.
#include "driver/verbs/objects.hpp"

// Macros of verbs.h stand in front of these functions.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace rnic::verbs {
namespace {

constexpr unsigned kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
// What the device may take for granted, or ignore: huge pages, and whatever is optional (relaxed ordering).
constexpr unsigned kHints = unsigned{IBV_ACCESS_HUGETLB} | IBV_ACCESS_OPTIONAL_RANGE;

/// An errno.
int check_access(unsigned access) {
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) return EOPNOTSUPP;
  if ((access & ~(kRights | kHints)) != 0) return EINVAL;
  const bool remote_changes = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  return remote_changes && (access & IBV_ACCESS_LOCAL_WRITE) == 0 ? EINVAL : 0;
}

umd::MrSpec spec_of(const Pd& pd, const void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  return {.address = address,
          .length = length,
          .pd = pd.handle(),
          .local_write = (access & IBV_ACCESS_LOCAL_WRITE) != 0,
          .remote_read = (access & IBV_ACCESS_REMOTE_READ) != 0,
          .remote_write = (access & IBV_ACCESS_REMOTE_WRITE) != 0,
          .remote_atomic = (access & IBV_ACCESS_REMOTE_ATOMIC) != 0,
          .window_bind = (access & IBV_ACCESS_MW_BIND) != 0,
          .iova = iova};
}

void set_key(ibv_mr& face, std::uint32_t key) { face.lkey = face.rkey = key; }

ibv_mr* register_region(ibv_pd* pd_face, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  if (const int error = check_access(access); error != 0) return refuse(error);
  return or_null([&]() -> ibv_mr* {
    auto& pd = Pd::of(pd_face);
    auto mr = std::make_unique<Mr>();
    auto region = Context::of(pd_face->context).process->create_mr(spec_of(pd, address, length, iova, access));
    if (!region) return refuse(region.error());
    mr->region = region.take();
    mr->face = {.context = pd_face->context,
                .pd = pd_face,
                .addr = address,
                .length = length,
                .handle = mr->region->handle(),
                .lkey = 0,
                .rkey = 0};
    set_key(mr->face, mr->region->key());
    ++pd.users;
    return &mr.release()->face;
  });
}

}  // namespace
}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  return register_region(pd, address, length, reinterpret_cast<std::uintptr_t>(address), static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) {
  return register_region(pd, address, length, iova, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  return register_region(pd, address, length, iova, access);
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) { return refuse(EOPNOTSUPP); }

/// Whatever is refused leaves the region as it was.
int ibv_rereg_mr(ibv_mr* face, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  const auto refused = [](int code) {
    errno = code;
    return static_cast<int>(IBV_REREG_MR_ERR_INPUT);
  };
  const bool translation = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool change_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  const bool change_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) return refused(EINVAL);
  if (translation && (address == nullptr || length == 0)) return refused(EINVAL);
  if (change_pd && pd == nullptr) return refused(EINVAL);
  if (change_access) {
    if (const int error = check_access(static_cast<unsigned>(access)); error != 0) return refused(error);
  }
  auto& mr = Mr::of(face);
  const auto spec = spec_of(Pd::of(change_pd ? pd : face->pd), address, length,
                            reinterpret_cast<std::uintptr_t>(address), static_cast<unsigned>(access));
  const auto done = mr.region->reregister({.translation = translation, .pd = change_pd, .access = change_access}, spec);
  if (!done) return refused(errno_of(done));
  set_key(*face, mr.region->key());
  if (translation) {
    face->addr = address;
    face->length = length;
  }
  if (change_pd) {
    --Pd::of(face->pd).users;
    ++Pd::of(pd).users;
    face->pd = pd;
  }
  return 0;
}

int ibv_dereg_mr(ibv_mr* face) {
  auto& mr = Mr::of(face);
  if (const int error = errno_of(mr.region->destroy()); error != 0) return error;
  --Pd::of(face->pd).users;
  delete &mr;
  return 0;
}

}  // extern "C"
