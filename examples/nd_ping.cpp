// A ping: a message goes to the server and comes back, one at a time. Who waits sleeps until his completion queue
// notifies him, so a round trip has both sides' waking in it; nd_pingpong has not.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "pattern.hpp"
#include "session.hpp"
#include "times.hpp"

using namespace examples;

namespace {

class Ping {
 public:
  explicit Ping(const Arguments& arguments)
      : arguments_(arguments),
        session_(arguments.server ? server_address(arguments) : client_address(arguments), 4),
        out_(session_.allocate(arguments.size, 0)),
        in_(session_.allocate(arguments.size, ND_MR_FLAG_ALLOW_LOCAL_WRITE)) {
    session_.begin();
    post_receive();
    if (arguments.server) {
      session_.listen(server_address(arguments));
      session_.accept({});
    } else {
      session_.connect(client_address(arguments), server_address(arguments), {});
    }
  }
  ~Ping() {
    session_.release(out_);
    session_.release(in_);
  }
  Ping(const Ping&) = delete;
  Ping& operator=(const Ping&) = delete;

  /// Sends back whatever comes.
  void answer() {
    for (std::uint32_t i = 0; i < arguments_.count; ++i) {
      const auto came = receive();
      std::copy(came.begin(), came.end(), out_.bytes.begin());
      if (i + 1 < arguments_.count) post_receive();
      send(came.size());
    }
    session_.disconnect();
  }

  void ask() {
    std::vector<double> trips;
    for (std::uint32_t i = 0; i < arguments_.count; ++i) {
      if (i != 0) post_receive();
      fill(out_.bytes, i);
      const double begin = now_us();
      send(arguments_.size);
      const auto came = receive();
      trips.push_back(now_us() - begin);
      if (came.size() != arguments_.size || !holds(came, i))
        fail("ping " + std::to_string(i + 1) + " has come back as something else");
      std::printf("%zu bytes from %s: ping %u, %.3f us\n", came.size(), arguments_.address.c_str(), i + 1,
                  trips.back());
    }
    session_.disconnect();
    const std::size_t back = trips.size();
    const Times times = times_of(std::move(trips));
    std::printf("%10s %10s %10s %12s %12s %12s\n", "bytes", "pings", "came back", "min us", "avg us", "max us");
    std::printf("%10u %10u %10zu %12.3f %12.3f %12.3f\n", arguments_.size, arguments_.count, back, times.min,
                times.mean, times.max);
  }

 private:
  void post_receive() {
    const ND2_SGE sge = in_.part(0, arguments_.size);
    require(session_.pair()->Receive(nullptr, &sge, 1), "Receive");
  }
  void send(std::size_t bytes) {
    const ND2_SGE sge = out_.part(0, bytes);
    require(session_.pair()->Send(nullptr, &sge, 1, 0), "Send");
  }
  /// What has come.
  std::span<const std::uint8_t> receive() {
    return in_.bytes.first(session_.wait(Nd2RequestTypeReceive).BytesTransferred);
  }

  const Arguments& arguments_;
  Session session_;
  Memory out_, in_;
};

}  // namespace

int main(int count, char* words[]) {
  const Arguments arguments =
      read_arguments(count, words, "Messages to the server and back", {.size = 64, .count = 10}, "");
  require(NdStartup(), "NdStartup");
  {
    Ping ping(arguments);
    arguments.server ? ping.answer() : ping.ask();
  }
  require(NdCleanup(), "NdCleanup");
}
