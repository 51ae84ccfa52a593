#include "testbench/lockstep/lockstep_run.hpp"

#include <netinet/in.h>

#include <array>
#include <cstring>
#include <memory>

#include "testbench/endpoint.hpp"
#include "testbench/lockstep/consumer_adapter.hpp"
#include "testbench/lockstep/program_output.hpp"
#include "testbench/management_thread.hpp"
#include "testbench/nd2_programs.hpp"
#include "testbench/process_node.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kPatienceToEndNs = 10'000'000'000;
constexpr std::uint64_t kLookNs = 100'000;
constexpr std::uint64_t kLastAnswersNs = 1'000'000;  ///< What a peer has asked last is answered by then
constexpr int kEndedCode = 143;                      ///< As a process that SIGTERM has ended
constexpr std::array<const char*, 2> kNames = {"server", "client"};

/// What a program has of its host. Threads that it leaves are in it.
struct Seat {
  std::optional<ProcessNode> node;
  std::optional<ConsumerAdapter> adapter;  ///< Of a consumer of the kernel interface
  sockaddr_in own{};

  [[nodiscard]] std::uint32_t listening() { return adapter ? adapter->listening() : node ? node->listening() : 0; }
  void end(Nd2Programs::Process& process) {
    // A consumer is part of the kernel; nothing of it may go on when its adapter has gone.
    if (adapter) {
      adapter->close();
      Nd2Programs::stop(process);
    }
    adapter.reset();
    node->end();
  }
};

/// The hosts of a world, and the programs that they run.
class Lockstep {
 public:
  Lockstep(World& world, std::vector<LoadedProgram>& programs)
      : world_(world), programs_(programs), endpoints_(world.hosts()), seats_(programs.size()) {
    outcome_.codes.resize(programs.size());
  }

  LockstepOutcome run(std::uint64_t limit_ns) {
    for (std::size_t i = 0; i < world_.hosts(); ++i) {
      world_.add_app(i, i < programs_.size() ? programs_[i].name() : "a host without a program",
                     [this, i](Host& host) { be_host(i, host); });
    }
    world_.run(limit_ns);
    return outcome_;
  }

 private:
  void be_host(std::size_t index, Host& host) {
    Endpoint endpoint(host);
    endpoints_[index] = &endpoint;
    wait_for_all(host, up_);
    for (Endpoint* const peer : endpoints_) introduce(endpoint, *peer);
    const ManagementThread management(endpoint.kernel(), host.device());
    wait_for_all(host, ready_);
    if (index < programs_.size()) be_process(index, endpoint);
    wait_for_all(host, ended_);
    host.device().elapse(kLastAnswersNs);
  }

  void wait_for_all(Host& host, std::size_t& arrived) {
    ++arrived;
    while (arrived != endpoints_.size()) host.device().elapse(kLookNs);
  }

  static void introduce(Endpoint& endpoint, Endpoint& peer) {
    auto& tables = endpoint.kernel().port_tables();
    for (const bool ipv6 : {false, true})
      require_success(tables.add_neighbour(ip_of(peer, ipv6), mac_of(peer)), "a neighbour");
  }

  void be_process(std::size_t index, Endpoint& endpoint) {
    if (index == 1 && !server_listens(endpoint.device())) return;
    LoadedProgram& program = programs_[index];
    Seat& seat = seats_[index];
    seat.node.emplace(endpoint.kernel());
    if (program.of_kernel()) seat.adapter.emplace(endpoint);
    seat.own.sin_family = AF_INET;
    // The IPv4 address is the end of the mapped one.
    const auto mapped = ip_of(endpoint, false);
    std::memcpy(&seat.own.sin_addr, mapped.data() + 12, sizeof seat.own.sin_addr);
    const auto process = threads_.start(*seat.node, programs_.size() == 1 ? "" : kNames.at(index), [&program, &seat] {
      return seat.adapter ? program.run(seat.adapter->get(), reinterpret_cast<const SOCKADDR*>(&seat.own))
                          : program.run();
    });
    const struct End {
      ~End() { of.end(*process); }
      Seat& of;
      const std::shared_ptr<Nd2Programs::Process> process;
    } end{seat, process};
    Device& device = endpoint.device();
    const auto code = index == 0 ? wait_as_server(*process, device) : Nd2Programs::wait(*process, device, kForever);
    outcome_.codes[index] = code.value_or(kEndedCode);
  }

  /// Waits until it does; false: it has ended before.
  bool server_listens(Device& device) {
    for (; !outcome_.codes[0]; device.elapse(kLookNs))
      if (seats_[0].listening() != 0) return true;
    return false;
  }

  std::optional<int> wait_as_server(Nd2Programs::Process& process, Device& device) {
    if (programs_.size() == 1) return Nd2Programs::wait(process, device, kForever);
    while (!outcome_.codes[1])
      if (const auto code = Nd2Programs::wait(process, device, kLookNs)) return code;
    const auto code = Nd2Programs::wait(process, device, kPatienceToEndNs);
    outcome_.server_stayed = !code;
    return code;
  }

  World& world_;
  std::vector<LoadedProgram>& programs_;
  Nd2Programs threads_;
  const ProgramOutput output_{Nd2Programs::name_of_caller};
  std::vector<Endpoint*> endpoints_;
  std::vector<Seat> seats_;
  std::size_t up_ = 0, ready_ = 0, ended_ = 0;  ///< Hosts that are
  LockstepOutcome outcome_;
};

}  // namespace

int LockstepOutcome::code() const {
  if (codes.size() == 1) return codes[0].value_or(1);
  if (!codes[1]) return codes[0].value_or(0) != 0 ? *codes[0] : 1;
  return *codes[1] != 0 ? *codes[1] : codes[0].value_or(1);
}

LockstepOutcome run_lockstep(World& world, std::vector<LoadedProgram>& programs, std::uint64_t limit_ns) {
  return Lockstep(world, programs).run(limit_ns);
}

}  // namespace rnic::testbench
