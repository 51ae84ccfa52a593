#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "model/reference/clock.hpp"
#include "model/reference/numbers.hpp"
#include "model/reference/pcie.hpp"

namespace rnic::reference {

/// What an access needs of the memory behind a key.
enum class Right : std::uint8_t { LocalRead, LocalWrite, ReadSink, RemoteRead, RemoteWrite, RemoteAtomic };

struct Access {
  std::uint32_t key{};
  std::uint64_t va{}, bytes{};
  std::uint32_t pd{};
  std::uint8_t qp{};  ///< Index
  Right right{};
};

struct Rights {
  bool local_write{}, remote_read{}, remote_write{}, remote_atomic{}, window_bind{}, read_sink{};
};

/// What a key names: a region, a window, a fast-register region (InfiniBand specification 10.6).
struct Key {
  MptType type{};
  bool valid{};  ///< Registered, or bound
  std::uint8_t tag{};
  std::uint32_t pd{};
  std::uint64_t va{}, length{}, page_list{};
  std::uint8_t log_page{};
  Rights rights;
  bool remote_access{};                                    ///< Fast-register region: may have remote rights
  std::uint32_t max_pages{};                               ///< Fast-register region
  std::uint32_t inline_pages{};                            ///< Fast-register region: longest list in a request
  std::uint8_t bound_qp{};                                 ///< Window
  std::uint32_t mr_index{};                                ///< Window that is bound
  unsigned bound_windows{};                                ///< Region
  unsigned users{};                                        ///< DMA under way
  std::unordered_map<std::uint64_t, std::uint64_t> pages;  ///< Of the page list, what has been read
};

/// Local memory as a list of what lies together.
struct Piece {
  std::uint64_t address{};
  std::size_t bytes{};
};

/// While it lives, DMA for a key is under way, and who takes the key away waits.
using KeyUse = std::shared_ptr<void>;

struct Translation {
  Xlate status{};
  std::vector<Piece> pieces;
  KeyUse use, region_use;
};

struct BindRequest {
  std::uint32_t new_key{}, mr_key{};
  std::uint64_t va{}, length{};
  Rights rights;
  std::uint32_t pd{};
  std::uint8_t qp{};
  bool type2{};
};

struct FastRequest {
  std::uint32_t new_key{}, pd{};
  std::uint64_t va{}, length{}, page_list{};
  std::uint32_t first_offset{}, page_count{};
  std::uint8_t log_page{};
  Rights rights;
  bool inline_list{};
  std::vector<std::uint64_t> pages;  ///< The list, with inline_list
};

/// Memory translation and protection. Every access of a work request or a peer is checked here: key, domain, queue
/// pair, right, range, in this order (XlateStatus).
class Memory {
 public:
  explicit Memory(Nic& nic);

  /// Checks without reading a page list.
  [[nodiscard]] Xlate check(const Access& access);
  /// Zero bytes need no key (9.7.4.1.6, C9-88).
  Task<Translation> translate(Access access);

  /// Memory operations (10.6.7, 10.6.4). One that takes access away ends when no DMA under the old key is under way.
  Task<MemOp> bind(BindRequest request);
  Task<MemOp> invalidate(std::uint32_t key, std::uint32_t pd, std::uint8_t qp, bool remote);
  MemOp fast_register(const FastRequest& request);
  /// Unbinds the type 2B windows of a queue pair.
  void unbind(std::uint8_t qp);
  /// A bind of a type 1 window is undone.
  void undo_bind(std::uint32_t bound);

  AdminStatus create(std::uint32_t key, Key entry);
  /// Of a window and of a fast-register region the tag is not looked at.
  Task<AdminStatus> destroy(std::uint32_t key, bool fast, bool window);
  [[nodiscard]] Key* find(std::uint32_t index) {
    const auto it = keys_.find(index);
    return it == keys_.end() ? nullptr : &it->second;
  }

 private:
  Task<Done> drain(std::uint32_t index);
  [[nodiscard]] KeyUse use(std::uint32_t index);
  void unbind(Key& window);

  Nic& nic_;
  std::map<std::uint32_t, Key> keys_;  ///< By index
  Signal released_;
};

}  // namespace rnic::reference
