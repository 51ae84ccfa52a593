#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace rnic::testbench {

/// Writes of several queue pairs to one place, and what a Read of it may find there: what some Write has written, and
/// nothing that another one has certainly replaced before the Read was posted.
///
/// A Write certainly stands behind one of its own queue pair that was posted before it (InfiniBand specification 9.5),
/// and behind one that had been acknowledged when it was posted. It is certainly there when it has been acknowledged,
/// or seen.
class CellHistory {
 public:
  CellHistory() { writes_.push_back({0, 0, 0, 0, 0, 0}); }

  /// `version` is another one each time, and not 0, which is what was there at the beginning. Moments are those of the
  /// order of the whole world.
  void posted(std::uint64_t version, std::uint32_t lane, std::uint64_t moment);
  void acknowledged(std::uint64_t version, std::uint64_t moment);
  /// What is wrong with a read, posted at `posted`, that found `version`; nothing: it is allowed. `whole`: it has seen
  /// all that the Write wrote.
  [[nodiscard]] std::optional<std::string> read(std::uint64_t version, std::uint64_t posted, std::uint64_t moment,
                                                bool whole);

 private:
  struct Write {
    std::uint64_t version;
    std::uint32_t lane;
    std::uint64_t posted, acknowledged;
    std::uint64_t replaced;     ///< From when on no read may begin that finds it; 0: not yet
    std::uint64_t replaced_by;  ///< Version
    [[nodiscard]] bool is_acknowledged() const { return version == 0 || acknowledged != 0; }
  };
  static constexpr std::size_t kRemembered = 1'024;

  [[nodiscard]] Write* find(std::uint64_t version);
  void replace(const Write& by, std::uint64_t moment);

  std::deque<Write> writes_;  ///< In the order in which they were posted
};

}  // namespace rnic::testbench
