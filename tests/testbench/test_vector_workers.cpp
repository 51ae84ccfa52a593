// Vectors in processes of their own: one that stops the simulation, or ends its process, has failed, and the others
// run all the same.
#include <catch2/catch.hpp>
#include <csignal>
#include <fmt/format.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "testbench/timeline/run_observer.hpp"
#include "testbench/verify/vector_workers.hpp"

namespace rnic::testbench {
namespace {

/// Rates of the wire by which the observer knows a vector.
constexpr double kThrows = 7, kEnds = 8;

/// With the first TLP of a world it does what its rate of the wire says.
class Trap final : public RunObserver, public LifeSink {
 public:
  std::vector<LifeSink*> begin(const WorldOptions& options, std::uint64_t) override {
    rate_ = options.wire.rate_gbps;
    return {this, this};
  }
  void end(std::uint64_t, const std::vector<std::uint64_t>&) override {}

  void tlp(const model::TlpSeen&, std::uint64_t) override {
    if (rate_ == kThrows) throw std::runtime_error("an assertion of the NIC");
    if (rate_ == kEnds) std::raise(SIGKILL);
  }
  void request_begins(Request&) override {}
  void request_ends(Request&) override {}
  void send_begins(Packet&) override {}
  void send_ends(Packet&) override {}
  void receive_begins(Packet&) override {}
  void receive_ends(Packet&) override {}
  void packet_over(Packet&) override {}
  void packet_received(Packet&) override {}
  void frame(const Frame&, Packet*) override {}
  void stall_over(std::uint8_t, StallReason, std::uint64_t, std::uint64_t, const Request*) override {}
  void wait_over(WaitKind, std::uint64_t, std::uint64_t) override {}
  void tlb_missed(std::uint64_t) override {}
  void counted(hw::Counter) override {}

 private:
  double rate_ = 0;
};

Vector vector_of(double rate) {
  return parse_vector(fmt::format(R"({{"document": "d", "clause": "c", "rule": "r", "setup": {{"link_gbps": {}}},
                       "steps": [{{"host": "A", "do": "wait", "us": 1}}]}})",
                                  rate),
                      fmt::format("{}.json", rate));
}

/// Of each vector, in their order: "" if it has passed.
std::vector<std::string> run(const std::vector<double>& rates, unsigned jobs) {
  Trap trap;
  WorldOptions options;
  options.host.nic.kind = NicKind::kModel;
  options.observers = {&trap};
  std::vector<Vector> vectors;
  for (const double rate : rates) vectors.push_back(vector_of(rate));
  std::vector<std::string> messages;
  run_vectors(vectors, options, jobs, [&](std::size_t index, const VectorOutcome& outcome) {
    CHECK(index == messages.size());
    CHECK(outcome.passed == outcome.message.empty());
    messages.push_back(outcome.message);
  });
  return messages;
}

}  // namespace

TEST_CASE("vectors behind one that stops the simulation, or ends its process, are run") {
  const auto jobs = GENERATE(1u, 2u, 3u);
  INFO(jobs << " jobs");
  const auto messages = run({100, kThrows, 100, kEnds, kEnds, kThrows, 100, kThrows}, jobs);
  REQUIRE(messages.size() == 8);
  for (const std::size_t i : {0, 2, 6}) CHECK(messages[i].empty());
  for (const std::size_t i : {1, 5, 7}) {
    CHECK(messages[i].find("the simulation stopped") == 0);
    CHECK(messages[i].find("an assertion of the NIC") != std::string::npos);
  }
  for (const std::size_t i : {3, 4}) CHECK(messages[i] == "the process that ran it was ended by a signal (Killed)");
}

}  // namespace rnic::testbench
