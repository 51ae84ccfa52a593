#include "model/reference/nic.hpp"

namespace rnic::reference {

Nic::Nic()
    : pcie(*this),
      memory(*this),
      queues(*this),
      interrupts(*this),
      port(*this),
      datagrams(*this),
      ethernet(*this),
      requester(*this),
      responder(*this),
      qps(*this),
      admin(*this),
      registers(*this) {
  clock.spawn(admin.run());
}

void Nic::configure(const Settings& changed) {
  const Settings before = std::exchange(settings, changed);
  if (before.completion_timeout_disable != changed.completion_timeout_disable) pcie.retime();
  if (before.msix_enable != changed.msix_enable || before.msix_mask != changed.msix_mask) interrupts.look();
  if (enable && before.link_up != changed.link_up)
    queues.event(0, {Source::Port, 0}, {changed.link_up ? Event::PortActive : Event::PortError, 1, 0});
}

void Nic::set_enable(bool on) {
  enable = on;
  admin.look();
}

}  // namespace rnic::reference
