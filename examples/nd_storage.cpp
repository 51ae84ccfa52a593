// Storage: the server reads each piece of data out of memory that is open to it for as long as one request takes,
// through a window. In a kernel a fast registration stands in the place of the window (ndk_storage).
#include <cstdio>
#include <cstring>
#include <vector>

#include "session.hpp"
#include "storage.hpp"

using namespace examples;
using storage::Answer;
using storage::Request;

namespace {

/// A slot is bound, asks, and is invalidated; the other side reads and answers.
constexpr std::uint32_t kRequestsOfSlot = 4;

void* context_of(std::size_t slot) { return reinterpret_cast<void*>(slot); }
std::uint32_t slot_of(const ND2_RESULT& result) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(result.RequestContext));
}

/// Both sides: pieces of data, and messages, by slot.
class Side {
 public:
  Side(const Arguments& arguments, const sockaddr_in& own, std::uint32_t flags)
      : arguments_(arguments),
        session_(own, kRequestsOfSlot * arguments.depth),
        pieces_(session_.allocate(std::size_t{arguments.size} * arguments.depth, flags)),
        messages_(session_.allocate(sizeof(Request) * arguments.depth, ND_MR_FLAG_ALLOW_LOCAL_WRITE)) {
    session_.begin();
    for (std::uint32_t slot = 0; slot < arguments_.depth; ++slot) receive(slot);
  }
  ~Side() {
    session_.release(pieces_);
    session_.release(messages_);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

 protected:
  [[nodiscard]] std::span<std::uint8_t> piece(std::uint32_t slot) {
    return pieces_.bytes.subspan(std::size_t{arguments_.size} * slot, arguments_.size);
  }
  void receive(std::uint32_t slot) {
    const ND2_SGE sge = messages_.part(sizeof(Request) * slot, sizeof(Request));
    require(session_.pair()->Receive(context_of(slot), &sge, 1), "Receive");
  }
  /// What came into this receive.
  template <typename Message>
  Message message(std::uint32_t place) {
    Message came;
    std::memcpy(&came, messages_.bytes.data() + sizeof(Request) * place, sizeof came);
    receive(place);
    if (came.slot >= arguments_.depth) fail("a message about a slot that there is not");
    return came;
  }
  template <typename Message>
  void send(const Message& said) {
    const ND2_SGE sge{const_cast<Message*>(&said), sizeof said, 0};
    require(session_.pair()->Send(nullptr, &sge, 1, ND_OP_FLAG_INLINE | ND_OP_FLAG_SILENT_SUCCESS), "Send");
  }

  const Arguments& arguments_;
  Session session_;
  Memory pieces_, messages_;
};

class Server : Side {
 public:
  explicit Server(const Arguments& arguments)
      : Side(arguments, server_address(arguments), ND_MR_FLAG_ALLOW_LOCAL_WRITE), asked_(arguments.depth) {
    session_.listen(server_address(arguments));
    session_.accept({});
  }

  void run() {
    for (std::uint32_t done = 0; done < arguments_.count;) {
      const ND2_RESULT result = session_.poll();
      if (result.RequestType == Nd2RequestTypeReceive) read(message<Request>(slot_of(result)));
      if (result.RequestType != Nd2RequestTypeRead) continue;
      const Request& asked = asked_[slot_of(result)];
      if (!holds(piece(asked.slot), asked.number)) fail("data that the client has not written");
      send(Answer{asked.number, asked.slot});
      ++done;
    }
    be_refused();
    session_.wait_for_end();
  }

 private:
  /// The last request, for memory that is shut. Answers may still be under way to the client, but none of its requests.
  void be_refused() {
    const ND2_RESULT asking = session_.poll();
    if (asking.RequestType != Nd2RequestTypeReceive) fail("a completion that was not asked for");
    read(message<Request>(slot_of(asking)));
    const ND2_RESULT refused = session_.poll_any();
    if (refused.RequestType != Nd2RequestTypeRead || refused.Status != ND_ACCESS_VIOLATION)
      fail("memory that is shut can still be read");
  }

  void read(const Request& asked) {
    if (asked.bytes != arguments_.size) fail("a request for another size: --size differs");
    asked_[asked.slot] = asked;
    const ND2_SGE sge = pieces_.part(std::size_t{arguments_.size} * asked.slot, asked.bytes);
    require(session_.pair()->Read(context_of(asked.slot), &sge, 1, asked.address, asked.token, 0), "Read");
  }

  std::vector<Request> asked_;  ///< By slot
};

class Client : Side {
 public:
  explicit Client(const Arguments& arguments) : Side(arguments, client_address(arguments), 0), slots_(arguments.depth) {
    for (auto& slot : slots_) {
      require(session_.adapter()->CreateMemoryWindow(IID_IND2MemoryWindow, reinterpret_cast<void**>(&slot.window)),
              "CreateMemoryWindow");
    }
    session_.connect(client_address(arguments), server_address(arguments), {});
  }
  ~Client() {
    for (auto& slot : slots_) slot.window->Release();
  }

  void run() {
    const double begin = now_us();
    for (std::uint32_t slot = 0; slot < arguments_.depth && asked_ < arguments_.count; ++slot) ask(slot);
    std::vector<double> durations;
    while (durations.size() < arguments_.count) {
      const ND2_RESULT result = session_.poll();
      if (result.RequestType == Nd2RequestTypeReceive) shut(message<Answer>(slot_of(result)));
      if (result.RequestType != Nd2RequestTypeInvalidate) continue;
      durations.push_back(now_us() - slots_[slot_of(result)].begin);
      if (asked_ < arguments_.count) ask(slot_of(result));
    }
    const double us = now_us() - begin;
    ask_once_more();
    session_.wait_for_end();
    storage::print(arguments_.size, arguments_.depth, us, std::move(durations));
  }

 private:
  struct Slot {
    IND2MemoryWindow* window = nullptr;
    std::uint32_t token = 0;
    std::uint32_t number = 0;
    double begin = 0;
  };

  /// The window is open before the server hears of it: requests of a queue pair are executed in their order.
  void ask(std::uint32_t slot) {
    Slot& of = slots_[slot];
    of.number = asked_++;
    of.begin = now_us();
    const auto data = piece(slot);
    fill(data, of.number);
    require(session_.pair()->Bind(nullptr, pieces_.region, of.window, data.data(), data.size(),
                                  ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_SILENT_SUCCESS),
            "Bind");
    of.token = of.window->GetRemoteToken();
    send(Request{reinterpret_cast<std::uintptr_t>(data.data()), of.token, arguments_.size, of.number, slot});
  }

  /// For memory that is shut, with the token that has opened it.
  void ask_once_more() {
    send(Request{reinterpret_cast<std::uintptr_t>(piece(0).data()), slots_[0].token, arguments_.size, asked_, 0});
  }

  void shut(const Answer& answer) {
    if (answer.number != slots_[answer.slot].number) fail("an answer to another request");
    require(session_.pair()->Invalidate(context_of(answer.slot), slots_[answer.slot].window, 0), "Invalidate");
  }

  std::vector<Slot> slots_;
  std::uint32_t asked_ = 0;
};

}  // namespace

int main(int count, char* words[]) {
  const Arguments arguments = read_arguments(count, words, "Storage: memory is open for as long as a request takes",
                                             {.size = 8192, .count = 1000, .depth = 8}, "");
  require(NdStartup(), "NdStartup");
  arguments.server ? Server(arguments).run() : Client(arguments).run();
  require(NdCleanup(), "NdCleanup");
}
