#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <windows.h>

#include <winsock2.h>

#include <ws2tcpip.h>

#include <ndspi.h>
#include <ndsupport.h>

/// What the examples share: one adapter, one completion queue, and connections on it, as a program for Windows has
/// them. Everything that fails ends the program with one line on the error output, and exit code 1.
namespace examples {

[[noreturn]] void fail(const std::string& what);
/// ND_SUCCESS, or the end.
void require(HRESULT status, const char* what);

/// Microseconds of the machine's time.
[[nodiscard]] double now_us();

[[nodiscard]] sockaddr_in address_of(const std::string& text, USHORT port);

/// Memory that the adapter may use: pages of its own, so that it lies the same in each run.
struct Memory {
  std::span<std::uint8_t> bytes;
  IND2MemoryRegion* region = nullptr;

  [[nodiscard]] ND2_SGE part(std::size_t offset, std::size_t length) {
    return {bytes.data() + offset, static_cast<ULONG>(length), region->GetLocalToken()};
  }
};

/// What one side tells the other when they connect.
struct Greeting {
  std::uint64_t address = 0;
  std::uint32_t token = 0;
};

class Session {
 public:
  /// Opens the adapter of a local address; requests and completions find room for `depth` of each kind.
  Session(const sockaddr_in& own, ULONG depth);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] IND2Adapter* adapter() { return adapter_; }
  [[nodiscard]] IND2QueuePair* pair() { return pair_; }
  [[nodiscard]] IND2Connector* connector() { return connector_; }
  [[nodiscard]] const ND2_ADAPTER_INFO& limits() const { return limits_; }
  /// ND_OP_FLAG_INLINE if so many bytes can go inside the request.
  [[nodiscard]] ULONG inline_flag(std::size_t bytes) const {
    return bytes <= limits_.MaxInlineDataSize ? ND_OP_FLAG_INLINE : 0;
  }

  [[nodiscard]] Memory allocate(std::size_t bytes, ULONG flags);
  void release(Memory& memory);

  /// Waits until an overlapped call has completed.
  void finish(IND2Overlapped* object, HRESULT status, const char* what);
  [[nodiscard]] OVERLAPPED* request() { return &request_; }

  /// A queue pair and a connector; those before are gone with disconnect().
  void begin();
  /// Server: from begin() on; takes the next connection of `listen`. What the peer has told.
  void listen(const sockaddr_in& own);
  Greeting accept(const Greeting& told);
  /// Client.
  Greeting connect(const sockaddr_in& own, const sockaddr_in& peer, const Greeting& told);
  /// Client: ends the connection. Server: waits until the peer has.
  void disconnect();
  /// The same where a request that has failed ends the connection, and neither side does.
  void wait_for_end();

  /// The next completion, by polling; it was a success.
  ND2_RESULT poll();
  /// Polls until a request of this kind is complete.
  ND2_RESULT poll(ND2_REQUEST_TYPE kind);
  /// The same, asleep until the completion queue notifies.
  ND2_RESULT wait(ND2_REQUEST_TYPE kind);
  /// The next completion, by polling; it may be a failure.
  ND2_RESULT poll_any();

 private:
  void leave();

  const ULONG depth_;
  IND2Adapter* adapter_ = nullptr;
  ND2_ADAPTER_INFO limits_{};
  HANDLE file_ = nullptr;
  OVERLAPPED request_{};
  IND2CompletionQueue* cq_ = nullptr;
  IND2QueuePair* pair_ = nullptr;
  IND2Connector* connector_ = nullptr;
  IND2Listener* listener_ = nullptr;
};

/// The arguments of a program with two sides.
struct Arguments {
  bool server = false;
  std::string address{};
  std::uint32_t size = 0;   ///< Bytes of a message
  std::uint32_t count = 0;  ///< Messages, or rounds
  std::uint32_t depth = 0;  ///< Requests under way
  bool other = false;       ///< The second of two kinds of work, by the name that the program gives it
};
/// Reads `PROGRAM server|client ADDRESS [--size N] [--count N] [--depth N] [--OTHER]`; on wrong use it says so and ends
/// with 2. Sizes and numbers of `defaults` that are 0 can't be asked for; nor can a second kind, if `other` is empty.
[[nodiscard]] Arguments read_arguments(int count, char* arguments[], const char* what, const Arguments& defaults,
                                       const std::string& other);
/// The addresses of both sides: port 54400.
[[nodiscard]] sockaddr_in server_address(const Arguments& arguments);
/// The client's own, from which the server is reached.
[[nodiscard]] sockaddr_in client_address(const Arguments& arguments);

}  // namespace examples
