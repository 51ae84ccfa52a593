#include "testbench/fuzz/fuzz_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "driver/mmio.hpp"
#include "testbench/cqe_status_text.hpp"
#include "testbench/side_by_side.hpp"

namespace rnic::testbench {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kArenaBytes = 4 * kPage;
constexpr std::size_t kGrantedAt = kPage - 301;  // neither end is aligned; crosses pages
constexpr std::uint32_t kCqEntries = 256;
constexpr std::size_t kShownAt = 777;  // in a page
constexpr std::uint8_t kReadOnly = 0x5D, kShown = 0x66, kForeign = 0xC3, kBesideShown = 0xF5, kBesideList = 0x99;

bool known(std::uint8_t status) {
  switch (static_cast<hw::CqeStatus>(status)) {
    case hw::CqeStatus::kSuccess:
    case hw::CqeStatus::kLocLenErr:
    case hw::CqeStatus::kLocQpOpErr:
    case hw::CqeStatus::kLocProtErr:
    case hw::CqeStatus::kWrFlushErr:
    case hw::CqeStatus::kBadRespErr:
    case hw::CqeStatus::kRemInvReqErr:
    case hw::CqeStatus::kRemAccessErr:
    case hw::CqeStatus::kRemOpErr:
    case hw::CqeStatus::kRetryExcErr:
    case hw::CqeStatus::kRnrRetryExcErr: return true;
    default: return false;  // kFatalErr among them: no DMA of this process can fail
  }
}

}  // namespace

std::uint16_t FuzzProcess::Qp::sends() const {
  // The device tells it in entries, and in the record when there was none for a while: the smaller rest is the newer.
  const auto recorded = static_cast<std::uint16_t>(load_word(qp->retired_record()));
  return std::min(static_cast<std::uint16_t>(sq_producer - recorded),
                  static_cast<std::uint16_t>(sq_producer - sq_retired));
}

FuzzProcess::FuzzProcess(Endpoint& endpoint, PlantedFault planted, Violation violation)
    : endpoint_(endpoint), violation_(std::move(violation)), planted_(planted) {
  auto& memory = endpoint.host().memory();
  process_ =
      require_success(umd::ProcessContext::open(endpoint.kernel().kernel_node()), "opening the attacker's process");
  bystander_ = require_success(umd::ProcessContext::open(endpoint.kernel().node()), "opening the bystander's process");
  arena_ = static_cast<std::uint8_t*>(memory.allocate(kArenaBytes));
  read_only_ = static_cast<std::uint8_t*>(memory.allocate(kPage));
  foreign_ = static_cast<std::uint8_t*>(memory.allocate(kPage));
  std::memset(arena_, kSecret, kArenaBytes);
  std::memset(read_only_, kReadOnly, kPage);
  std::memset(foreign_, kForeign, kPage);
  granted_ = arena_ + kGrantedAt;
  std::memset(granted_, 0x33, kGrantedBytes);
  region_ =
      make_region(*process_, granted_, kGrantedBytes + (planted == PlantedFault::kLongRegion ? 8 : 0), Rights::kAll);
  read_only_region_ =
      make_region(*process_, read_only_, kPage, planted == PlantedFault::kWritable ? Rights::kAll : Rights::kLocalRead);
  foreign_region_ =
      make_region(planted == PlantedFault::kSharedDomain ? *process_ : *bystander_, foreign_, kPage, Rights::kAll);
  shown_page_ = static_cast<std::uint8_t*>(memory.allocate(kPage));
  shown_ = shown_page_ + kShownAt;
  std::memset(shown_page_, kBesideShown, kPage);
  std::memset(shown_, kShown, kShownBytes);
  shown_region_ =
      make_region(*process_, shown_, kShownBytes + (planted == PlantedFault::kLeakyByte ? 1 : 0), Rights::kRemoteRead);
  datagrams_ = static_cast<std::uint8_t*>(memory.allocate(kDatagramBytes));
  datagram_region_ = make_region(*process_, datagrams_, kDatagramBytes, Rights::kLocalWrite);
  fast_memory_ = static_cast<std::uint8_t*>(memory.allocate(kAllFastPages * kPage));
  list_ = static_cast<std::uint8_t*>(memory.allocate(kPage));
  std::memset(fast_memory_, kBesideList, kAllFastPages * kPage);
  std::memset(fast_memory_ + kFastPages * kPage, 0x44, kFastPages * kPage);
  auto& device = endpoint.device();
  fast_pages_ = require_success(device.map_pages(fast_memory_, kAllFastPages * kPage, true), "mapping pages");
  list_pages_ = require_success(device.map_pages(list_, kPage, false), "mapping a page list");
  listed_pages_ = fast_pages_;
  std::rotate(listed_pages_.begin(), listed_pages_.begin() + kFastPages, listed_pages_.end());
  std::memcpy(list_, listed_pages_.data(), listed_pages_.size() * sizeof listed_pages_[0]);
  create_fast_region();
  std::vector<std::function<void()>> tasks;
  for (std::size_t i = 0; i < kQps; ++i) {
    auto& qp = qps_.emplace_back();
    qp.kind = kind_of(i);
    tasks.emplace_back([this, &qp] {
      for (auto& [window, type] : {std::pair(&qp.window1, hw::MptType::kWindow1), {&qp.window2, hw::MptType::kWindow2}})
        *window = require_success(process_->create_mw({.type = type}), "creating a window");
      create(qp);
    });
  }
  side_by_side(tasks);
}

void FuzzProcess::create_fast_region() {
  const std::uint32_t pages = planted_ == PlantedFault::kLongList ? 2 * kFastPages : kFastPages;
  fast_region_ = require_success(process_->create_fast_mr({.max_pages = pages, .remote_access = true}),
                                 "creating a fast-register region");
  registered = false;
}

void FuzzProcess::opened(const Opening& opening) {
  openings_.push_back(opening);
  if (openings_.size() > kOpenings) openings_.pop_front();
}

FuzzProcess::~FuzzProcess() {
  std::vector<std::function<void()>> tasks;
  for (auto& one : qps_) {
    tasks.emplace_back([&qp = one] {
      qp.qp.reset();
      qp.srq.reset();
      qp.cq.reset();
      qp.window1.reset();
      qp.window2.reset();
    });
  }
  side_by_side(tasks);
  qps_.clear();
  fast_region_.reset();
  endpoint_.device().unmap_pages(list_, kPage, list_pages_);
  endpoint_.device().unmap_pages(fast_memory_, kAllFastPages * kPage, fast_pages_);
}

std::unique_ptr<umd::KernelMr> FuzzProcess::make_region(umd::ProcessContext& owner, const void* memory,
                                                        std::size_t bytes, Rights rights) {
  const bool all = rights == Rights::kAll;
  return require_success(owner.create_mr({.address = memory,
                                          .length = bytes,
                                          .local_write = all || rights == Rights::kLocalWrite,
                                          .remote_read = all || rights == Rights::kRemoteRead,
                                          .remote_write = all,
                                          .remote_atomic = all,
                                          .window_bind = all || rights == Rights::kLocalRead}),
                         "registering memory");
}

void FuzzProcess::create(Qp& qp) {
  qp.cq = require_success(process_->create_cq(kCqEntries), "creating a completion queue");
  qp.cq_consumer = 0;
  umd::QpSpec spec{.send_cq = qp.cq->handle(),
                   .receive_cq = qp.cq->handle(),
                   .sq_log_depth = kLogDepth,
                   .sq_log_stride = kLogStride,
                   .rq_log_depth = kLogDepth,
                   .rq_log_stride = kLogStride};
  if (qp.kind == Kind::kShared) {
    qp.srq = require_success(process_->create_srq({.log_depth = kLogDepth, .log_stride = kLogStride}),
                             "creating a shared receive queue");
    spec.srq = qp.srq->handle();
  }
  spec.fast_register = qp.kind == Kind::kFast;
  spec.type = qp.kind == Kind::kUc ? hw::QpType::kUc : qp.kind == Kind::kUd ? hw::QpType::kUd : hw::QpType::kRc;
  qp.qp = require_success(process_->create_qp(spec), "creating a queue pair");
  if (qp.kind != Kind::kUd) return;
  for (const auto& group : kGroups) require_success(qp.qp->attach_multicast(group), "joining a multicast group");
}

void FuzzProcess::renew(std::size_t number, bool recreate) {
  auto& qp = qps_.at(number);
  qp.changing = true;
  // A shared receive queue that had a malformed request is of no use any more.
  if (recreate || qp.srq) {
    require_success(qp.qp->destroy_with_ties(), "destroying a queue pair");
    poll(qp);
    check_flushed(qp);
    if (qp.srq) require_success(qp.srq->destroy(), "destroying a shared receive queue");
    require_success(qp.cq->destroy(), "destroying a completion queue");
    create(qp);
  } else {
    require_success(qp.qp->to_reset(), "resetting a queue pair");
    poll(qp);
    check_flushed(qp);
  }
  if (qp.kind == Kind::kFast) {
    require_success(fast_region_->destroy(), "destroying a fast-register region");
    create_fast_region();
  }
  // A doorbell that lies may ask for requests that have not been written yet: those of the life before must not stand
  // there, good as they were.
  std::memset(qp.qp->send_ring(), 0, std::size_t{1} << (kLogDepth + kLogStride));
  qp.expected.clear();
  qp.bound2 = qp.failed = qp.sq_failed = false;
  qp.honest = true;
  qp.sq_producer = qp.rq_producer = qp.rq_completed = qp.sq_retired = 0;
  qp.sq_rung = qp.rq_rung = qp.sq_next = qp.rq_next = 0;
  require_success(qp.qp->to_init({}), "INIT of a queue pair");
}

void FuzzProcess::poll() {
  for (auto& qp : qps_) {
    if (!qp.changing) poll(qp);
  }
}

void FuzzProcess::poll(Qp& qp) {
  const auto& ring = qp.cq->ring();
  const std::uint32_t mask = (1u << ring.log_depth) - 1, first = qp.cq_consumer;
  for (;; ++qp.cq_consumer) {
    const std::uint8_t* const entry = ring.entries + std::size_t{qp.cq_consumer & mask} * hw::Cqe::kBytes;
    const std::uint8_t expected = (qp.cq_consumer >> ring.log_depth) % 2 == 0 ? 1 : 0;
    if (load_phase({entry, hw::Cqe::kBytes}) != expected) break;
    std::array<std::uint8_t, hw::Cqe::kBytes> raw;
    std::copy_n(entry, raw.size(), raw.begin());
    auto cqe = hw::Cqe::decode(raw);
    ++completions_;
    if (planted_ == PlantedFault::kLostEntry && completions_ % 64 == 0) continue;
    if (planted_ == PlantedFault::kWrongStatus && cqe.status == static_cast<std::uint8_t>(hw::CqeStatus::kLocProtErr))
      cqe.status = static_cast<std::uint8_t>(hw::CqeStatus::kLocLenErr);
    successes_ += cqe.status == 0;
    qp.failed = qp.failed || cqe.status != 0;
    if (cqe.is_receive != 0)
      ++qp.rq_completed;
    else
      qp.sq_retired = cqe.retired_index;
    if (cqe.qpn != qp.qp->qpn())
      violation_(fmt::format("host {}: completion of queue pair {:#x} in the queue of {:#x}", endpoint_.host().index(),
                             cqe.qpn, qp.qp->qpn()));
    if (!known(cqe.status))
      violation_(fmt::format("host {}: completion with {}", endpoint_.host().index(),
                             cqe_status_text(static_cast<hw::CqeStatus>(cqe.status))));
    cqe.is_receive != 0 ? judge_receive(qp, cqe) : judge_send(qp, cqe);
  }
  if (qp.cq_consumer == first) return;
  process_->ring(hw::uar::kCqDoorbell,
                 hw::CqDoorbell{.cqn = qp.cq->cqn(), .arm = 0, .consumer_index = qp.cq_consumer & 0xffffff}.word());
}

void FuzzProcess::check_memory() {
  check(arena_, kGrantedAt, kSecret, "before the granted memory");
  check(granted_ + kGrantedBytes, kArenaBytes - kGrantedAt - kGrantedBytes, kSecret, "behind the granted memory");
  check(read_only_, kPage, kReadOnly, "in memory without the right to write");
  check(foreign_, kPage, kForeign, "in memory of another domain");
  check(shown_page_, kShownAt, kBesideShown, "before the memory that is shown");
  check(shown_ + kShownBytes, kPage - kShownAt - kShownBytes, kBesideShown, "behind the memory that is shown");
  check(shown_, kShownBytes, kShown, "in memory that peers may not write");
  check(fast_memory_, kFastPages * kPage, kBesideList, "in pages before those of the page list");
  check(fast_memory_ + 2 * kFastPages * kPage, kFastPages * kPage, kBesideList,
        "in pages behind those of the page list");
  check_plain(granted_, kGrantedBytes, "in the granted memory");
  check_plain(fast_memory_ + kFastPages * kPage, kFastPages * kPage, "in the pages of the page list");
}

void FuzzProcess::check_plain(const std::uint8_t* memory, std::size_t bytes, const char* what) {
  const auto* const secret = std::find_if(memory, memory + bytes, is_secret);
  if (secret == memory + bytes) return;
  violation_(fmt::format("host {}: a secret byte, {:#04x}, is {}, byte {}", endpoint_.host().index(), *secret, what,
                         secret - memory));
}

void FuzzProcess::check(const std::uint8_t* memory, std::size_t bytes, std::uint8_t expected, const char* what) {
  const auto* const changed = std::find_if(memory, memory + bytes, [&](std::uint8_t byte) { return byte != expected; });
  if (changed == memory + bytes) return;
  violation_(fmt::format("host {}: byte {} {} changed to {:#04x}", endpoint_.host().index(), changed - memory, what,
                         *changed));
}

}  // namespace rnic::testbench
