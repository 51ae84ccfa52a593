#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "driver/win32/last_error.hpp"
#include "driver/win32/ws2tcpip.h"

using namespace rnic::win32;

namespace {

std::atomic<int>& startups() {
  static std::atomic<int> count;
  return count;
}

int fail_socket(int error) { return fail(static_cast<DWORD>(error), SOCKET_ERROR); }

/// Addresses have no character beyond ASCII; what has becomes text that is none.
std::string narrow(std::wstring_view wide) {
  std::string text;
  for (const wchar_t character : wide) text += character > 0 && character < 0x80 ? static_cast<char>(character) : '?';
  return text;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return port;
}

struct HostAndPort {
  std::string host;
  std::uint16_t port;
};

/// "host", "host:port" (one colon), "[host]", "[host]:port".
std::optional<HostAndPort> split(std::string_view text) {
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string host(text.substr(1, close - 1));
    const auto rest = text.substr(close + 1);
    if (rest.empty()) return HostAndPort{host, 0};
    const auto port = rest.starts_with(':') ? parse_port(rest.substr(1)) : std::nullopt;
    return port ? std::optional(HostAndPort{host, *port}) : std::nullopt;
  }
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos)
    return HostAndPort{std::string(text), 0};
  const auto port = parse_port(text.substr(colon + 1));
  return port ? std::optional(HostAndPort{std::string(text.substr(0, colon)), *port}) : std::nullopt;
}

template <typename Address>
int store(const Address& from, LPSOCKADDR address, INT* length) {
  const bool room = address != nullptr && *length >= static_cast<INT>(sizeof from);
  *length = sizeof from;
  if (!room) return fail_socket(WSAEFAULT);
  std::memcpy(address, &from, sizeof from);
  return 0;
}

template <typename Character>
int write_text(const std::string& from, Character* text, LPDWORD length) {
  const auto needed = static_cast<DWORD>(from.size() + 1);
  const bool room = text != nullptr && *length >= needed;
  *length = needed;
  if (!room) return fail_socket(WSAEFAULT);
  *std::copy(from.begin(), from.end(), text) = 0;
  return 0;
}

std::optional<std::string> text_of(const sockaddr* address, DWORD bytes) {
  char host[INET6_ADDRSTRLEN];
  if (address == nullptr || bytes < sizeof(sa_family_t)) return std::nullopt;
  if (address->sa_family == AF_INET && bytes >= sizeof(sockaddr_in)) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(*address);
    inet_ntop(AF_INET, &in.sin_addr, host, sizeof host);
    return in.sin_port == 0 ? host : std::string(host) + ':' + std::to_string(ntohs(in.sin_port));
  }
  if (address->sa_family == AF_INET6 && bytes >= sizeof(sockaddr_in6)) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(*address);
    inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof host);
    std::string text = host;
    if (in6.sin6_scope_id != 0) text += '%' + std::to_string(in6.sin6_scope_id);
    return in6.sin6_port == 0 ? text : '[' + text + "]:" + std::to_string(ntohs(in6.sin6_port));
  }
  return std::nullopt;
}

template <typename Character>
int address_to_string(const sockaddr* address, DWORD bytes, Character* text, LPDWORD length) {
  const auto written = text_of(address, bytes);
  if (!written || length == nullptr) return fail_socket(WSAEINVAL);
  return write_text(*written, text, length);
}

/// Takes the number of a scope off the end of an address: "fe80::1%2".
std::optional<std::uint32_t> take_scope(std::string& host) {
  const auto percent = host.find('%');
  if (percent == std::string::npos) return 0;
  const auto scope = parse_port(std::string_view(host).substr(percent + 1));
  host.resize(percent);
  return scope;
}

}  // namespace

int WSAStartup(WORD version, LPWSADATA data) {
  constexpr WORD kNewest = MAKEWORD(2, 2);
  if (data == nullptr) return WSAEFAULT;
  if (LOBYTE(version) == 0) return WSAVERNOTSUPPORTED;
  const bool older = LOBYTE(version) < 2 || (LOBYTE(version) == 2 && HIBYTE(version) < 2);
  *data = {.wVersion = older ? version : kNewest, .wHighVersion = kNewest, .szDescription = {}, .szSystemStatus = {}};
  ++startups();
  return 0;
}

int WSACleanup() {
  int count = startups();
  while (count > 0)
    if (startups().compare_exchange_weak(count, count - 1)) return 0;
  return fail_socket(WSANOTINITIALISED);
}

int WSAGetLastError() { return static_cast<int>(GetLastError()); }

void WSASetLastError(int error) { SetLastError(static_cast<DWORD>(error)); }

int WSAStringToAddress(LPCSTR text, INT family, LPWSAPROTOCOL_INFO, LPSOCKADDR address, INT* length) {
  if (text == nullptr || length == nullptr) return fail_socket(WSAEINVAL);
  auto parts = split(text);
  if (!parts) return fail_socket(WSAEINVAL);
  if (family == AF_INET) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(parts->port);
    if (inet_pton(AF_INET, parts->host.c_str(), &in.sin_addr) != 1) return fail_socket(WSAEINVAL);
    return store(in, address, length);
  }
  if (family == AF_INET6) {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(parts->port);
    const auto scope = take_scope(parts->host);
    if (!scope || inet_pton(AF_INET6, parts->host.c_str(), &in6.sin6_addr) != 1) return fail_socket(WSAEINVAL);
    in6.sin6_scope_id = *scope;
    return store(in6, address, length);
  }
  return fail_socket(WSAEINVAL);
}

int WSAStringToAddress(LPCWSTR text, INT family, LPWSAPROTOCOL_INFO protocol, LPSOCKADDR address, INT* length) {
  if (text == nullptr) return fail_socket(WSAEINVAL);
  return WSAStringToAddress(narrow(text).c_str(), family, protocol, address, length);
}

int WSAAddressToString(const sockaddr* address, DWORD bytes, LPWSAPROTOCOL_INFO, LPSTR text, LPDWORD length) {
  return address_to_string(address, bytes, text, length);
}

int WSAAddressToString(const sockaddr* address, DWORD bytes, LPWSAPROTOCOL_INFO, LPWSTR text, LPDWORD length) {
  return address_to_string(address, bytes, text, length);
}

INT InetPton(INT family, LPCSTR text, PVOID address) {
  if (family != AF_INET && family != AF_INET6) return fail_socket(WSAEAFNOSUPPORT);
  return inet_pton(family, text, address);
}

INT InetPton(INT family, LPCWSTR text, PVOID address) { return InetPton(family, narrow(text).c_str(), address); }

LPCSTR InetNtop(INT family, const void* address, LPSTR text, SIZE_T room) {
  if (family != AF_INET && family != AF_INET6) return fail(static_cast<DWORD>(WSAEAFNOSUPPORT), LPCSTR{});
  const char* const written = inet_ntop(family, address, text, static_cast<socklen_t>(room));
  return written != nullptr ? written : fail(static_cast<DWORD>(WSAEINVAL), LPCSTR{});
}

LPCWSTR InetNtop(INT family, const void* address, LPWSTR text, SIZE_T room) {
  char narrow_text[INET6_ADDRSTRLEN];
  if (InetNtop(family, address, narrow_text, sizeof narrow_text) == nullptr) return nullptr;
  const std::size_t length = std::strlen(narrow_text) + 1;
  if (length > room) return fail(static_cast<DWORD>(WSAEINVAL), LPCWSTR{});
  std::copy(narrow_text, narrow_text + length, text);
  return text;
}
