// Storage in the kernel, as file servers do it: the client registers the pages of a piece of data by a request of its
// queue pair and sends the token, the server reads the piece and answers, the registration is invalidated: by the
// client, or (--peer) by the server's answer.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernel_session.hpp"
#include "storage.hpp"

using namespace examples;
using storage::Answer;
using storage::Request;

namespace {

constexpr USHORT kPort = 54401;
/// A slot is registered, asks, and is invalidated; the other side reads and answers.
constexpr ULONG kRequestsOfSlot = 4;

struct Options {
  bool server = false, by_peer = false;
  sockaddr_in address{};  ///< The server's
  std::uint32_t size = 8192, count = 1000, depth = 8;
};

[[noreturn]] void wrong(const std::string& what) {
  std::fprintf(stderr,
               "%s\nndk_storage server|client ADDRESS [--size BYTES] [--count REQUESTS] [--depth UNDER_WAY] [--peer]\n",
               what.c_str());
  std::exit(2);
}

std::uint32_t number_of(const char* option, const char* text, std::uint32_t most) {
  char* end = nullptr;
  const unsigned long long value = text != nullptr ? std::strtoull(text, &end, 10) : 0;
  if (value == 0 || value > most || *end != 0)
    wrong(std::string(option) + " is no number from 1 to " + std::to_string(most));
  return static_cast<std::uint32_t>(value);
}

Options read_options(int count, char* words[]) {
  Options options;
  const std::string role = count > 1 ? words[1] : "";
  if (role != "server" && role != "client") wrong("role is neither server nor client");
  options.server = role == "server";
  options.address.sin_family = AF_INET;
  options.address.sin_port = htons(kPort);
  if (count < 3 || inet_pton(AF_INET, words[2], &options.address.sin_addr) != 1) wrong("there is no IPv4 address");
  for (int i = 3; i < count; ++i) {
    const std::string option = words[i];
    const char* const next = i + 1 < count ? words[i + 1] : nullptr;
    if (option == "--peer") {
      options.by_peer = true;
      continue;
    }
    if (option == "--size") {
      options.size = number_of("--size", next, 1 << 24);
    } else if (option == "--count") {
      options.count = number_of("--count", next, 10'000'000);
    } else if (option == "--depth") {
      options.depth = number_of("--depth", next, 128);
    } else {
      wrong("there is no option " + option);
    }
    ++i;
  }
  return options;
}

PVOID context_of(std::size_t slot) { return reinterpret_cast<PVOID>(slot); }
std::uint32_t slot_of(const NDK_RESULT_EX& result) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(result.RequestContext));
}
const SOCKADDR* generic(const sockaddr_in& address) { return reinterpret_cast<const SOCKADDR*>(&address); }

/// Both sides: pieces of data in whole pages, and messages, by slot.
class Side {
 public:
  Side(const Options& options, NDK_ADAPTER* adapter)
      : options_(options),
        session_(adapter, kRequestsOfSlot * options.depth),
        pieces_(session_.allocate(stride() * options.depth, NDK_MR_FLAG_ALLOW_LOCAL_WRITE)),
        messages_(session_.allocate(sizeof(Request) * options.depth, NDK_MR_FLAG_ALLOW_LOCAL_WRITE)) {
    for (std::uint32_t slot = 0; slot < options_.depth; ++slot) receive(slot);
  }
  ~Side() {
    session_.release(pieces_);
    session_.release(messages_);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

 protected:
  [[nodiscard]] std::size_t stride() const {
    return (std::size_t{options_.size} + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
  }
  [[nodiscard]] std::span<std::uint8_t> piece(std::uint32_t slot) {
    return {pieces_.bytes + stride() * slot, options_.size};
  }
  void receive(std::uint32_t slot) {
    const NDK_SGE sge = messages_.part(sizeof(Request) * slot, sizeof(Request));
    require_status(qp().NdkReceive(session_.pair(), context_of(slot), &sge, 1), "NdkReceive");
  }
  /// What came into this receive.
  template <typename Message>
  Message message(std::uint32_t place) {
    Message came;
    std::memcpy(&came, messages_.bytes + sizeof(Request) * place, sizeof came);
    receive(place);
    if (came.slot >= options_.depth) fail("a message about a slot that there is not");
    return came;
  }
  /// A message, which invalidates a region of the peer if it has a token.
  template <typename Message>
  void send(const Message& said, UINT32 invalidates = 0) {
    constexpr ULONG kFlags = NDK_OP_FLAG_INLINE | NDK_OP_FLAG_SILENT_SUCCESS;
    NDK_SGE sge{};
    sge.VirtualAddress = const_cast<Message*>(&said);
    sge.Length = sizeof said;
    require_status(invalidates != 0 ? qp().NdkSendAndInvalidate(session_.pair(), nullptr, &sge, 1, kFlags, invalidates)
                                    : qp().NdkSend(session_.pair(), nullptr, &sge, 1, kFlags),
                   "a Send");
  }
  [[nodiscard]] const NDK_QP_DISPATCH& qp() { return *session_.pair()->Dispatch; }

  const Options& options_;
  KernelSession session_;
  KernelMemory pieces_, messages_;
};

class Server : Side {
 public:
  Server(const Options& options, NDK_ADAPTER* adapter) : Side(options, adapter), asked_(options.depth) {
    session_.accept(generic(options.address), sizeof options.address);
  }

  void run() {
    for (std::uint32_t done = 0; done < options_.count;) {
      const NDK_RESULT_EX result = session_.poll();
      if (result.Type == NdkOperationTypeReceive) read(message<Request>(slot_of(result)));
      if (result.Type != NdkOperationTypeRead) continue;
      const Request& asked = asked_[slot_of(result)];
      if (!holds(piece(asked.slot), asked.number)) fail("data that the client has not written");
      send(Answer{asked.number, asked.slot}, options_.by_peer ? asked.token : 0);
      ++done;
    }
    be_refused();
    session_.wait_for_end();
  }

 private:
  /// The last request, for memory that is shut. Answers may still be under way to the client, but none of its requests.
  void be_refused() {
    const NDK_RESULT_EX asking = session_.poll();
    if (asking.Type != NdkOperationTypeReceive) fail("a completion that was not asked for");
    read(message<Request>(slot_of(asking)));
    const NDK_RESULT_EX refused = session_.poll_any();
    if (refused.Type != NdkOperationTypeRead || refused.Status != STATUS_ACCESS_VIOLATION)
      fail("memory that is shut can still be read");
  }

  void read(const Request& asked) {
    if (asked.bytes != options_.size) fail("a request for another size: --size differs");
    asked_[asked.slot] = asked;
    const NDK_SGE sge = pieces_.part(stride() * asked.slot, asked.bytes);
    require_status(qp().NdkRead(session_.pair(), context_of(asked.slot), &sge, 1, asked.address, asked.token, 0),
                   "NdkRead");
  }

  std::vector<Request> asked_;  ///< By slot
};

class Client : Side {
 public:
  Client(const Options& options, NDK_ADAPTER* adapter, const SOCKADDR* own)
      : Side(options, adapter), slots_(options.depth) {
    map_pages();
    for (auto& slot : slots_) {
      slot.region = KernelSession::make<NDK_MR>("NdkCreateMr", [&](auto callback, auto context, auto out) {
        return session_.domain()->Dispatch->NdkCreateMr(session_.domain(), TRUE, callback, context, out);
      });
      KernelSession::finish("NdkInitializeFastRegisterMr", [&](auto callback, auto context) {
        return slot.region->Dispatch->NdkInitializeFastRegisterMr(slot.region, pages_of_piece(), TRUE, callback,
                                                                  context);
      });
    }
    session_.connect(own, generic(options.address), sizeof options.address);
  }
  ~Client() {
    for (auto& slot : slots_) KernelSession::close(&slot.region->Header, slot.region->Dispatch->NdkCloseMr);
    session_.adapter()->Dispatch->NdkReleaseLAM(session_.adapter(), lam());
  }

  void run() {
    const double begin = kernel_now_us();
    for (std::uint32_t slot = 0; slot < options_.depth && asked_ < options_.count; ++slot) ask(slot);
    while (durations_.size() < options_.count) {
      const NDK_RESULT_EX result = session_.poll();
      switch (result.Type) {
        case NdkOperationTypeReceive: shut(answer(result)); break;
        case NdkOperationTypeReceiveAndInvalidate: check(answer(result), result); break;
        case NdkOperationTypeInvalidate: end(slot_of(result)); break;
        default: fail("a completion that was not asked for");
      }
    }
    const double us = kernel_now_us() - begin;
    ask_once_more();
    session_.wait_for_end();
    storage::print(options_.size, options_.depth, us, std::move(durations_));
  }

 private:
  struct Slot {
    NDK_MR* region = nullptr;
    UINT32 token = 0;
    std::uint32_t number = 0;
    double begin = 0;
  };

  [[nodiscard]] ULONG pages_of_piece() const { return static_cast<ULONG>(stride() / PAGE_SIZE); }
  NDK_LOGICAL_ADDRESS_MAPPING* lam() { return reinterpret_cast<NDK_LOGICAL_ADDRESS_MAPPING*>(lam_.data()); }

  /// The pages of all pieces, as the adapter knows them.
  void map_pages() {
    const auto bytes = static_cast<ULONG>(stride() * options_.depth);
    MDL mdl = mdl_of(pieces_.bytes, bytes);
    ULONG size = 0, offset = 0;
    const auto& of = *session_.adapter()->Dispatch;
    const NTSTATUS asked = of.NdkBuildLAM(
        session_.adapter(), &mdl, bytes, [](PVOID, NTSTATUS) {}, nullptr, nullptr, &size, &offset);
    if (asked != STATUS_BUFFER_TOO_SMALL) require_status(asked, "NdkBuildLAM");
    lam_.resize(size);
    KernelSession::finish("NdkBuildLAM", [&](auto callback, auto context) {
      return of.NdkBuildLAM(session_.adapter(), &mdl, bytes, callback, context, lam(), &size, &offset);
    });
  }

  /// The region is there before the server hears of it: requests of a queue pair are executed in their order.
  void ask(std::uint32_t slot) {
    Slot& of = slots_[slot];
    of.number = asked_++;
    of.begin = kernel_now_us();
    const auto data = piece(slot);
    fill(data, of.number);
    require_status(qp().NdkFastRegister(session_.pair(), nullptr, of.region, pages_of_piece(),
                                        lam()->AdapterPageArray + std::size_t{pages_of_piece()} * slot, 0, data.size(),
                                        data.data(), NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_SILENT_SUCCESS),
                   "NdkFastRegister");
    of.token = of.region->Dispatch->NdkGetRemoteTokenFromMr(of.region);
    send(Request{reinterpret_cast<std::uintptr_t>(data.data()), of.token, options_.size, of.number, slot});
  }

  /// For memory that is shut, with the token that has opened it.
  void ask_once_more() {
    send(Request{reinterpret_cast<std::uintptr_t>(piece(0).data()), slots_[0].token, options_.size, asked_, 0});
  }

  Answer answer(const NDK_RESULT_EX& result) {
    const Answer came = message<Answer>(slot_of(result));
    if (came.number != slots_[came.slot].number) fail("an answer to another request");
    return came;
  }

  void shut(const Answer& came) {
    NDK_MR* const region = slots_[came.slot].region;
    require_status(qp().NdkInvalidate(session_.pair(), context_of(came.slot), &region->Header, 0), "NdkInvalidate");
  }

  /// The answer has shut it already.
  void check(const Answer& came, const NDK_RESULT_EX& result) {
    if (result.TypeSpecificCompletionOutput != slots_[came.slot].token)
      fail("the server has invalidated another region");
    end(came.slot);
  }

  void end(std::uint32_t slot) {
    durations_.push_back(kernel_now_us() - slots_[slot].begin);
    if (asked_ < options_.count) ask(slot);
  }

  std::vector<Slot> slots_;
  std::vector<std::byte> lam_;
  std::vector<double> durations_;
  std::uint32_t asked_ = 0;
};

}  // namespace

int NdkConsumerMain(NDK_ADAPTER* adapter, const SOCKADDR* own, int count, char* words[]) {
  const Options options = read_options(count, words);
  if (options.server) {
    Server(options, adapter).run();
  } else {
    Client(options, adapter, own).run();
  }
  return 0;
}
