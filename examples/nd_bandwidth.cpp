// Bandwidth: Reads, or (--write) Writes, of the server's memory through a window that it has bound.
#include <cstdio>
#include <cstring>

#include "pattern.hpp"
#include "session.hpp"

using namespace examples;

namespace {

constexpr std::uint32_t kOutstanding = 16;
constexpr std::uint32_t kOfServer = 1, kOfClient = 2;  ///< What their memory holds at the beginning

void check(const Memory& memory, std::uint32_t number) {
  if (!holds(memory.bytes, number)) fail("the memory does not hold what was read or written");
}

/// Binds a window over its memory, tells its token, and lets the peer work.
void serve(const Arguments& arguments) {
  Session session(server_address(arguments), 2 * kOutstanding);
  Memory memory = session.allocate(arguments.size, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
  Memory message = session.allocate(sizeof(Greeting), 0);
  fill(memory.bytes, kOfServer);
  IND2MemoryWindow* window = nullptr;
  require(session.adapter()->CreateMemoryWindow(IID_IND2MemoryWindow, reinterpret_cast<void**>(&window)),
          "CreateMemoryWindow");
  session.begin();
  session.listen(server_address(arguments));
  session.accept({});
  require(session.pair()->Bind(nullptr, memory.region, window, memory.bytes.data(), arguments.size,
                               ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE),
          "Bind");
  session.poll(Nd2RequestTypeBind);
  const Greeting told{reinterpret_cast<std::uintptr_t>(memory.bytes.data()), window->GetRemoteToken()};
  std::memcpy(message.bytes.data(), &told, sizeof told);
  const ND2_SGE sge = message.part(0, sizeof told);
  require(session.pair()->Send(nullptr, &sge, 1, 0), "Send");
  session.poll(Nd2RequestTypeSend);
  session.disconnect();
  check(memory, arguments.other ? kOfClient : kOfServer);
  window->Release();
  session.release(memory);
  session.release(message);
}

void work(const Arguments& arguments) {
  const sockaddr_in own = client_address(arguments);
  Session session(own, 2 * kOutstanding);
  Memory memory = session.allocate(arguments.size, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
  Memory message = session.allocate(sizeof(Greeting), ND_MR_FLAG_ALLOW_LOCAL_WRITE);
  fill(memory.bytes, kOfClient);
  session.begin();
  const ND2_SGE place = message.part(0, sizeof(Greeting));
  require(session.pair()->Receive(nullptr, &place, 1), "Receive");
  session.connect(own, server_address(arguments), {});
  session.poll(Nd2RequestTypeReceive);
  Greeting peer;
  std::memcpy(&peer, message.bytes.data(), sizeof peer);
  const ND2_SGE sge = memory.part(0, arguments.size);
  const double begin = now_us();
  std::uint32_t posted = 0, done = 0;
  while (done < arguments.count) {
    for (; posted < arguments.count && posted - done < kOutstanding; ++posted) {
      require(arguments.other ? session.pair()->Write(nullptr, &sge, 1, peer.address, peer.token, 0)
                              : session.pair()->Read(nullptr, &sge, 1, peer.address, peer.token, 0),
              arguments.other ? "Write" : "Read");
    }
    session.poll();
    ++done;
  }
  const double us = now_us() - begin;
  check(memory, arguments.other ? kOfClient : kOfServer);
  session.disconnect();
  session.release(memory);
  session.release(message);
  std::printf("%8s %10s %10s %14s %14s\n", "request", "bytes", "requests", "MB/s", "requests/ms");
  std::printf("%8s %10u %10u %14.1f %14.1f\n", arguments.other ? "write" : "read", arguments.size, arguments.count,
              static_cast<double>(arguments.size) * arguments.count / us, arguments.count * 1e3 / us);
}

}  // namespace

int main(int count, char* words[]) {
  const Arguments arguments = read_arguments(count, words, "Bandwidth through a memory window that is bound",
                                             {.size = 65536, .count = 1000}, "write");
  require(NdStartup(), "NdStartup");
  arguments.server ? serve(arguments) : work(arguments);
  require(NdCleanup(), "NdCleanup");
}
