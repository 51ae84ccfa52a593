#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "model/root_complex.hpp"
#include "testbench/timeline/life.hpp"
#include "testbench/timeline/life_sink.hpp"

namespace rnic::testbench {

/// The work requests of one host that are not over: what TLPs and the NIC's signals say of each. A request is told
/// and forgotten when its CQE has been polled, when it retires in silence, or when its queue pair is forgotten.
class RequestBook {
 public:
  RequestBook(LifeSink& sink, unsigned host) : sink_(sink), host_(host) {}

  // TLPs
  void sent_to_nic(const model::HostRequest& request, std::uint64_t now);
  void passed(const model::TlpSeen& tlp, std::uint64_t now);

  // The NIC
  void fetch_asked(const rtl::WqeFetchReq& fetch, std::uint64_t now);
  void fetch_issued(std::uint64_t now);
  void fetch_answered(std::uint64_t now);
  /// The request of a send queue; null: it is over, or its queue pair is gone.
  [[nodiscard]] RequestPtr request(std::uint8_t qp, std::uint16_t index) const;
  /// Whether the send queue has a request that is not over.
  [[nodiscard]] bool has_requests(std::uint8_t qp) const { return !send_[qp].open.empty(); }
  /// The one that the queue pair works on.
  [[nodiscard]] RequestPtr current(std::uint8_t qp) const;
  void inflight(const rtl::Inflight& wqe, std::uint64_t turn, std::uint64_t now);
  /// A response of the peer to `qp` has come.
  void answered(std::uint8_t qp, const PacketPtr& packet, std::uint8_t syndrome, std::uint64_t now);
  void received(std::uint8_t qp, std::uint16_t index, std::uint64_t now);
  void retired(std::uint8_t qp, std::uint16_t index, bool failed, std::uint64_t now);
  void cqe(const CqeWrite& cqe, std::uint64_t now);
  void forget(std::uint8_t qp);
  /// Tells what there is.
  void finish();

 private:
  using Requests = std::deque<RequestPtr>;
  struct Queue {
    std::uint32_t qpn{};
    std::uint16_t producer{};
    Requests open;
  };
  struct Fetch {
    std::uint8_t qp{};
    std::uint16_t index{}, count{};
  };
  struct Write {
    std::uint64_t address{};
    std::vector<RequestPtr> posts;
    std::vector<RequestPtr> pieces;  ///< Of which it is a piece, and which others post
  };
  /// Of a UAR: what is being written to it.
  struct Window {
    std::vector<RequestPtr> posts;  ///< Not posted yet
    std::size_t bytes{}, next{};    ///< Of the WQE; where the next piece continues it
    bool early{};                   ///< A piece came before the beginning of its WQE
  };
  struct Entry {
    std::uint32_t end{};
    RequestPtr request;
  };

  [[nodiscard]] static RequestPtr find(const Queue& queue, std::uint16_t index);
  [[nodiscard]] RequestPtr find_or_add(Queue& queue, std::uint8_t qp, std::uint16_t index, bool receive);
  RequestPtr add(Queue& queue, std::uint32_t qpn, std::uint16_t index, bool receive);
  void post(Queue& queue, std::uint32_t qpn, std::uint16_t producer, bool receive, std::uint64_t now, Write& write);
  void write_window(Window& window, std::size_t offset, const model::HostRequest& request, std::uint64_t now,
                    Write& write);
  void polled(std::uint32_t cqn, std::uint32_t consumer, std::uint64_t now);
  void mark(const Fetch& fetch, Stage stage, std::uint64_t now);
  void drop(Queue& queue, const RequestPtr& request);
  void end_all(Queue& queue);

  LifeSink& sink_;
  unsigned host_;
  std::array<Queue, 256> send_, receive_;
  std::deque<Write> writes_;                 ///< Of the processor, not yet at the NIC
  std::map<std::uint64_t, Window> windows_;  ///< By address of the UAR
  std::deque<Fetch> asked_, issued_;
  std::map<std::uint64_t, RequestPtr> cqe_writes_;  ///< CQEs that have not left, by address
  std::map<std::uint32_t, std::deque<Entry>> cqs_;  ///< CQEs that have not been polled, by index of the CQ
};

}  // namespace rnic::testbench
