#include "testbench/server/outside/socket_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <charconv>
#include <cstring>

namespace rnic::testbench {

std::optional<SocketAddress> SocketAddress::read(const std::string& text, const std::filesystem::path& folder) {
  SocketAddress read;
  if (text.find('/') != std::string::npos) {
    read.text_ = (folder / text).lexically_normal().string();
    auto& to = reinterpret_cast<sockaddr_un&>(read.address_);
    if (read.text_.size() >= sizeof to.sun_path || read.text_.find('\0') != std::string::npos) return {};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, read.text_.data(), read.text_.size());
    read.size_ = sizeof to;
    return read;
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return {};
  read.text_ = text;
  auto& to = reinterpret_cast<sockaddr_in&>(read.address_);
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || stopped != end || port == 0) return {};
  if (inet_pton(AF_INET, text.substr(0, colon).c_str(), &to.sin_addr) != 1) return {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  read.size_ = sizeof to;
  return read;
}

bool SocketAddress::operator==(const sockaddr_storage& other) const {
  if (other.ss_family != address_.ss_family) return false;
  if (is_path()) return text_ == reinterpret_cast<const sockaddr_un&>(other).sun_path;
  const auto& own = reinterpret_cast<const sockaddr_in&>(address_);
  const auto& theirs = reinterpret_cast<const sockaddr_in&>(other);
  return own.sin_port == theirs.sin_port && own.sin_addr.s_addr == theirs.sin_addr.s_addr;
}

}  // namespace rnic::testbench
