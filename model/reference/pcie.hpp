#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "model/reference/clock.hpp"
#include "model/reference/outside.hpp"

namespace rnic::reference {

class Nic;

/// A DMA read under way.
struct DmaRead {
  explicit DmaRead(Clock& clock) : over(clock) {}
  Bytes data;
  unsigned missing = 0;  ///< TLPs without all of their answers
  bool failed = false;
  Signal over;
};

/// The way to host memory. Requests leave in the order in which they are made, so a write is seen before all that
/// follows from it, and a read sees what was written before it (base specification 2.4.1).
class Pcie {
 public:
  explicit Pcie(Nic& nic) : nic_(nic), write_left_(clock()), watch_(clock(), [this] { expire(); }) {}

  /// Posted; cut at 4 KiB and at the maximum payload (2.2.7).
  void write(std::uint64_t address, const Bytes& data);
  /// Begins a read, cut at 4 KiB, at 512 bytes and at the maximum read request. Await `finish`.
  std::shared_ptr<DmaRead> begin(std::uint64_t address, std::size_t bytes);
  /// The bytes; nothing when an answer was an error or did not come in time.
  static Task<std::optional<Bytes>> finish(std::shared_ptr<DmaRead> read);
  Task<std::optional<Bytes>> read(std::uint64_t address, std::size_t bytes) { return finish(begin(address, bytes)); }

  void answer(const DmaAnswer& answer);
  /// The range of the time-out or its disable bit have changed: what is under way goes by the new ones (7.5.3.16).
  void retime();
  [[nodiscard]] bool quiet() const { return out.empty() && waiting_.empty() && pieces_.empty(); }
  /// The link has taken this read: its time begins.
  void left(const DmaTlp& tlp);

  /// Ends when all writes made by now have left: what follows from them on the wire may go.
  Task<Done> written();

  std::deque<DmaTlp> out;
  std::uint8_t timeout_range = 0;  ///< CompletionTimeoutRange

 private:
  struct Piece {
    std::shared_ptr<DmaRead> read;
    std::size_t offset{};  ///< In the read
    std::uint64_t address{};
    std::size_t bytes{}, come{};
    std::optional<Time> since;  ///< When it left, in time that counts
  };

  Clock& clock();
  [[nodiscard]] Time counted();
  [[nodiscard]] bool take_tag();
  [[nodiscard]] Time quarantine() const;
  void issue();
  void end(std::uint16_t tag, bool failed);
  void expire();

  Nic& nic_;
  Signal write_left_;
  std::uint64_t writes_ = 0, writes_left_ = 0;
  std::deque<Piece> waiting_;  ///< For a tag
  std::map<std::uint16_t, Piece> pieces_;
  std::map<std::uint16_t, Time> lost_;  ///< Tags of reads that were given up, and when: completions may still come
  std::uint16_t next_tag_ = 0;
  Deadline watch_;
  bool stopped_ = false;
  Time counted_ = 0, counted_at_ = 0;
};

}  // namespace rnic::reference
