// A program of NetworkDirect whose connections come and go: `nd2_connections server ADDRESS COUNT` takes them,
// `nd2_connections client ADDRESS COUNT` makes and ends them. Eight are under way at any time, and two threads take
// what has completed from one completion port. The first call that fails ends the program. It knows the published
// interfaces and nothing of this project.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "program_parts.hpp"

using namespace program_parts;

namespace {

constexpr unsigned kUnderWay = 8, kThreads = 2, kSteps = 3;
constexpr USHORT kPort = 22000;
constexpr const char* kNames[2][kSteps] = {{"Connect", "CompleteConnect", "Disconnect"},
                                           {"GetConnectionRequest", "Accept", "NotifyDisconnect"}};

/// What all connections of the program share.
struct Program {
  Program(IND2Adapter* of, const sockaddr_in& local, const sockaddr_in& at, bool serves, unsigned count)
      : adapter(of), file(of), own(local), address(at), server(serves), left(count), unfinished(count) {
    port = CreateIoCompletionPort(file.handle, nullptr, 0, kThreads);
    require(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file.handle, 64, 0, 0, queue.put()),
            "CreateCompletionQueue");
    if (!server) return;
    require(adapter->CreateListener(IID_IND2Listener, file.handle, listener.put()), "CreateListener");
    require(listener->Bind(generic(address), sizeof address), "Bind of the listener");
    require(listener->Listen(0), "Listen");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { CloseHandle(port); }

  IND2Adapter* const adapter;
  const File file;
  const sockaddr_in own;
  const sockaddr_in address;  ///< Of the server
  const bool server;
  HANDLE port = nullptr;
  Owned<IND2CompletionQueue> queue;
  Owned<IND2Listener> listener;
  std::atomic<unsigned> left;        ///< To be begun
  std::atomic<unsigned> unfinished;  ///< That have not ended
};

/// Makes one connection after the other. It has one request under way at a time, whose completion begins the next step.
class Slot : public OVERLAPPED {
 public:
  explicit Slot(Program& program) : OVERLAPPED{}, program_(program) {}
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  void begin() {
    unsigned left = program_.left;
    while (left != 0 && !program_.left.compare_exchange_weak(left, left - 1)) continue;
    if (left == 0) return;
    require(program_.adapter->CreateConnector(IID_IND2Connector, program_.file.handle, connector_.put()),
            "CreateConnector");
    require(program_.adapter->CreateQueuePair(IID_IND2QueuePair, program_.queue.get(), program_.queue.get(), nullptr, 1,
                                              1, 1, 1, 0, pair_.put()),
            "CreateQueuePair");
    step_ = 0;
    request();
  }

  void completed() {
    const bool of_listener = program_.server && step_ == 0;
    require(of_listener ? program_.listener->GetOverlappedResult(this, FALSE)
                        : connector_->GetOverlappedResult(this, FALSE),
            name());
    if (++step_ < kSteps) return request();
    pair_.end();
    connector_.end();
    if (--program_.unfinished != 0) return begin();
    for (unsigned i = 0; i < kThreads; ++i) PostQueuedCompletionStatus(program_.port, 0, 0, nullptr);
  }

 private:
  [[nodiscard]] const char* name() const { return kNames[program_.server][step_]; }
  /// Another thread may have the slot as soon as the request is made.
  void request() {
    const char* const what = name();
    const HRESULT status = program_.server ? serve() : ask();
    if (status != ND_PENDING) require(status, what);
  }
  HRESULT serve() {
    if (step_ == 0) return program_.listener->GetConnectionRequest(connector_.get(), this);
    if (step_ == 1) return connector_->Accept(pair_.get(), 1, 1, nullptr, 0, this);
    return connector_->NotifyDisconnect(this);
  }
  HRESULT ask() {
    if (step_ == 1) return connector_->CompleteConnect(this);
    if (step_ == 2) return connector_->Disconnect(this);
    require(connector_->Bind(generic(program_.own), sizeof program_.own), "Bind");
    return connector_->Connect(pair_.get(), generic(program_.address), sizeof program_.address, 1, 1, nullptr, 0, this);
  }

  Program& program_;
  Owned<IND2Connector> connector_;
  Owned<IND2QueuePair> pair_;
  unsigned step_ = 0;
};

void take_completions(HANDLE port) {
  for (;;) {
    DWORD bytes = 0;
    ULONG_PTR key = 0;
    OVERLAPPED* request = nullptr;
    if (!GetQueuedCompletionStatus(port, &bytes, &key, &request, INFINITE))
      require(E_FAIL, "GetQueuedCompletionStatus");
    if (request == nullptr) return;
    static_cast<Slot*>(request)->completed();
  }
}

void run(Program& program) {
  std::vector<std::unique_ptr<Slot>> slots;
  for (unsigned i = 0; i < kUnderWay; ++i) slots.push_back(std::make_unique<Slot>(program));
  for (auto& slot : slots) slot->begin();
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(take_completions, program.port);
  for (auto& thread : threads) thread.join();
}

}  // namespace

int main(int count, char* arguments[]) {
  if (count != 4) return 2;
  const bool server = std::string(arguments[1]) == "server";
  const sockaddr_in address = address_of(arguments[2], kPort);
  const auto number = static_cast<unsigned>(std::strtoul(arguments[3], nullptr, 10));
  require(NdStartup(), "NdStartup");
  {
    const sockaddr_in own = own_address_for(address);
    Owned<IND2Adapter> adapter;
    require(NdOpenAdapter(IID_IND2Adapter, generic(own), sizeof own, adapter.put()), "NdOpenAdapter");
    Program program(adapter.get(), own, address, server, number);
    run(program);
  }
  require(NdCleanup(), "NdCleanup");
  std::printf("%u connections\n", number);
  if (DllCanUnloadNow() != S_OK) std::printf("something stays\n");
  return 0;
}
