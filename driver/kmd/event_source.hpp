#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>

#include "driver/event_sink.hpp"
#include "driver/kmd/event_channel.hpp"
#include "driver/machine.hpp"

namespace rnic::kmd {

/// Takes the events of one object of a client, or of the device for it, and puts them into its channels: completion
/// events into one, all others into the other.
class EventSource : public EventSink {
 public:
  /// Events of these types, at most 8; others are ignored. `reader` stands for the client, see Reading.
  EventSource(std::initializer_list<hw::EqeType> types, Machine& machine, const void* reader,
              std::shared_ptr<EventChannel> completions, std::shared_ptr<EventChannel> others);
  ~EventSource() override;

  /// What the client knows the object by; before the first event.
  void name(calls::Handle object, std::uint32_t number);
  void on_event(const hw::Eqe& eqe) override;

  /// In this scope the calling thread hands out what a client is about to read: that client needs not be woken.
  class Reading {
   public:
    explicit Reading(const void* reader);
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading();
  };

 private:
  static constexpr std::size_t kTypes = 8;

  [[nodiscard]] EventChannel& channel_of(std::uint8_t type);

  Machine& machine_;
  const void* const reader_;
  const std::shared_ptr<EventChannel> completions_;
  const std::shared_ptr<EventChannel> others_;
  std::array<PendingEvent, kTypes> places_{};
  std::size_t types_{};
};

}  // namespace rnic::kmd
