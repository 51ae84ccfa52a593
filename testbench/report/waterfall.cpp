#include "testbench/report/waterfall.hpp"

#include <array>

namespace rnic::testbench {
namespace {

template <Stage stage>
std::uint64_t at(const Request& request, const Flights&) {
  return request.when(stage);
}
template <PacketTimes Request::*packet, std::uint64_t PacketTimes::*time>
std::uint64_t at(const Request& request, const Flights&) {
  return (request.*packet).*time;
}
/// When the payload is there, if it was read from memory: what stands in the WQE is not translated.
template <PacketTimes Request::*packet>
std::uint64_t read(const Request& request, const Flights&) {
  const PacketTimes& times = request.*packet;
  return times.translated == 0 ? 0 : times.gathered;
}
/// When the last bit of a packet is at the other end.
template <PacketTimes Request::*packet>
std::uint64_t arrival(const Request& request, const Flights& flights) {
  const std::uint64_t sent = (request.*packet).wire_end;
  return sent == 0 ? 0 : sent + flights.wire_ps;
}
std::uint64_t cqe_arrival(const Request& request, const Flights& flights) {
  const std::uint64_t written = request.when(Stage::kCqeWritten);
  return written == 0 ? 0 : written + flights.pcie_ps;
}

constexpr auto kSent = &Request::last_sent;
constexpr auto kAnswer = &Request::answered;
using Times = PacketTimes;

constexpr std::array kSendSteps = {Step{"doorbell crosses PCI Express", Place::kPcie, at<Stage::kDoorbell>},
                                   Step{"waits to be fetched", Place::kNic, at<Stage::kFetchIssued>},
                                   Step{"WQE is read", Place::kPcie, at<Stage::kFetchAnswered>},
                                   Step{"waits for its turn", Place::kNic, at<Stage::kTurn>},
                                   Step{"first packet is built", Place::kNic, at<Stage::kJudged>},
                                   Step{"packets in front of its last", Place::kNic, at<kSent, &Times::taken>},
                                   Step{"last payload is translated", Place::kNic, at<kSent, &Times::translated>},
                                   Step{"last payload is read", Place::kPcie, read<kSent>},
                                   Step{"last payload is gathered", Place::kNic, at<kSent, &Times::gathered>},
                                   Step{"last packet waits for the wire", Place::kNic, at<kSent, &Times::wire_start>},
                                   Step{"last packet is sent", Place::kWire, at<kSent, &Times::wire_end>},
                                   Step{"last packet flies", Place::kWire, arrival<kSent>},
                                   Step{"last packet is checked", Place::kPeerNic, at<Stage::kChecked>},
                                   Step{"payload DMA write", Place::kPeerNic, at<Stage::kPlaced>},
                                   Step{"waits for its ACK", Place::kPeerNic, at<Stage::kAckMade>},
                                   Step{"ACK waits for the wire", Place::kPeerNic, at<kAnswer, &Times::wire_start>},
                                   Step{"ACK is sent", Place::kWire, at<kAnswer, &Times::wire_end>},
                                   Step{"ACK flies", Place::kWire, arrival<kAnswer>},
                                   Step{"ACK is checked", Place::kNic, at<Stage::kAckBack>},
                                   Step{"retires", Place::kNic, at<Stage::kRetired>},
                                   Step{"CQE is written", Place::kNic, at<Stage::kCqeWritten>},
                                   Step{"CQE crosses PCI Express", Place::kPcie, cqe_arrival},
                                   Step{"waits to be polled", Place::kDriver, at<Stage::kPolled>}};

constexpr std::array kAskSteps = {
    Step{"doorbell crosses PCI Express", Place::kPcie, at<Stage::kDoorbell>},
    Step{"waits to be fetched", Place::kNic, at<Stage::kFetchIssued>},
    Step{"WQE is read", Place::kPcie, at<Stage::kFetchAnswered>},
    Step{"waits for its turn", Place::kNic, at<Stage::kTurn>},
    Step{"first packet is built", Place::kNic, at<Stage::kJudged>},
    Step{"request packet waits for the wire", Place::kNic, at<kSent, &Times::wire_start>},
    Step{"request packet is sent", Place::kWire, at<kSent, &Times::wire_end>},
    Step{"request packet flies", Place::kWire, arrival<kSent>},
    Step{"request packet is checked", Place::kPeerNic, at<Stage::kChecked>},
    Step{"responses in front of the last", Place::kPeerNic, at<Stage::kAckMade>},
    Step{"last payload is translated", Place::kPeerNic, at<kAnswer, &Times::translated>},
    Step{"last payload is read", Place::kPeerPcie, read<kAnswer>},
    Step{"last response waits for the wire", Place::kPeerNic, at<kAnswer, &Times::wire_start>},
    Step{"last response is sent", Place::kWire, at<kAnswer, &Times::wire_end>},
    Step{"last response flies", Place::kWire, arrival<kAnswer>},
    Step{"last response is checked", Place::kNic, at<Stage::kAckBack>},
    Step{"payload DMA write", Place::kNic, at<Stage::kPlaced>},
    Step{"retires", Place::kNic, at<Stage::kRetired>},
    Step{"CQE is written", Place::kNic, at<Stage::kCqeWritten>},
    Step{"CQE crosses PCI Express", Place::kPcie, cqe_arrival},
    Step{"waits to be polled", Place::kDriver, at<Stage::kPolled>}};

}  // namespace

std::string_view name(Place place) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Place::kCount)> kNames = {
      "driver", "PCI Express", "NIC", "wire", "peer's NIC", "peer's PCI Express"};
  return kNames[static_cast<std::size_t>(place)];
}

std::span<const Step> steps_of(const Request& request) {
  if (request.receive) return {};
  return request.asks() ? std::span<const Step>(kAskSteps) : std::span<const Step>(kSendSteps);
}

std::vector<StepTime> waterfall(const Request& request, const Flights& flights) {
  std::vector<StepTime> all;
  std::uint64_t from = request.when(Stage::kPosted);
  const std::uint64_t last = request.when(request.silent ? Stage::kRetired : Stage::kPolled);
  if (from == 0 || last < from) return all;
  const auto steps = steps_of(request);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::uint64_t to = steps[i].end(request, flights);
    // What comes later than the end does not count: an ACK that nobody waited for, a flight that was shorter.
    if (to <= from || to > last) continue;
    all.push_back({i, from, to});
    from = to;
  }
  return all;
}

}  // namespace rnic::testbench
