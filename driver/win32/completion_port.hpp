#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "driver/win32/handle_table.hpp"
#include "driver/win32/surroundings.hpp"

namespace rnic::win32 {

/// A completion port: finished operations of the files that are bound to it, oldest first. Of the threads that wait the
/// one that came last is the first to get one, and with a limit no more threads work on packets at a time than that: a
/// thread works from getting one until it asks again (any port), waits for something else of this layer, or ends.
/// Thread safe.
class CompletionPort final : public HandleObject, public std::enable_shared_from_this<CompletionPort> {
 public:
  struct Packet {
    std::uintptr_t key{};
    OVERLAPPED* overlapped{};
    HRESULT status{};
    std::uintptr_t bytes{};
  };
  using Packets = std::list<Packet>;

  /// `own`: as for Waitable. `most_threads` 0: no limit.
  explicit CompletionPort(std::shared_ptr<Waiter> own = nullptr, unsigned most_threads = 0)
      : own_(std::move(own)), most_threads_(most_threads) {}

  /// Throws std::bad_alloc.
  void post(const Packet& packet);
  /// Posts the packets of a list, which needs no memory. Whoever sees them sees what `with` did.
  template <typename With>
  void post(Packets&& packets, With&& with) {
    {
      const std::lock_guard lock(mutex_);
      with();
      if (!closed_) packets_.splice(packets_.end(), packets);
      wake_waiting();
    }
    if (own_ != nullptr) own_->wake();
  }
  /// The oldest packet, if there is one.
  [[nodiscard]] std::optional<Packet> try_take();
  /// Waits for packets, and takes up to `most` of them at once. None: the port is closed, or `kDone` was not the end.
  /// Throws std::bad_alloc.
  [[nodiscard]] Waited take_some(std::size_t most, Packets& taken, std::uint64_t timeout_ns = kForever);
  /// The same, for one; nothing for whatever reason.
  [[nodiscard]] std::optional<Packet> take(std::uint64_t timeout_ns = kForever);

  /// Nobody gets anything any more.
  void on_handle_closed() override;

  /// The calling thread waits for something else meanwhile, and works on no packet.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    std::shared_ptr<CompletionPort> port_;
  };

 private:
  struct Work;
  class Place;

  [[nodiscard]] std::size_t takeable() const;
  void wake_waiting();
  void begin_work();
  void end_work();

  const std::shared_ptr<Waiter> own_;
  const unsigned most_threads_;
  std::mutex mutex_;
  Packets packets_;
  std::list<Waiter*> waiting_;  ///< The one that came last is the first
  unsigned working_{};
  bool closed_{};
};

/// Whoever has operations of a file that pend.
class Cancellable {
 public:
  Cancellable() = default;
  Cancellable(const Cancellable&) = delete;
  Cancellable& operator=(const Cancellable&) = delete;

  /// Cancels this operation, or, with null, all; whether there was one. What has been cancelled is final.
  virtual bool cancel(const OVERLAPPED* one) = 0;

 protected:
  ~Cancellable() = default;
};

/// A file on which overlapped operations are made.
class OverlappedFile final : public HandleObject {
 public:
  /// Throws std::bad_alloc.
  void add(std::weak_ptr<Cancellable> source);
  /// Cancels an operation of whoever was added, or, with null, all; whether there was one.
  bool cancel(const OVERLAPPED* one);

  /// From now on finished operations also post to `port`. False if it has a port already.
  bool bind(std::shared_ptr<CompletionPort> port, std::uintptr_t key);
  /// Posts the one packet of a list, if there is a port; runs `with` in any case. As CompletionPort::post.
  template <typename With>
  void post(CompletionPort::Packets&& packet, With&& with) {
    const std::lock_guard lock(mutex_);
    if (port_ == nullptr) return with();
    packet.front().key = key_;
    port_->post(std::move(packet), std::forward<With>(with));
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<CompletionPort> port_;
  std::uintptr_t key_{};
  std::mutex sources_mutex_;
  std::vector<std::weak_ptr<Cancellable>> sources_;
};

}  // namespace rnic::win32
