// Latency: a message goes to and fro. By Sends, whose completions are polled, or (--write) by Writes into the peer's
// memory, on whose last byte each side spins.
#include <atomic>
#include <cstdio>
#include <vector>

#include "pattern.hpp"
#include "session.hpp"
#include "times.hpp"

using namespace examples;

namespace {

/// The first rounds are not counted: in them the peer still learns that it is connected, and the NICs of its memory.
constexpr std::uint32_t kWarmUp = 10;

class PingPong {
 public:
  explicit PingPong(const Arguments& arguments)
      : arguments_(arguments),
        session_(arguments.server ? server_address(arguments) : client_address(arguments), 16),
        out_(session_.allocate(arguments.size, 0)),
        in_(session_.allocate(arguments.size, ND_MR_FLAG_ALLOW_REMOTE_WRITE)) {
    fill(out_.bytes, 0);
    session_.begin();
    if (!arguments.other) post_receive();
    const Greeting own{reinterpret_cast<std::uintptr_t>(in_.bytes.data()), in_.region->GetRemoteToken()};
    if (arguments.server) {
      session_.listen(server_address(arguments));
      peer_ = session_.accept(own);
    } else {
      peer_ = session_.connect(client_address(arguments), server_address(arguments), own);
    }
  }

  void run() {
    std::vector<double> rounds;
    for (std::uint32_t i = 0; i < rounds_; ++i) {
      const double begin = now_us();
      if (!arguments_.server) give(i);
      take(i);
      if (arguments_.server) {
        if (i < kWarmUp) check();
        give(i);
      }
      if (i >= kWarmUp) rounds.push_back(now_us() - begin);
      if (!arguments_.server) check();
    }
    session_.disconnect();
    session_.release(out_);
    session_.release(in_);
    if (!arguments_.server) print(std::move(rounds));
  }

 private:
  void post_receive() {
    const ND2_SGE sge = in_.part(0, arguments_.size);
    require(session_.pair()->Receive(nullptr, &sge, 1), "Receive");
  }

  /// The last byte has been looked at already. Not where it would take time of a round that is measured.
  void check() const {
    if (!holds(in_.bytes.first(in_.bytes.size() - 1), 0)) fail("a message that was not sent");
  }

  static std::uint8_t mark(std::uint32_t round) { return static_cast<std::uint8_t>(round + 1); }

  void give(std::uint32_t round) {
    out_.bytes.back() = mark(round);
    const ND2_SGE sge = out_.part(0, arguments_.size);
    const ULONG flags = session_.inline_flag(arguments_.size);
    if (!arguments_.other) return require(session_.pair()->Send(nullptr, &sge, 1, flags), "Send");
    require(session_.pair()->Write(nullptr, &sge, 1, peer_.address, peer_.token, flags), "Write");
    session_.poll(Nd2RequestTypeWrite);
  }

  void take(std::uint32_t round) {
    if (!arguments_.other) {
      session_.poll(Nd2RequestTypeReceive);
      if (in_.bytes.back() != mark(round)) fail("a message that was not sent");
      if (round + 1 < rounds_) post_receive();
      return;
    }
    const std::atomic_ref<std::uint8_t> last(in_.bytes.back());
    while (last.load(std::memory_order_acquire) != mark(round)) YieldProcessor();
  }

  void print(std::vector<double> rounds) const {
    for (double& one : rounds) one /= 2;
    const Times times = times_of(std::move(rounds));
    std::printf("%10s %10s %12s %12s %12s %12s %12s\n", "bytes", "rounds", "min us", "median us", "mean us", "99 % us",
                "max us");
    std::printf("%10u %10u %12.3f %12.3f %12.3f %12.3f %12.3f\n", arguments_.size, arguments_.count, times.min,
                times.median, times.mean, times.most, times.max);
  }

  const Arguments arguments_;
  const std::uint32_t rounds_ = arguments_.count + kWarmUp;
  Session session_;
  Memory out_, in_;
  Greeting peer_;
};

}  // namespace

int main(int count, char* words[]) {
  const Arguments arguments =
      read_arguments(count, words, "Half the time of a round trip", {.size = 8, .count = 1000}, "write");
  require(NdStartup(), "NdStartup");
  PingPong(arguments).run();
  require(NdCleanup(), "NdCleanup");
}
