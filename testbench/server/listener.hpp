#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "driver/remote/descriptor.hpp"

namespace rnic::testbench {

/// A Unix socket at which processes of the same user find a host; it goes with the listener.
class Listener {
 public:
  /// Whether processes may send descriptors along.
  enum class Rights : std::uint8_t { kRefused, kTaken };
  /// Throws std::runtime_error when there is none to be had at `path`, or another machine is there.
  explicit Listener(std::string path, Rights rights = Rights::kRefused);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

  struct Peer {
    remote::Descriptor socket;   ///< Does not wait
    remote::Descriptor process;  ///< Can be read when the process has ended. None: it has, or is another user's
    std::int32_t number{};       ///< Of the process
  };
  /// The next process that has connected. Nothing: none has. Without a free descriptor the connection is closed.
  [[nodiscard]] std::optional<Peer> accept();

 private:
  [[nodiscard]] int accept_one();

  const std::string path_;
  remote::Descriptor socket_;
  remote::Descriptor reserve_;  ///< For a process that is sent away when no other descriptor is free
};

}  // namespace rnic::testbench
