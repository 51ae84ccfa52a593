#include "model/reference/memory.hpp"

#include <algorithm>

#include "model/reference/nic.hpp"

namespace rnic::reference {
namespace {

std::uint32_t index_of(std::uint32_t key) { return key >> 8; }
std::uint8_t tag_of(std::uint32_t key) { return static_cast<std::uint8_t>(key); }
bool is_window(const Key& key) { return key.type == MptType::Window1 || key.type == MptType::Window2; }

/// [va, va + bytes) lies in [base, base + length), whose last byte may be the last of the address space.
bool inside(std::uint64_t va, std::uint64_t bytes, std::uint64_t base, std::uint64_t length) {
  return va >= base && va - base <= length && bytes <= length - (va - base);
}

bool has(const Rights& rights, Right right) {
  switch (right) {
    case Right::LocalRead: return true;
    case Right::LocalWrite: return rights.local_write;
    case Right::ReadSink: return rights.local_write || rights.read_sink;
    case Right::RemoteRead: return rights.remote_read;
    case Right::RemoteWrite: return rights.remote_write;
    case Right::RemoteAtomic: return rights.remote_atomic;
  }
  return false;
}

}  // namespace

Memory::Memory(Nic& nic) : nic_(nic), released_(nic.clock) {}

Xlate Memory::check(const Access& access) {
  nic_.count(Count::XlateRequests);
  const Xlate status = [&] {
    const Key* key = find(index_of(access.key));
    if (key == nullptr) return Xlate::BadIndex;
    if (key->tag != tag_of(access.key)) return Xlate::BadTag;
    if (!key->valid) return Xlate::BadState;
    if (key->pd != access.pd) return Xlate::BadPd;
    if (key->type == MptType::Window2 && key->bound_qp != access.qp) return Xlate::BadQp;
    const bool local = access.right <= Right::ReadSink;
    if ((local && is_window(*key)) || !has(key->rights, access.right)) return Xlate::BadAccess;
    return inside(access.va, access.bytes, key->va, key->length) ? Xlate::Ok : Xlate::BadRange;
  }();
  if (status != Xlate::Ok) nic_.count(Count::XlateFaults);
  return status;
}

Task<Translation> Memory::translate(Access access) {
  Translation result;
  if (access.bytes == 0) co_return result;
  result.status = check(access);
  if (result.status != Xlate::Ok) co_return result;
  std::uint32_t index = index_of(access.key);
  result.use = use(index);
  Key* key = &keys_.at(index);
  if (is_window(*key)) {
    index = key->mr_index;
    key = &keys_.at(index);
    result.region_use = use(index);
  }
  const std::uint64_t page_bytes = std::uint64_t{1} << key->log_page, first_page = key->va >> key->log_page;
  for (std::uint64_t va = access.va, left = access.bytes; left != 0;) {
    const std::uint64_t page = (va >> key->log_page) - first_page;
    if (key->pages.count(page) == 0) {
      nic_.count(Count::TlbMisses);
      const std::uint64_t line = page & ~std::uint64_t{7};
      const std::uint64_t last_page = ((key->va + key->length - 1) >> key->log_page) - first_page;
      const std::uint64_t entries = std::min<std::uint64_t>(8, last_page - line + 1);
      const std::uint64_t from = key->page_list + line * 8;
      auto bytes = co_await nic_.pcie.read(from, entries * 8);
      if (!bytes) {
        nic_.count(Count::XlateFaults);
        result.status = Xlate::PageListError;
        co_return result;
      }
      for (std::uint64_t i = 0; i < entries; ++i) key->pages[line + i] = little(*bytes, i * 8, 8);
    }
    const std::uint64_t offset = va & (page_bytes - 1);
    const std::uint64_t bytes = std::min(left, page_bytes - offset);
    result.pieces.push_back({key->pages.at(page) + offset, bytes});
    va += bytes;
    left -= bytes;
  }
  co_return result;
}

KeyUse Memory::use(std::uint32_t index) {
  ++keys_.at(index).users;
  return KeyUse(nullptr, [this, index](void*) {
    if (--keys_.at(index).users == 0) released_.raise();
  });
}

Task<Done> Memory::drain(std::uint32_t index) {
  for (;;) {
    const Key* key = find(index);
    if (key == nullptr || key->users == 0) co_return Done{};
    co_await released_.wait();
  }
}

void Memory::unbind(Key& window) {
  if (!window.valid) return;
  window.valid = false;
  if (Key* region = find(window.mr_index); region != nullptr && region->bound_windows != 0) --region->bound_windows;
}

void Memory::unbind(std::uint8_t qp) {
  for (auto& [index, key] : keys_)
    if (key.type == MptType::Window2 && key.valid && key.bound_qp == qp) unbind(key);
}

void Memory::undo_bind(std::uint32_t bound) {
  Key* key = find(index_of(bound));
  if (key != nullptr && key->type == MptType::Window1 && key->tag == tag_of(bound)) unbind(*key);
}

Task<MemOp> Memory::bind(BindRequest request) {
  const std::uint32_t index = index_of(request.new_key);
  Key* window = find(index);
  if (window == nullptr || window->pd != request.pd) co_return MemOp::BadKey;
  if (window->type != (request.type2 ? MptType::Window2 : MptType::Window1)) co_return MemOp::BadRequest;
  if (request.type2 && window->valid) co_return MemOp::BadState;
  if (!request.type2 && request.length == 0) {
    unbind(*window);
    window->tag = tag_of(request.new_key);
    co_await drain(index);
    co_return MemOp::Ok;
  }
  Key* region = find(index_of(request.mr_key));
  if (region == nullptr || region->tag != tag_of(request.mr_key) || !region->valid || region->pd != request.pd ||
      is_window(*region))
    co_return MemOp::BadKey;
  if (!region->rights.window_bind) co_return MemOp::BadAccess;
  if ((request.rights.remote_write || request.rights.remote_atomic) && !region->rights.local_write)
    co_return MemOp::BadAccess;
  if (!inside(request.va, request.length, region->va, region->length)) co_return MemOp::BadRange;
  const bool rebound = window->valid;
  unbind(*window);
  if (rebound) {
    co_await drain(index);
    window = find(index);
    region = find(index_of(request.mr_key));
    if (window == nullptr || region == nullptr || !region->valid) co_return MemOp::BadKey;
  }
  window->valid = true;
  window->tag = tag_of(request.new_key);
  window->va = request.va;
  window->length = request.length;
  window->rights = request.rights;
  window->bound_qp = request.qp;
  window->mr_index = index_of(request.mr_key);
  window->log_page = region->log_page;
  ++region->bound_windows;
  co_return MemOp::Ok;
}

/// Of a peer (remote) only what it could reach may be taken away (9.4.1.1.3).
Task<MemOp> Memory::invalidate(std::uint32_t number, std::uint32_t pd, std::uint8_t qp, bool remote) {
  Key* key = find(index_of(number));
  if (key == nullptr || key->pd != pd) co_return MemOp::BadKey;
  if (key->type == MptType::Region || key->type == MptType::Window1) co_return MemOp::BadRequest;
  if (!key->valid) co_return MemOp::BadState;
  // A token that is no longer that of the window opens nothing: there is nothing to invalidate (decisions 53).
  if (key->tag != tag_of(number)) co_return MemOp::BadKey;
  if (key->type == MptType::Window2) {
    if (key->bound_qp != qp) co_return MemOp::BadAccess;
    unbind(*key);
  } else {
    if (key->bound_windows != 0) co_return MemOp::BadState;
    if (remote && !key->rights.remote_read && !key->rights.remote_write && !key->rights.remote_atomic)
      co_return MemOp::BadAccess;
    key->valid = false;
  }
  co_await drain(index_of(number));
  co_return MemOp::Ok;
}

MemOp Memory::fast_register(const FastRequest& request) {
  Key* key = find(index_of(request.new_key));
  if (key == nullptr || key->pd != request.pd) return MemOp::BadKey;
  if (key->type != MptType::FastRegion) return MemOp::BadRequest;
  if (key->valid) return MemOp::BadState;
  const Rights& rights = request.rights;
  if (request.log_page < 12 || request.log_page > 30 || request.page_list % 8 != 0) return MemOp::BadRequest;
  const std::uint64_t page = std::uint64_t{1} << request.log_page;
  if (request.first_offset != (request.va & (page - 1)) || request.page_count == 0 ||
      request.page_count > key->max_pages)
    return MemOp::BadRequest;
  if (request.inline_list && (request.page_list != 0 || request.page_count > key->inline_pages))
    return MemOp::BadRequest;
  if ((rights.remote_write || rights.remote_atomic) && !rights.local_write) return MemOp::BadRequest;
  if ((rights.remote_read || rights.remote_write || rights.remote_atomic) && !key->remote_access)
    return MemOp::BadAccess;
  if (request.length == 0 || request.va + (request.length - 1) < request.va ||
      request.length > request.page_count * page - request.first_offset)
    return MemOp::BadRange;
  for (const std::uint64_t address : request.pages)
    if (address % page != 0) return MemOp::BadRequest;
  key->valid = true;
  key->tag = tag_of(request.new_key);
  key->va = request.va;
  key->length = request.length;
  key->page_list = request.page_list;
  key->log_page = request.log_page;
  const bool window_bind = key->rights.window_bind;
  key->rights = rights;
  key->rights.window_bind = window_bind;
  key->pages.clear();
  for (std::size_t i = 0; i < request.pages.size(); ++i) key->pages[i] = request.pages[i];
  return MemOp::Ok;
}

AdminStatus Memory::create(std::uint32_t number, Key entry) {
  if (index_of(number) >= kKeys) return AdminStatus::BadNumber;
  entry.tag = tag_of(number);
  return keys_.emplace(index_of(number), std::move(entry)).second ? AdminStatus::Success : AdminStatus::Exists;
}

Task<AdminStatus> Memory::destroy(std::uint32_t number, bool fast, bool window) {
  const std::uint32_t index = index_of(number);
  Key* key = find(index);
  if (key == nullptr || is_window(*key) != window || (key->type == MptType::FastRegion) != fast)
    co_return AdminStatus::BadNumber;
  if (!fast && !window && key->tag != tag_of(number)) co_return AdminStatus::BadNumber;
  if (key->bound_windows != 0) co_return AdminStatus::InUse;
  if (window) unbind(*key);
  key->valid = false;
  co_await drain(index);
  keys_.erase(index);
  co_return AdminStatus::Success;
}

}  // namespace rnic::reference
