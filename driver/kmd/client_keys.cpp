// The calls of a client about protection domains, regions, windows and fast registrations.
#include "driver/kmd/client.hpp"

namespace rnic::kmd {

void ClientMr::Command::on_answer(const Result<AdminQueue::Reply>& answer) {
  const bool creation = of_ == Of::kCreation;
  creation ? region_->object->creation_ended(answer) : region_->object->destruction_ended(answer);
  const bool open = !answer && answer.error() == Error::kDeviceFailed;
  region_->over = answer.ok() != creation && !open;
  region_->channel->put(region_->place, answer ? 0U : 1U + static_cast<std::uint32_t>(answer.error()));
  forget();
  machine_.wake();
}

Result<void> Client::perform(const calls::AllocPd&, calls::AllocPd::Answer& a) {
  auto place = handles_.reserve(calls::ObjectKind::kPd);
  if (!place) return place.error();
  auto number = kernel_.acquire_pd();
  if (!number) return number.error();
  std::shared_ptr<ProtectionDomain> domain;
  try {
    domain = std::make_shared<ProtectionDomain>(kernel_, *number);
  } catch (const std::bad_alloc&) {
    kernel_.release_pd(*number);
    throw;
  }
  a.number = domain->number();
  a.pd = place->handle();
  place->fill(std::make_shared<ClientPd>(kernel_.device(), std::move(domain)));
  return {};
}

/// What both calls that register say.
template <typename Request>
Result<std::shared_ptr<ClientMr>> Client::region_of(const Request& m) {
  auto pd = handles_.use(m.pd, calls::ObjectKind::kPd);
  if (!pd) return pd.error();
  auto region = std::make_shared<ClientMr>(kernel_.device(), handles_, first_channel_);
  region->pd = pd.take();
  region->spec = {.address = reinterpret_cast<const void*>(m.address),
                  .length = m.length,
                  .pd = pd_of(*region),
                  .local_write = m.local_write != 0,
                  .read_sink = m.read_sink != 0,
                  .remote_read = m.remote_read != 0,
                  .remote_write = m.remote_write != 0,
                  .remote_atomic = m.remote_atomic != 0,
                  .window_bind = m.window_bind != 0,
                  .management = uar_ == hw::kKernelUar,
                  .iova = m.iova,
                  .space = memory_,
                  .keeps = as<ClientPd>(region->pd).pd,
                  .account = account_};
  return region;
}

Result<void> Client::perform(const calls::RegisterMr& m, calls::RegisterMr::Answer& a) {
  auto place = handles_.reserve(calls::ObjectKind::kMr);
  if (!place) return place.error();
  auto made = region_of(m);
  if (!made) return made.error();
  auto region = made.take();
  auto object = kernel_.create_mr(region->spec);
  if (!object) return object.error();
  region->object = object.take();
  region->handle = a.mr = place->handle();
  a.key = region->object->key();
  place->fill(std::move(region));
  return {};
}

/// The region has its handle before the device hears of it, because the answer may end it.
Result<void> Client::perform(const calls::BeginRegisterMr& m, calls::BeginRegisterMr::Answer& a) {
  auto place = handles_.reserve(calls::ObjectKind::kMr);
  if (!place) return place.error();
  auto made = region_of(m);
  if (!made) return made.error();
  const auto region = made.take();
  hw::AdminCreateMr body;
  auto object = kernel_.prepare_mr(region->spec, body);
  if (!object) return object.error();
  region->object = object.take();
  a.key = region->object->key();
  region->handle = a.mr = place->handle();
  const auto command = region->begin(ClientMr::Command::Of::kCreation, m.number, region);
  place->fill(region);
  auto begun = region->object->begin_creation(body, command);
  if (begun) return {};
  command->forget();
  region->end_handle();
  return begun;
}

Result<void> Client::perform(const calls::BeginDestroyMr& m, calls::BeginDestroyMr::Answer&) {
  return with<ClientMr>(m.mr, [&](ClientMr& region) -> Result<void> {
    if (region.busy()) return Error::kBusy;
    auto found = handles_.find(m.mr, calls::ObjectKind::kMr);
    if (!found) return found.error();
    const auto command =
        region.begin(ClientMr::Command::Of::kDestruction, m.number, std::static_pointer_cast<ClientMr>(found.take()));
    auto begun = region.object->begin_destruction(command);
    if (!begun) command->forget();
    return begun;
  });
}

void Client::settle(calls::Handle region) {
  auto found = handles_.find(region, calls::ObjectKind::kMr);
  if (!found) return;
  auto& object = static_cast<ClientMr&>(**found);
  if (object.over) object.end_handle();
}

/// Another region, and then the end of the present one: what refuses either leaves everything as it was.
Result<void> Client::perform(const calls::ReregisterMr& m, calls::ReregisterMr::Answer& a) {
  if ((m.change_translation | m.change_pd | m.change_access) == 0) return Error::kInvalidParameter;
  return with<ClientMr>(m.mr, [&](ClientMr& region) -> Result<void> {
    if (region.busy()) return Error::kBusy;
    MrSpec spec = region.spec;
    HandleTable::Use pd;
    if (m.change_pd != 0) {
      auto other = handles_.use(m.pd, calls::ObjectKind::kPd);
      if (!other) return other.error();
      pd = other.take();
      spec.pd = as<ClientPd>(pd).pd->number();
      spec.keeps = as<ClientPd>(pd).pd;
    }
    if (m.change_translation != 0) {
      spec.address = reinterpret_cast<const void*>(m.address);
      spec.length = m.length;
      spec.iova = m.iova;
    }
    if (m.change_access != 0) {
      spec.local_write = m.local_write != 0;
      spec.read_sink = m.read_sink != 0;
      spec.remote_read = m.remote_read != 0;
      spec.remote_write = m.remote_write != 0;
      spec.remote_atomic = m.remote_atomic != 0;
      spec.window_bind = m.window_bind != 0;
    }
    auto made = kernel_.create_mr(spec);
    if (!made) return made.error();
    if (auto gone = region.object->destroy(); !gone) return gone;
    region.object = made.take();
    region.spec = spec;
    if (pd.get() != nullptr) region.pd = std::move(pd);
    a.key = region.object->key();
    return {};
  });
}

Result<void> Client::perform(const calls::QueryKey& m, calls::QueryKey::Answer& a) {
  Result<hw::AdminMrState> state = Error::kNotFound;
  const auto ask = [&](auto& owner) -> Result<void> {
    state = owner.object->query();
    return {};
  };
  Result<void> found;
  switch (static_cast<calls::ObjectKind>(m.kind)) {
    case calls::ObjectKind::kMr:
      found = with<ClientMr>(
          m.object, [&](ClientMr& region) { return region.busy() ? Result<void>(Error::kBusy) : ask(region); });
      break;
    case calls::ObjectKind::kMw: found = with<ClientMw>(m.object, ask); break;
    default: found = with<ClientFastMr>(m.object, ask); break;
  }
  if (!found) return found;
  if (!state) return state.error();
  a.va = state->va;
  a.length = state->length;
  a.mr_index = state->mr_index;
  a.pd = state->pd;
  a.bound_windows = state->bound_windows;
  a.max_pages = state->max_pages;
  a.log_page = state->log_page;
  a.mpt_type = state->mpt_type;
  a.tag = state->tag;
  a.bound_qp = state->bound_qp;
  a.local_write = state->local_write;
  a.read_sink = state->read_sink;
  a.remote_read = state->remote_read;
  a.remote_write = state->remote_write;
  a.remote_atomic = state->remote_atomic;
  a.window_bind = state->window_bind;
  a.remote_access = state->remote_access;
  a.valid = state->valid;
  return {};
}

Result<void> Client::perform(const calls::CreateMw& m, calls::CreateMw::Answer& a) {
  auto place = handles_.reserve(calls::ObjectKind::kMw);
  if (!place) return place.error();
  auto pd = handles_.use(m.pd, calls::ObjectKind::kPd);
  if (!pd) return pd.error();
  auto window = std::make_shared<ClientMw>(kernel_.device());
  window->pd = pd.take();
  auto made = kernel_.create_mw({.pd = pd_of(*window), .type = static_cast<hw::MptType>(m.type)});
  if (!made) return made.error();
  window->object = made.take();
  a.seed = kernel_.device().random64();
  a.mw = place->handle();
  a.key = window->object->key();
  place->fill(std::move(window));
  return {};
}

Result<void> Client::perform(const calls::CreateFastMr& m, calls::CreateFastMr::Answer& a) {
  if (!trusted_) return Error::kNotSupported;
  auto place = handles_.reserve(calls::ObjectKind::kFastMr);
  if (!place) return place.error();
  auto pd = handles_.use(m.pd, calls::ObjectKind::kPd);
  if (!pd) return pd.error();
  auto region = std::make_shared<ClientFastMr>(kernel_.device());
  region->pd = pd.take();
  auto made = kernel_.create_fast_mr({.pd = pd_of(*region),
                                      .max_pages = m.max_pages,
                                      .remote_access = m.remote_access != 0,
                                      .window_bind = m.window_bind != 0});
  if (!made) return made.error();
  region->object = made.take();
  a.fast_mr = place->handle();
  a.key = region->object->key();
  place->fill(std::move(region));
  return {};
}

Result<void> Client::perform(const calls::PrepareFastMr& m, std::span<const std::uint64_t> pages,
                             calls::PrepareFastMr::Answer& a) {
  if (!trusted_) return Error::kNotSupported;
  return with<ClientFastMr>(m.fast_mr, [&](ClientFastMr& region) -> Result<void> {
    const FastRange range{.pages = pages,
                          .first_offset = m.first_offset,
                          .length = m.length,
                          .base = m.base,
                          .local_write = m.local_write != 0,
                          .read_sink = m.read_sink != 0,
                          .remote_read = m.remote_read != 0,
                          .remote_write = m.remote_write != 0,
                          .remote_atomic = m.remote_atomic != 0};
    auto prepared = region.object->prepare(range, m.inline_pages);
    if (!prepared) return prepared.error();
    a.page_list = prepared->page_list;
    a.key = prepared->key;
    a.page_count = prepared->page_count;
    a.log_page = prepared->log_page;
    a.inline_list = prepared->inline_list;
    return {};
  });
}

Result<void> Client::perform(const calls::ReleaseFastMr& m, calls::ReleaseFastMr::Answer&) {
  if (!trusted_) return Error::kNotSupported;
  return with<ClientFastMr>(m.fast_mr, [&](ClientFastMr& region) { return region.object->release(m.key); });
}

}  // namespace rnic::kmd
