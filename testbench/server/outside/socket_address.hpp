#pragma once

#include <sys/socket.h>

#include <filesystem>
#include <optional>
#include <string>

namespace rnic::testbench {

/// Where a socket of the system is: a path of the file system, or an IPv4 address and a port.
class SocketAddress {
 public:
  SocketAddress() = default;
  /// `text` with a slash in it is a path, which begins at `folder` if it is relative; otherwise it is ADDRESS:PORT.
  /// Nothing: it is neither, or the path is too long for a socket.
  [[nodiscard]] static std::optional<SocketAddress> read(const std::string& text, const std::filesystem::path& folder);

  [[nodiscard]] bool is_path() const { return address_.ss_family == AF_UNIX; }
  [[nodiscard]] int family() const { return address_.ss_family; }
  /// As it was read; of a path, with the folder.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  [[nodiscard]] socklen_t size() const { return size_; }
  [[nodiscard]] bool operator==(const sockaddr_storage& other) const;

 private:
  sockaddr_storage address_{};
  socklen_t size_ = 0;
  std::string text_;
};

}  // namespace rnic::testbench
