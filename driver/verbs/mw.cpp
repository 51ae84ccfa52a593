// Memory windows.
#include "driver/umd/memory_request.hpp"
#include "driver/verbs/number.hpp"
#include "driver/verbs/objects.hpp"

namespace rnic::verbs {
namespace {

// Of local writing a window has no say; programs name it all the same.
constexpr unsigned kWindowRights =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

}  // namespace

ibv_mw* alloc_mw(ibv_pd* pd_face, ibv_mw_type type) {
  if (number_of(type) != IBV_MW_TYPE_1 && number_of(type) != IBV_MW_TYPE_2) return refuse(EINVAL);
  return or_null([&]() -> ibv_mw* {
    auto& pd = Pd::of(pd_face);
    auto mw = std::make_unique<Mw>();
    auto window =
        Context::of(pd_face->context)
            .process->create_mw(
                {.pd = pd.handle(), .type = type == IBV_MW_TYPE_1 ? hw::MptType::kWindow1 : hw::MptType::kWindow2});
    if (!window) return refuse(window.error());
    mw->window = window.take();
    mw->face = {.context = pd_face->context,
                .pd = pd_face,
                .rkey = mw->window->key(),
                .handle = mw->window->handle(),
                .type = type};
    ++pd.users;
    return &mw.release()->face;
  });
}

int dealloc_mw(ibv_mw* face) {
  auto& mw = Mw::of(face);
  if (const int error = errno_of(mw.window->destroy()); error != 0) return error;
  --Pd::of(face->pd).users;
  delete &mw;
  return 0;
}

Result<umd::WindowRange> window_range(const ibv_mw& mw, const ibv_mw_bind_info& info) {
  if ((info.mw_access_flags & ~kWindowRights) != 0) return Error::kInvalidParameter;
  if (info.mr == nullptr && (info.addr != 0 || info.length != 0)) return Error::kInvalidParameter;
  if (info.mr != nullptr && !Pd::of(info.mr->pd).is(Pd::of(mw.pd))) return Error::kInvalidParameter;
  return umd::WindowRange{.region_key = info.mr != nullptr ? info.mr->lkey : 0,
                          .address = info.addr,
                          .length = info.length,
                          .remote_read = (info.mw_access_flags & IBV_ACCESS_REMOTE_READ) != 0,
                          .remote_write = (info.mw_access_flags & IBV_ACCESS_REMOTE_WRITE) != 0,
                          .remote_atomic = (info.mw_access_flags & IBV_ACCESS_REMOTE_ATOMIC) != 0};
}

/// ibv_bind_mw: of type 1, with a key that the driver draws.
int bind_mw(ibv_qp* qp_face, ibv_mw* face, ibv_mw_bind* bind) {
  auto& qp = Qp::of(qp_face);
  auto& mw = Mw::of(face);
  const auto range = window_range(*face, bind->bind_info);
  if (!range) return errno_of(range.error());
  const auto posted = umd::post_bind(*qp.core, *mw.window, *range,
                                     {.id = bind->wr_id,
                                      .silent = !qp.signal_all && (bind->send_flags & IBV_SEND_SIGNALED) == 0,
                                      .fence = (bind->send_flags & IBV_SEND_FENCE) != 0});
  if (!posted) return errno_of(posted);
  face->rkey = mw.window->key();
  return 0;
}

}  // namespace rnic::verbs
