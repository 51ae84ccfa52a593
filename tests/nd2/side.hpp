#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "driver/nd2/handles.hpp"
#include "driver/nd2/ndspi.h"
#include "driver/umd/waiting.hpp"
#include "testbench/com_ptr.hpp"
#include "testbench/nd2_results.hpp"

namespace rnic::test {

using testbench::ComPtr;

inline sockaddr_in ipv4(const std::string& text, std::uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  REQUIRE(inet_pton(AF_INET, text.c_str(), &to.sin_addr) == 1);
  return to;
}
inline const sockaddr* generic(const sockaddr_in& to) { return reinterpret_cast<const sockaddr*>(&to); }

/// A request with an event of its own.
class Overlapped {
 public:
  explicit Overlapped(DeviceNode& node) { block.hEvent = nd2::create_event(node); }
  ~Overlapped() { nd2::close_handle(block.hEvent); }
  Overlapped(const Overlapped&) = delete;
  Overlapped& operator=(const Overlapped&) = delete;
  OVERLAPPED* operator&() { return &block; }
  [[nodiscard]] HRESULT status() const { return static_cast<HRESULT>(block.Internal); }

  OVERLAPPED block{};
};

/// What an application has on one side of a connection: an adapter, memory, queues.
struct Side {
  Side(DeviceNode& with, IND2Adapter* opened, std::string own_address)
      : node(with), adapter(opened), address(std::move(own_address)) {
    REQUIRE(adapter->CreateOverlappedFile(&file) == ND_SUCCESS);
    REQUIRE(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, 64, 0, 0, cq.put()) == ND_SUCCESS);
    REQUIRE(adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file, region.put()) == ND_SUCCESS);
    Overlapped request(node);
    REQUIRE(region->Register(memory.data(), memory.size(), ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ,
                             &request) == ND_PENDING);
    REQUIRE(region->GetOverlappedResult(&request, TRUE) == ND_SUCCESS);
  }
  ~Side() {
    region.reset();
    cq.reset();
    nd2::close_handle(file);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  ComPtr<IND2QueuePair> make_pair() {
    ComPtr<IND2QueuePair> pair;
    REQUIRE(adapter->CreateQueuePair(IID_IND2QueuePair, cq.get(), cq.get(), this, 8, 8, 1, 1, 64, pair.put()) ==
            ND_SUCCESS);
    return pair;
  }
  ComPtr<IND2Connector> make_connector(bool bound = true) {
    ComPtr<IND2Connector> connector;
    REQUIRE(adapter->CreateConnector(IID_IND2Connector, file, connector.put()) == ND_SUCCESS);
    if (bound) {
      const auto own = ipv4(address, 0);
      REQUIRE(connector->Bind(generic(own), sizeof own) == ND_SUCCESS);
    }
    return connector;
  }
  ComPtr<IND2Listener> make_listener(std::uint16_t port, ULONG backlog = 0) {
    ComPtr<IND2Listener> listener;
    REQUIRE(adapter->CreateListener(IID_IND2Listener, file, listener.put()) == ND_SUCCESS);
    const auto own = ipv4(address, port);
    REQUIRE(listener->Bind(generic(own), sizeof own) == ND_SUCCESS);
    REQUIRE(listener->Listen(backlog) == ND_SUCCESS);
    return listener;
  }
  ND2_SGE sge(ULONG bytes = 64) { return {memory.data(), bytes, region->GetLocalToken()}; }
  HRESULT receive(IND2QueuePair& pair, int context = 0) {
    const auto to = sge();
    return pair.Receive(reinterpret_cast<void*>(static_cast<std::intptr_t>(context)), &to, 1);
  }
  HRESULT send(IND2QueuePair& pair, int context = 0) {
    const auto from = sge();
    return pair.Send(reinterpret_cast<void*>(static_cast<std::intptr_t>(context)), &from, 1, 0);
  }
  /// The next result, by polls alone.
  ND2_RESULT result() {
    ND2_RESULT got{};
    const std::uint64_t end = node.machine().now_ns() + 10'000'000'000;
    while (cq->GetResults(&got, 1) == 0) {
      REQUIRE(node.machine().now_ns() < end);
      node.machine().elapse(200);
    }
    REQUIRE(testbench::is_listed(got));
    return got;
  }

  DeviceNode& node;
  IND2Adapter* const adapter;
  const std::string address;
  HANDLE file{};
  std::array<std::uint8_t, 256> memory{};
  ComPtr<IND2CompletionQueue> cq;
  ComPtr<IND2MemoryRegion> region;
};

/// Two sides, which may be on one host.
struct Sides {
  Side& a;
  Side& b;
};

/// A pair of connected queue pairs; a has asked.
struct Connected {
  ComPtr<IND2QueuePair> pair_a, pair_b;
  ComPtr<IND2Connector> a, b;
};

struct ConnectOptions {
  std::string caller_data{}, callee_data{};
  ULONG inbound_a = 4, outbound_a = 4, inbound_b = 4, outbound_b = 4;
};

inline std::uint16_t next_port() {
  static std::uint16_t port = 9000;
  return port++;
}

/// Waits for a call that pends.
template <typename Object>
HRESULT finish(Object& object, Overlapped& request, HRESULT called) {
  if (called != ND_PENDING) return called;
  return object.GetOverlappedResult(&request, TRUE);
}

/// Asks, without an answer yet.
inline HRESULT ask(Side&, IND2Connector& connector, IND2QueuePair& pair, const std::string& host, std::uint16_t port,
                   Overlapped& request, const ConnectOptions& options = {}) {
  const auto to = ipv4(host, port);
  return connector.Connect(&pair, generic(to), sizeof to, options.inbound_a, options.outbound_a,
                           options.caller_data.data(), static_cast<ULONG>(options.caller_data.size()), &request);
}

/// Connects them.
inline void join(Sides& sides, Connected& made, const ConnectOptions& options = {}) {
  Side &a = sides.a, &b = sides.b;
  const auto port = next_port();
  const auto listener = b.make_listener(port);
  Overlapped incoming(b.node), asked(a.node), accepted(b.node), completed(a.node);
  REQUIRE(listener->GetConnectionRequest(made.b.get(), &incoming) == ND_PENDING);
  REQUIRE(ask(a, *made.a, *made.pair_a, b.address, port, asked, options) == ND_PENDING);
  REQUIRE(listener->GetOverlappedResult(&incoming, TRUE) == ND_SUCCESS);
  REQUIRE(made.b->Accept(made.pair_b.get(), options.inbound_b, options.outbound_b, options.callee_data.data(),
                         static_cast<ULONG>(options.callee_data.size()), &accepted) == ND_PENDING);
  REQUIRE(made.a->GetOverlappedResult(&asked, TRUE) == ND_SUCCESS);
  REQUIRE(finish(*made.a, completed, made.a->CompleteConnect(&completed)) == ND_SUCCESS);
  REQUIRE(made.b->GetOverlappedResult(&accepted, TRUE) == ND_SUCCESS);
}

inline Connected connect(Sides& sides, const ConnectOptions& options = {}) {
  Connected made{sides.a.make_pair(), sides.b.make_pair(), sides.a.make_connector(), sides.b.make_connector(false)};
  join(sides, made, options);
  return made;
}

inline std::string data_of(IND2Connector& connector) {
  std::array<char, 256> data{};
  auto bytes = static_cast<ULONG>(data.size());
  REQUIRE(connector.GetPrivateData(data.data(), &bytes) == ND_SUCCESS);
  return data.data();
}

/// The cases, each on new sides.
struct Case {
  const char* name;
  std::function<void(Sides&)> run;
};
const std::vector<Case>& connection_cases();

}  // namespace rnic::test
