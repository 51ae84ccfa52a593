#include "testbench/traffic/traffic_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "driver/nd2/status_name.hpp"

namespace rnic::testbench {
namespace {

/// A Receive is posted so long before its SEND that it is there in time, whatever the links do.
constexpr std::uint64_t kReceiveLeadNs = 4'000;
/// Longest time by which a Receive follows its SEND.
constexpr std::uint64_t kMostLateNs = 60'000;
/// A Write's last bytes may still be on the way to the target's memory when its completion is seen (decisions 66): the
/// time until they are looked for first, and again.
constexpr std::uint64_t kSettleNs = 3'000;
/// Silent requests in a row: their slots and memory come free with the next one that reports.
constexpr std::uint32_t kMostSilent = 6;

std::size_t random_length(model::Random& random, const TrafficOptions& options) {
  if (random.chance(options.big_chance)) return random.below(options.big_bytes + 1);
  const std::size_t most = options.most_bytes;
  switch (random.below(8)) {
    case 0: return random.below(4);
    case 1: return random.below(std::min<std::size_t>(most, 100) + 1);
    case 2: return std::min<std::size_t>(most, 256 * random.below(20));
    case 3: return std::min<std::size_t>(most, 4096 + random.below(3) - 1);
    case 4: return random.below(most + 1);
    default: return random.below(std::min<std::size_t>(most, 6000) + 1);
  }
}

}  // namespace

TrafficStream::TrafficStream(const Ends& ends, const TrafficOptions& options, std::uint64_t seed, TrafficReport& report)
    : ends_(ends), options_(options), random_(seed), report_(report) {}

void TrafficStream::step() {
  if (broken_) return;
  settle();
  if (may_plan() && works_.size() < options_.window) plan();
  // Silent requests that nothing follows would never be known to be done.
  const bool last_is_silent = !works_.empty() && works_.back().silent() && works_.size() > options_.window / 2;
  if (!works_.empty() && works_.back().silent() && (!may_plan() || last_is_silent)) {
    works_.push_back({});
    works_.back().kind = TrafficKind::kWrite;
    ++planned_;
    silent_run_ = 0;
  }
  post_receives();
  post_requests();
  watch();
}

void TrafficStream::plan() {
  Work next;
  next.kind = static_cast<TrafficKind>(random_.below(kTrafficKinds));
  next.bytes = next.is_inline() ? random_.below(ends_.inline_bytes + 1) : random_length(random_, options_);
  if (next.is_inline()) next.flags |= ND_OP_FLAG_INLINE;
  if (random_.chance(0.2)) next.flags |= ND_OP_FLAG_READ_FENCE;
  if (next.is_send() && random_.chance(0.2)) next.flags |= ND_OP_FLAG_SEND_AND_SOLICIT_EVENT;
  if (silent_run_ < kMostSilent && random_.chance(0.3)) next.flags |= ND_OP_FLAG_SILENT_SUCCESS;
  if (!allocate(next)) return give_back(next);
  silent_run_ = next.silent() ? silent_run_ + 1 : 0;

  next.post_ns = now() + (options_.gap_ns == 0 ? 0 : random_.below(options_.gap_ns + 1));
  if (next.is_send()) {
    const bool late = random_.chance(options_.late_receive_chance);
    if (late)
      next.receive_ns = next.post_ns + random_.below(kMostLateNs);
    else
      next.post_ns = std::max(next.post_ns, now() + kReceiveLeadNs);
    receives_to_post_.push_back(planned_);
  } else {
    next.post_ns += options_.fill_lead_ns;
  }
  works_.push_back(std::move(next));
  ++planned_;
}

/// Memory for all of it, filled where bytes come from. False: there is no room for all; what there was is in the work.
bool TrafficStream::allocate(Work& work) {
  if (!cut(ends_.source, work.local, work.bytes)) return false;
  const bool read = work.kind == TrafficKind::kRead;
  if (work.is_send()) {
    const std::size_t extra = random_.chance(0.3) ? random_.below(500) : 0;
    if (!cut(ends_.sink, work.receive, work.bytes + extra)) return false;
  } else {
    auto piece = ends_.sink.take(work.bytes, random_);
    if (!piece) return false;
    work.remote.push_back({*piece, {}, {}});
  }
  for (auto& segment : read ? work.remote : work.local) {
    for (std::size_t i = 0; i < segment.piece.bytes; ++i)
      segment.piece.data[i] = static_cast<std::uint8_t>(random_.next() | options_.set_bits);
  }
  if (work.is_write()) spoil(work);
  if (!random_.chance(options_.own_region_chance)) return true;
  for (auto& segment : work.local) {
    if (!work.is_inline())
      register_segment(ends_.source, segment, read ? ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_RDMA_READ_SINK : 0);
  }
  for (auto& segment : work.receive) register_segment(ends_.sink, segment, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
  for (auto& segment : work.remote) {
    const bool windowed = segment.piece.bytes != 0 && random_.chance(options_.window_chance);
    // The window's rights are its own: the region needs none for the peer (decisions 21).
    const ULONG rights = windowed ? ND_MR_FLAG_ALLOW_LOCAL_WRITE
                         : read   ? ND_MR_FLAG_ALLOW_REMOTE_READ
                                  : ND_MR_FLAG_ALLOW_REMOTE_WRITE;
    register_segment(ends_.sink, segment, rights);
    if (windowed) {
      add_window(segment);
      work.window = WindowState::kToBind;
    }
  }
  return true;
}

/// Each byte of a Write's target differs from what the Write brings, which shows when all of it is there.
void TrafficStream::spoil(Work& work) {
  std::uint8_t* target = work.remote[0].piece.data;
  const auto free_bits = static_cast<std::uint8_t>(~options_.set_bits);
  for (const auto& [piece, region, window] : work.local) {
    for (std::size_t i = 0; i < piece.bytes; ++i) *target++ = piece.data[i] ^ free_bits;
  }
}

void TrafficStream::add_window(Segment& segment) {
  require_success(ends_.sink.endpoint().adapter().CreateMemoryWindow(IID_IND2MemoryWindow, segment.window.put()),
                  "CreateMemoryWindow");
}

/// Whether the request can be posted: it has no window, or that is bound.
bool TrafficStream::bind(Work& work, std::uint64_t number) {
  if (work.window == WindowState::kToBind) {
    auto& segment = work.remote[0];
    const ULONG right = work.kind == TrafficKind::kRead ? ND_OP_FLAG_ALLOW_READ : ND_OP_FLAG_ALLOW_WRITE;
    const HRESULT status = ends_.responder.Bind(reinterpret_cast<void*>(number), segment.region.get(),
                                                segment.window.get(), segment.piece.data, segment.piece.bytes, right);
    if (status != ND_NO_MORE_ENTRIES) {
      require_success(status, "IND2QueuePair::Bind");
      work.window = WindowState::kBinding;
    }
  }
  return work.window == WindowState::kNone || work.window == WindowState::kBound;
}

/// Whether nothing is bound any more, or only by a window that may go: some are invalidated, the others only released.
bool TrafficStream::close_window(Work& work, std::uint64_t number) {
  if (work.window == WindowState::kBound) {
    if (random_.chance(0.3)) {
      work.window = WindowState::kInvalid;
    } else {
      const HRESULT status =
          ends_.responder.Invalidate(reinterpret_cast<void*>(number), work.remote[0].window.get(), 0);
      if (status == ND_NO_MORE_ENTRIES) return false;
      require_success(status, "IND2QueuePair::Invalidate");
      work.window = WindowState::kInvalidating;
    }
  }
  return work.window == WindowState::kNone || work.window == WindowState::kInvalid;
}

void TrafficStream::on_window(const ND2_RESULT& result) {
  if (broken_) return;
  const auto number = reinterpret_cast<std::uintptr_t>(result.RequestContext);
  const bool is_bind = result.RequestType == Nd2RequestTypeBind;
  const char* const what = is_bind ? "Bind" : "Invalidate";
  if (result.Status != ND_SUCCESS)
    return wrong(fmt::format("{} for request {}: {}", what, number, nd2::describe_status(result.Status)));
  if (number < first_ || number >= first_ + works_.size() ||
      work(number).window != (is_bind ? WindowState::kBinding : WindowState::kInvalidating)) {
    return wrong(fmt::format("{} for request {} that has none under way", what, number));
  }
  work(number).window = is_bind ? WindowState::kBound : WindowState::kInvalid;
  ++(is_bind ? report_.binds : report_.invalidations);
  last_progress_ns_ = now();
}

/// `bytes` cut into segments somewhere in `arena`; some of them may be empty.
bool TrafficStream::cut(TrafficArena& arena, std::vector<Segment>& list, std::size_t bytes) {
  const std::size_t count =
      bytes == 0 ? random_.below(2) : 1 + random_.below(random_.chance(0.5) ? 2 : ends_.most_sges);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t length = i + 1 == count ? bytes : random_.chance(0.1) ? 0 : random_.below(bytes + 1);
    auto piece = arena.take(length, random_);
    if (!piece) return false;
    list.push_back({*piece, {}, {}});
    bytes -= length;
  }
  return true;
}

void TrafficStream::register_segment(TrafficArena& arena, Segment& segment, ULONG rights) {
  if (segment.piece.bytes == 0) return;
  segment.region = arena.endpoint().register_memory(segment.piece.data, segment.piece.bytes, rights);
  ++report_.registrations;
}

void TrafficStream::post_receives() {
  while (!receives_to_post_.empty() && work(receives_to_post_.front()).receive_ns <= now()) {
    const std::uint64_t number = receives_to_post_.front();
    std::vector<ND2_SGE> sges;
    for (auto& segment : work(number).receive) {
      sges.push_back({segment.piece.data, static_cast<ULONG>(segment.piece.bytes),
                      segment.region ? segment.region->GetLocalToken() : ends_.sink.local_token()});
    }
    const HRESULT status =
        ends_.responder.Receive(reinterpret_cast<void*>(number), sges.data(), static_cast<ULONG>(sges.size()));
    if (status == ND_NO_MORE_ENTRIES) return;
    require_success(status, "IND2QueuePair::Receive");
    receives_to_post_.pop_front();
    receives_posted_.push_back(number);
  }
}

void TrafficStream::post_requests() {
  while (posted_ < planned_ && work(posted_).post_ns <= now() && next_post_ns_ <= now()) {
    if (!bind(work(posted_), posted_)) return;
    const HRESULT status = post(work(posted_), posted_);
    if (status == ND_NO_MORE_ENTRIES) return;
    require_success(status, fmt::format("posting a {}", name(work(posted_).kind)));
    if (posted_ == requested_) last_progress_ns_ = now();
    work(posted_++).posted = true;
    if (options_.gap_ns != 0) next_post_ns_ = now() + random_.below(options_.gap_ns + 1);
  }
}

HRESULT TrafficStream::post(const Work& work, std::uint64_t number) {
  void* const context = reinterpret_cast<void*>(number);
  std::vector<ND2_SGE> sges;
  for (const auto& segment : work.local) {
    sges.push_back({segment.piece.data, static_cast<ULONG>(segment.piece.bytes),
                    segment.region ? segment.region->GetLocalToken() : ends_.source.local_token()});
  }
  const auto count = static_cast<ULONG>(sges.size());
  if (work.is_send()) return ends_.requester.Send(context, sges.data(), count, work.flags);
  UINT64 remote = 0;
  UINT32 token = ends_.sink.remote_token();
  if (!work.remote.empty()) {
    remote = reinterpret_cast<UINT64>(work.remote[0].piece.data);
    if (work.remote[0].region) token = work.remote[0].region->GetRemoteToken();
    if (work.remote[0].window) token = work.remote[0].window->GetRemoteToken();
  }
  if (work.kind == TrafficKind::kRead)
    return ends_.requester.Read(context, sges.data(), count, remote, token, work.flags);
  return ends_.requester.Write(context, sges.data(), count, remote, token, work.flags);
}

void TrafficStream::on_request(const ND2_RESULT& result) {
  if (broken_) return;
  const auto number = reinterpret_cast<std::uintptr_t>(result.RequestContext);
  // Results in posting order; silent ones are left out.
  while (requested_ < posted_ && work(requested_).silent() && (requested_ != number || result.Status == ND_SUCCESS))
    request_done(requested_++);
  if (requested_ >= posted_ || number != requested_)
    return wrong(fmt::format("result of request {} came when that of {} was due", number, requested_));
  if (result.Status != ND_SUCCESS) {
    return wrong(fmt::format("request {} ({}, {} bytes): {}", number, name(work(number).kind), work(number).bytes,
                             nd2::describe_status(result.Status)));
  }
  last_progress_ns_ = now();
  request_done(requested_++);
}

void TrafficStream::request_done(std::uint64_t number) {
  auto& done = work(number);
  done.requested = true;
  done.done_ns = done.look_ns = now();
  if (done.is_send()) return;  // its bytes are checked when the Receive reports them
  done.received = true;
  if (done.kind == TrafficKind::kRead)
    check(done, number);
  else
    done.look_ns += kSettleNs;
}

void TrafficStream::on_receive(const ND2_RESULT& result) {
  if (broken_) return;
  const auto number = reinterpret_cast<std::uintptr_t>(result.RequestContext);
  if (receives_posted_.empty() || receives_posted_.front() != number)
    return wrong(fmt::format("result of the Receive for request {} came out of order", number));
  if (result.Status != ND_SUCCESS) {
    return wrong(fmt::format("Receive for request {} ({} bytes): {}", number, work(number).bytes,
                             nd2::describe_status(result.Status)));
  }
  auto& done = work(number);
  if (!done.posted) return wrong(fmt::format("Receive for request {} was used before that was posted", number));
  if (result.BytesTransferred != done.bytes)
    return wrong(
        fmt::format("Receive for request {}: {} bytes, sent were {}", number, result.BytesTransferred, done.bytes));
  receives_posted_.pop_front();
  last_progress_ns_ = now();
  ++report_.receives;
  done.received = true;
  check(done, number);
}

/// Where the bytes at both ends are not equal, or what lies behind the message in a longer Receive is not untouched.
std::optional<std::string> TrafficStream::difference(const Work& work, std::uint64_t number) {
  const auto& sink = work.is_send() ? work.receive : work.kind == TrafficKind::kRead ? work.local : work.remote;
  const auto& source = work.kind == TrafficKind::kRead ? work.remote : work.local;
  auto from = source.begin();
  std::size_t at = 0, done = 0;
  for (const auto& segment : sink) {
    for (std::size_t i = 0; i < segment.piece.bytes; ++i, ++done) {
      while (from != source.end() && at == from->piece.bytes) ++from, at = 0;
      const std::uint8_t expected = done < work.bytes ? from->piece.data[at++] : TrafficArena::kUntouched;
      if (segment.piece.data[i] == expected) continue;
      return fmt::format("request {} ({}, {} bytes): byte {} is {:#04x}, must be {:#04x}", number, name(work.kind),
                         work.bytes, done, segment.piece.data[i], expected);
    }
  }
  return std::nullopt;
}

void TrafficStream::check(const Work& work, std::uint64_t number) {
  if (const auto text = difference(work, number)) wrong(*text);
}

void TrafficStream::settle() {
  while (!works_.empty()) {
    auto& oldest = works_.front();
    if (!oldest.requested || !oldest.received || oldest.look_ns > now()) return;
    if (!close_window(oldest, first_)) return;
    if (oldest.is_write()) {
      plant(oldest);
      const auto text = difference(oldest, first_);
      if (text && now() < oldest.done_ns + options_.hang_ns) {
        oldest.look_ns = now() + kSettleNs;
        return;
      }
      if (text) return wrong(*text);
    }
    ++report_.completed[static_cast<std::size_t>(oldest.kind)];
    report_.silent += oldest.silent();
    report_.bytes += oldest.bytes;
    give_back(oldest);
    works_.pop_front();
    ++first_;
  }
}

void TrafficStream::plant(Work& work) {
  constexpr std::uint64_t kFirst = 20;  // requests that are right
  if (options_.planted == PlantedSoakFault::kSpoiltWrite && first_ >= kFirst && !work.remote.empty()) spoil(work);
}

void TrafficStream::give_back(Work& work) {
  const auto free = [](TrafficArena& arena, std::vector<Segment>& list) {
    for (auto& segment : list) {
      segment.window.reset();
      if (segment.region) arena.endpoint().deregister(*segment.region);
      arena.give_back(segment.piece);
    }
    list.clear();
  };
  free(ends_.source, work.local);
  free(ends_.sink, work.receive);
  free(ends_.sink, work.remote);
}

void TrafficStream::watch() {
  if (broken_) return;
  const bool waits = requested_ < posted_ || (!receives_posted_.empty() && receives_posted_.front() < posted_);
  const bool window_waits = std::any_of(works_.begin(), works_.end(), [](const Work& one) {
    return one.window == WindowState::kBinding || one.window == WindowState::kInvalidating;
  });
  if (!waits && !window_waits) last_progress_ns_ = now();
  if (now() - last_progress_ns_ < options_.hang_ns) return;
  std::uint64_t outstanding = 0;
  for (const auto& one : works_) outstanding += one.posted && !(one.requested && one.received);
  report_.hung += std::max<std::uint64_t>(outstanding, 1);
  report_.note(fmt::format("{}: no completion for {} us, {} requests outstanding, the oldest is {} ({})", ends_.name,
                           options_.hang_ns / 1000, outstanding, requested_,
                           requested_ < posted_ ? name(work(requested_).kind) : "done; its Receive is not"));
  broken_ = true;
}

void TrafficStream::wrong(const std::string& text) {
  ++report_.wrong;
  report_.note(fmt::format("{}: {}", ends_.name, text));
  broken_ = true;
}

}  // namespace rnic::testbench
