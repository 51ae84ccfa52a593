// Multicast of a program: who is in a group, and datagrams to all who are (InfiniBand specification 10.5.2, 11.3.1).
#include <algorithm>

#include "testbench/compare/request_maker.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

/// Draws datagrams of one queue pair to a group; each of its members, the sender too, gets one.
class GroupMaker : public RequestMaker {
 public:
  using RequestMaker::RequestMaker;

  void add_group_send(const PlannedGroup& group) {
    json step = begin("send");
    std::uint64_t length = std::min<std::uint64_t>(draw_length(), plan_.mtu);
    std::vector<GroupMember> takers;
    for (const auto& member : group.members) {
      // Who has no Receive gets nothing, and hinders nobody; in all the batch, for its Receives come first.
      const bool none = plan_.pairs[member.qp].receives[member.host].empty() && plan_.chance(0.1);
      if (none) without_.push_back(member);
      if (std::find(without_.begin(), without_.end(), member) != without_.end()) continue;
      length = std::min<std::uint64_t>(length, provide(member, length));
      takers.push_back(member);
    }
    for (const auto& member : takers) plan_.pairs[member.qp].receives[member.host].pop_front();
    step["sge"] = source(length);
    step["address"] = {{"group", group.address}};
    if (plan_.chance(0.2)) step["immediate"] = plan_.below(1ull << 32);
    flag(step, length, true);
    finish(std::move(step), 1);
    // Freedom::kOwnCopies: a datagram to a group that this port is not in may be an earlier one, too.
    planned_.requests.push_back({{"host", host_letter(host_)}, {"do", "wait"}, {"us", 5}});
  }

 private:
  static constexpr std::uint32_t kGrhBytes = 40;

  std::vector<GroupMember> without_;

  /// Gives how long the message to this member may be.
  std::uint64_t provide(const GroupMember& member, std::uint64_t length) {
    auto& waiting = plan_.pairs[member.qp].receives[member.host];
    if (waiting.empty()) {
      RequestMaker receiver(plan_, 1 - member.host, member.qp);
      receiver.post_receive(length + kGrhBytes + (plan_.chance(0.5) ? 0 : plan_.below(300)));
      for (auto& one : receiver.take().receives) planned_.receives.push_back(std::move(one));
    }
    return waiting.front() - kGrhBytes;
  }
};

}  // namespace

std::vector<json> draw_members(ProgramPlan& plan) {
  std::vector<json> steps;
  for (auto& group : plan.groups) {
    for (std::size_t host = 0; host < 2; ++host) {
      for (std::size_t qp = 0; qp < plan.pairs.size(); ++qp) {
        if (!plan.chance(0.3)) continue;
        const auto member = std::find(group.members.begin(), group.members.end(), GroupMember{host, qp});
        const bool joins = member == group.members.end();
        joins ? group.members.push_back({host, qp}) : void(group.members.erase(member));
        steps.push_back({{"host", host_letter(host)},
                         {"do", joins ? "attach" : "detach"},
                         {"qp", qp + 1},
                         {"group", group.address}});
      }
    }
  }
  return steps;
}

PlannedRequests draw_group_sends(ProgramPlan& plan, std::size_t host, std::size_t qp, std::size_t count) {
  GroupMaker maker(plan, host, qp);
  for (std::size_t i = 0; i < count; ++i) maker.add_group_send(plan.one_of(plan.groups));
  return maker.take();
}

}  // namespace rnic::testbench
