#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "driver/generated/host_interface.hpp"
#include "model/iommu.hpp"
#include "testbench/guest/shared_rings.hpp"

namespace rnic::testbench {

/// A ring that the device fills, and how far both are. Indexes count modulo 2^24.
struct EntryQueue {
  WrittenRing ring;
  std::uint32_t producer = 0;  ///< Entries written
  std::uint32_t consumer = 0;  ///< Entries given back
};

struct SharedQp {
  std::uint8_t uar{};
  PostedRing send, receive;
  bool srq{};
  std::uint32_t srqn{};
  std::uint64_t record{};  ///< Address of the retired record
};

struct SharedCq {
  std::uint8_t uar{};
  EntryQueue entries;
  std::optional<WrittenRing> next;  ///< ResizeCq is under way
};

struct SharedSrq {
  std::uint8_t uar{};
  PostedRing ring;
  std::unordered_map<std::uint16_t, std::uint16_t> tags;  ///< Index of the newest WQE with a tag
};

enum class SharedKind : std::uint8_t { kSends, kReceives, kSharedReceives, kCompletions, kEvents, kRecord };

/// Where an address lies in what driver and device share.
struct SharedPlace {
  SharedKind kind{};
  std::uint32_t number{};  ///< QPN, SRQN, CQN, EQN
  std::uint64_t offset{};
};

/// The queues of a device by what its admin commands say: each from the completion of its creation to that of its
/// destruction.
class SharedObjects {
 public:
  explicit SharedObjects(const model::Iommu& memory) : memory_(memory) {}

  /// The device has read a command. False: it hands a ring over that the device writes, and that is not zeroed.
  [[nodiscard]] bool begin(const hw::AdminCommand& command);
  /// The device is about to say what came of it.
  void complete(const hw::AdminCommand& command, const hw::AdminCompletion& completion);
  /// What the device has begun with and not answered creates it.
  [[nodiscard]] bool under_way(hw::AdminOpcode creation, std::uint32_t number) const {
    return creations_.contains({creation, number});
  }
  void clear();

  [[nodiscard]] std::optional<SharedPlace> find(std::uint64_t address) const;
  [[nodiscard]] SharedQp* qp(std::uint32_t qpn);
  [[nodiscard]] SharedCq* cq(std::uint32_t cqn);
  [[nodiscard]] EntryQueue* eq(std::uint32_t eqn);
  [[nodiscard]] SharedSrq* srq(std::uint32_t srqn);

 private:
  struct Range {
    std::uint64_t bytes{};
    SharedKind kind{};
    std::uint32_t number{};
  };

  void create_qp(std::uint32_t qpn, const hw::AdminCreateQp& body);
  void destroy_qp(std::uint32_t qpn);
  void create_cq(std::uint32_t cqn, const hw::AdminCreateCq& body);
  void resize_cq(std::uint32_t cqn, bool done, const hw::AdminQueueState& state);
  void create_srq(std::uint32_t srqn, const hw::AdminCreateSrq& body);
  void modify_srq(std::uint32_t srqn, const hw::AdminModifySrq& body);
  void modify_qp(std::uint32_t qpn, const hw::AdminModifyQp& body);
  void place(std::uint64_t base, std::uint64_t bytes, SharedKind kind, std::uint32_t number);
  void forget_place(std::uint64_t base, SharedKind kind, std::uint32_t number);

  const model::Iommu& memory_;
  std::map<std::uint64_t, Range> ranges_;  ///< By address
  std::map<std::uint32_t, SharedQp> qps_;
  std::map<std::uint32_t, SharedCq> cqs_;
  std::map<std::uint32_t, EntryQueue> eqs_;
  std::map<std::uint32_t, SharedSrq> srqs_;
  std::set<std::pair<hw::AdminOpcode, std::uint32_t>> creations_;
  std::set<std::uint64_t> not_zeroed_;  ///< Bases of rings that were handed over so
};

}  // namespace rnic::testbench
