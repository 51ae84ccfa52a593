#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <systemc>
#include <vector>

#include "model/ethernet.hpp"
#include "model/timed_event.hpp"
#include "model/mac_table.hpp"
#include "model/time.hpp"
#include "model/wire.hpp"

namespace rnic::model {

struct EthernetSwitchOptions {
  /// From the last bit of a frame to the first one that leaves again, if nothing is in front of it.
  double latency_ns = 0;
  /// Of each port: the frames that wait to leave it and the one that leaves. A frame that does not fit is dropped.
  std::size_t buffer_bytes = std::size_t{1} << 20;
  /// A station that has sent nothing for so long is forgotten (IEEE 802.1D 7.9.2, table 7-5: 300 s).
  double ageing_ns = 300e9;
};

/// Frames of one port.
struct EthernetSwitchStatistics {
  // What came in. Good frames are forwarded, or dropped for one of the reasons below.
  std::uint64_t received = 0;  ///< Good ones
  std::uint64_t bad = 0;       ///< Wrong frame check sequence: dropped, and nothing learned (7.5)
  std::uint64_t late = 0;      ///< Were on the cable when the link went down: dropped, and nothing learned
  std::uint64_t filtered = 0;  ///< For a station behind this port: dropped (7.7.1 c)
  std::uint64_t reserved = 0;  ///< For the bridge itself, 01-80-C2-00-00-0x: dropped (7.12.6)
  std::uint64_t flooded = 0;   ///< For a station that is not known: to all other ports
  std::uint64_t group = 0;     ///< For a group address: to all other ports
  // What was to go out.
  std::uint64_t sent = 0;      ///< Have left, or begun to
  std::uint64_t overflow = 0;  ///< Dropped because the buffer was full
  std::uint64_t unsent = 0;    ///< Dropped because the link was down
  std::size_t most_bytes = 0;  ///< In the buffer
};

/// A store-and-forward Ethernet switch that learns (IEEE 802.1D-2004 7.5 to 7.9): a transparent bridge without spanning
/// tree, VLANs and priorities, each of its ports at the end of a cable.
///
/// A frame is looked at when its last bit has come, and joins the queues of the ports that it goes to. Frames from one
/// port to another stay in order. Of those that come at the same time the one of the lowest port is first.
class EthernetSwitch : public sc_core::sc_module {
 public:
  static constexpr std::size_t kMinPorts = 2, kMaxPorts = 16;

  /// `port`: whose cable; record.from: 0 the station, 1 the switch.
  using Tap = std::function<void(std::size_t port, const FrameRecord& record)>;

  /// `cables`: one a port; faults[0] hit what the station sends, faults[1] what the switch sends. Each has a seed of
  /// its own. Throws std::invalid_argument when an option is out of range.
  EthernetSwitch(const sc_core::sc_module_name& name, const std::vector<WireOptions>& cables,
                 const EthernetSwitchOptions& options);
  ~EthernetSwitch() override;

  [[nodiscard]] std::size_t ports() const { return ports_.size(); }
  /// What a station is plugged in to: the far end of the cable of port `index`. This and the others throw
  /// std::out_of_range.
  [[nodiscard]] EthernetLink& port(std::size_t index) { return cable(index).port(0); }
  /// The cable of port `index`; the station is its end 0, the switch its end 1. Wire::set_link takes the link of the
  /// port down, or up again: who was learned behind a port that goes down is forgotten, what waits for it dropped.
  [[nodiscard]] Wire& cable(std::size_t index);

  [[nodiscard]] const EthernetSwitchStatistics& statistics(std::size_t index) const;
  /// Behind which port the station with this MAC address is.
  [[nodiscard]] std::optional<std::size_t> port_of(std::uint64_t mac) const { return table_.find(mac, now_ps()); }
  /// Frames in the buffers.
  [[nodiscard]] std::uint64_t waiting() const;

  /// `tap` is called once for each frame on each cable, as Wire::set_tap says; for those that end at the same time in
  /// the order of the ports. One tap; empty: none.
  void set_tap(Tap tap);

  /// Forgets everything and starts again, with all links up; the tap stays. Throws std::invalid_argument when an option
  /// is out of range, or there is not one cable a port.
  void reset(const std::vector<WireOptions>& cables, const EthernetSwitchOptions& options);

 private:
  class Port;
  using Bytes = std::shared_ptr<const std::vector<std::uint8_t>>;

  void take(Port& in, std::vector<std::uint8_t>&& bytes, bool bad);
  void flood(const Port& in, const Bytes& frame);
  void serve();
  void serve_at(Picoseconds time) { serve_event_.notify_at(time); }
  void saw(std::size_t port, const FrameRecord& record);
  void report();

  EthernetSwitchOptions options_;
  MacTable table_;
  std::vector<std::unique_ptr<Port>> ports_;
  TimedEvent serve_event_;  ///< Something can leave
  Tap tap_;
  std::map<std::size_t, FrameRecord> seen_;  ///< At this time, by 2 * port + from
  sc_core::sc_event report_event_;
};

}  // namespace rnic::model
