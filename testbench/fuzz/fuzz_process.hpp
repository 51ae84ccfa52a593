#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/kmd/port_tables.hpp"
#include "driver/umd/kernel_cq.hpp"
#include "driver/umd/kernel_fast_mr.hpp"
#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/kernel_mw.hpp"
#include "driver/umd/kernel_qp.hpp"
#include "driver/umd/kernel_srq.hpp"
#include "driver/umd/process_context.hpp"
#include "testbench/endpoint.hpp"
#include "testbench/fuzz/status_set.hpp"

namespace rnic::testbench {

/// A fault in what the kernel driver grants, put there on purpose: the fuzzer must find it.
enum class PlantedFault : std::uint8_t {
  kNone,
  kLongRegion,    ///< The granted region is 8 bytes longer than all checks are told
  kWritable,      ///< The region without the right to write, and to be reached from outside, has all rights
  kSharedDomain,  ///< The region of another domain is in the attacker's
  kLeakyByte,     ///< The region that peers may read, and not write, is one byte longer than all checks are told
  kLongList,      ///< The fast-register region takes a longer page list than all checks are told
  kWrongNak,      ///< A NAK of a remote access error is taken for one of a remote operational error
  kWrongStatus,   ///< Completions that say LocProtErr are taken to say LocLenErr
  kLostEntry,     ///< One completion in 64 is not seen
};

/// An attacker's process on one host: what the kernel driver gave it (a user access region, a protection domain, queue
/// pairs with a completion queue each, and memory), and the memory round it that it must never reach. It writes its
/// rings itself.
///
/// Made and destroyed in a thread of simulated time.
class FuzzProcess {
 public:
  /// The taint: what the attackers have, and what they say, has the top bit of each byte clear; what is another's has
  /// it set. So a single byte tells that it is where it may not be.
  static constexpr std::uint8_t kPlainBits = 0x7F;
  [[nodiscard]] static constexpr bool is_secret(std::uint8_t byte) { return (byte & ~kPlainBits) != 0; }
  static constexpr std::uint8_t kSecret = 0xEE;  ///< Round the attacker's memory; in memory of others others
  static constexpr std::uint32_t kGrantedBytes = 6'000;
  static constexpr unsigned kLogDepth = 4, kLogStride = 8;
  static constexpr std::uint32_t kQkey = 0x0F0F'1234;  ///< Of the datagram queue pairs
  /// Which are in these multicast groups.
  static constexpr std::array<kmd::Gid, 2> kGroups{{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 239, 1, 2, 3},
                                                    {0xFF, 0x0E, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}}};

  /// What a queue pair is for: the first kPlainQps are kRc, then comes one of each other kind.
  enum class Kind : std::uint8_t {
    kRc,
    kShared,  ///< RC, on a shared receive queue
    kUc,
    kUd,
    kFast,  ///< RC; fast registrations are executed, so the attacker is one of the kernel's clients
  };
  static constexpr std::size_t kPlainQps = 16, kQps = kPlainQps + 4;
  [[nodiscard]] static constexpr Kind kind_of(std::size_t number) {
    return static_cast<Kind>(number < kPlainQps ? 0 : number - kPlainQps + 1);
  }

  /// A key that a WQE asked for, lies included, and what it would open.
  struct Opening {
    std::uint32_t key{};
    std::uint64_t va{}, length{};
  };

  /// What may become of a send WQE.
  struct Expected {
    StatusSet statuses;
    bool silent = false;  ///< Success is not told
  };

  struct Qp {
    Kind kind{};
    std::uint32_t mtu = 0;
    std::unique_ptr<umd::KernelSrq> srq;  ///< kShared
    std::unique_ptr<umd::KernelMw> window1, window2;
    bool bound2 = false;  ///< window2 is, if everything has gone as posted
    std::unique_ptr<umd::KernelCq> cq;
    std::unique_ptr<umd::KernelQp> qp;
    std::uint32_t cq_consumer = 0;
    std::uint16_t sq_producer = 0, rq_producer = 0;
    std::map<std::uint16_t, Expected> expected;  ///< Send WQEs written, by index; those that have completed are gone
    /// Nothing was done since it was made that leaves open which requests the device has: no doorbell lied, nothing was
    /// written over a request, no queue was overfull.
    bool honest = true;
    bool lied_early = false;                 ///< While it was made
    std::uint16_t sq_rung = 0, rq_rung = 0;  ///< Producer indexes that were told
    std::uint16_t sq_next = 0, rq_next = 0;  ///< Of the next completion, if none is left out
    bool sq_failed = false;                  ///< A send completion was none of success
    bool changing = false;                   ///< Under the hands of the kernel driver: nothing may be posted
    bool failed = false;                     ///< A completion says so
    bool framed = false;  ///< A third party sends in the name of its peer, so few of its own requests get through
    std::uint16_t rq_completed = 0, sq_retired = 0;
    /// The device may have been told anything about it.
    void lied() {
      honest = false;
      lied_early = lied_early || changing;
    }
    [[nodiscard]] std::uint16_t receives() const { return static_cast<std::uint16_t>(rq_producer - rq_completed); }
    /// Send WQEs that have not retired, as the device last said.
    [[nodiscard]] std::uint16_t sends() const;
  };
  using Violation = std::function<void(const std::string&)>;

  /// Throws EndpointError.
  FuzzProcess(Endpoint& endpoint, PlantedFault planted, Violation violation);
  ~FuzzProcess();
  FuzzProcess(const FuzzProcess&) = delete;
  FuzzProcess& operator=(const FuzzProcess&) = delete;

  [[nodiscard]] Endpoint& endpoint() { return endpoint_; }
  [[nodiscard]] umd::ProcessContext& process() { return *process_; }
  [[nodiscard]] Qp& qp(std::size_t number) { return qps_.at(number); }
  [[nodiscard]] const Qp& qp(std::size_t number) const { return qps_.at(number); }
  [[nodiscard]] std::size_t qps() const { return qps_.size(); }

  /// Makes queue pair `number` anew, in INIT: by a reset, or by destroying and creating it. Throws EndpointError when
  /// the driver fails.
  void renew(std::size_t number, bool recreate);

  /// Takes and checks completions: they are of its own queue pairs, known, and no success of what cannot succeed.
  void poll();
  /// Looks at all memory that nobody was granted, and for secret bytes in what the attacker has.
  void check_memory();

  /// Memory of the process that it and its peers may read and write.
  [[nodiscard]] std::uint64_t granted() const { return reinterpret_cast<std::uint64_t>(granted_); }
  [[nodiscard]] std::uint32_t key() const { return region_->key(); }
  /// Keys that exist and give no right: of another domain, and without the right to write or to be reached from
  /// outside.
  [[nodiscard]] std::uint32_t foreign_key() const { return foreign_region_->key(); }
  [[nodiscard]] std::uint32_t read_only_key() const { return read_only_region_->key(); }
  /// A page list for FastRegister requests: kFastPages pages of the process, and behind them in the list pages that are
  /// not. Keys of its region have the index of fast_key().
  static constexpr std::uint32_t kFastPages = 4;
  [[nodiscard]] std::uint64_t page_list() const { return list_pages_.front(); }
  [[nodiscard]] std::span<const std::uint64_t> listed_pages() const { return listed_pages_; }
  [[nodiscard]] std::uint32_t fast_key() const { return fast_region_->key(); }
  bool registered = false;  ///< The fast-register region is, if everything has gone as posted

  /// Memory that peers may read, and not write.
  static constexpr std::uint32_t kShownBytes = 1'237;
  [[nodiscard]] std::uint64_t shown() const { return reinterpret_cast<std::uint64_t>(shown_); }
  [[nodiscard]] std::uint32_t shown_key() const { return shown_region_->key(); }
  /// For what comes to the datagram queue pairs: their GRH has any bits, so nothing of it is sent or shown.
  static constexpr std::uint32_t kDatagramBytes = 4'096;
  [[nodiscard]] std::uint64_t datagrams() const { return reinterpret_cast<std::uint64_t>(datagrams_); }
  [[nodiscard]] std::uint32_t datagram_key() const { return datagram_region_->key(); }

  void opened(const Opening& opening);
  [[nodiscard]] const std::deque<Opening>& openings() const { return openings_; }

  static constexpr std::uint32_t kOtherBytes = 4096;  ///< Of foreign and of read-only memory
  [[nodiscard]] std::uint64_t foreign() const { return reinterpret_cast<std::uint64_t>(foreign_); }
  [[nodiscard]] std::uint64_t read_only() const { return reinterpret_cast<std::uint64_t>(read_only_); }

  [[nodiscard]] std::uint64_t completions() const { return completions_; }
  [[nodiscard]] std::uint64_t successes() const { return successes_; }
  /// Completions of which was known what they may say.
  [[nodiscard]] std::uint64_t judged() const { return judged_; }

 private:
  static constexpr std::size_t kAllFastPages = 3 * kFastPages, kOpenings = 8;

  void poll(Qp& qp);
  void judge_send(Qp& qp, const hw::Cqe& cqe);
  void judge_receive(Qp& qp, const hw::Cqe& cqe);
  void check_flushed(Qp& qp);
  void create(Qp& qp);
  void create_fast_region();
  void check(const std::uint8_t* memory, std::size_t bytes, std::uint8_t expected, const char* what);
  void check_plain(const std::uint8_t* memory, std::size_t bytes, const char* what);
  enum class Rights : std::uint8_t { kAll, kLocalRead, kRemoteRead, kLocalWrite };
  [[nodiscard]] std::unique_ptr<umd::KernelMr> make_region(umd::ProcessContext& owner, const void* memory,
                                                           std::size_t bytes, Rights rights);

  Endpoint& endpoint_;
  Violation violation_;
  std::shared_ptr<umd::ProcessContext> process_, bystander_;
  std::uint8_t* arena_;  ///< The granted memory, with guards round it in the same pages
  std::uint8_t* granted_;
  std::uint8_t* read_only_;  ///< A page
  std::uint8_t* foreign_;    ///< A page
  std::uint8_t *shown_page_, *shown_;
  std::uint8_t* datagrams_;
  std::unique_ptr<umd::KernelMr> region_, read_only_region_, foreign_region_, shown_region_, datagram_region_;
  const PlantedFault planted_;
  std::uint8_t* fast_memory_;  ///< kAllFastPages pages; those in the middle are granted
  std::uint8_t* list_;         ///< A page
  std::vector<std::uint64_t> fast_pages_, list_pages_, listed_pages_;
  std::unique_ptr<umd::KernelFastMr> fast_region_;
  std::deque<Opening> openings_;
  std::deque<Qp> qps_;
  std::uint64_t completions_ = 0, successes_ = 0, judged_ = 0;
};

}  // namespace rnic::testbench
