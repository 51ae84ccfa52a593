#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "driver/event_sink.hpp"

namespace rnic {

/// Whom events are handed to: a sink for each object, by its number, and those of the device. Handing out needs no
/// memory, and is done without the lock while a sink is told; one that comes or goes meanwhile may or may not be told.
/// Thread safe; lets no time pass.
class EventTable {
 public:
  enum class Of : std::uint8_t {
    kQp,
    kSrq,
    kCq,
    kRegion,      ///< By the number under which the answer of the device is expected
    kEndpoint,    ///< Of the connection manager, by its handle: it has something to say
    kConnection,  ///< Of a queue pair, by its number: what means its end
  };

  /// Events of the object go to `sink` while it lives. Throws std::bad_alloc.
  void subscribe(Of kind, std::uint32_t number, std::weak_ptr<EventSink> sink);
  void unsubscribe(Of kind, std::uint32_t number);
  /// Events of the device and of its port go to every `sink` that lives. Throws std::bad_alloc.
  void subscribe_device(std::weak_ptr<EventSink> sink);

  /// To the sink of the object, by the type of the event; kPortActive and kPortError to those of the device. False: a
  /// type that there is not, or kDeviceFatal.
  bool hand_out(const hw::Eqe& eqe);
  /// To the sink of that object, whatever it is.
  void tell(Of kind, const hw::Eqe& eqe);
  /// To everybody, queue pairs first.
  void tell_everybody(const hw::Eqe& eqe);
  /// A completion event for every completion queue.
  void tell_completion_queues();

 private:
  using Sinks = std::map<std::uint32_t, std::weak_ptr<EventSink>>;

  [[nodiscard]] Sinks& of(Of kind);
  void give(const Sinks& sinks, const hw::Eqe& eqe);
  void tell_all(const Sinks& sinks, const hw::Eqe& eqe);

  std::mutex mutex_;
  Sinks qps_;
  Sinks srqs_;
  Sinks cqs_;
  Sinks regions_;
  Sinks endpoints_;
  Sinks connections_;
  Sinks device_;  ///< By order of subscription
};

}  // namespace rnic
