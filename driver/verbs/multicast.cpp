// Multicast groups of UD queue pairs.
#include <cstring>

#include "driver/verbs/objects.hpp"

namespace rnic::verbs {
namespace {

std::array<std::uint8_t, 16> address_of(const ibv_gid& gid) {
  std::array<std::uint8_t, 16> address;
  std::memcpy(address.data(), gid.raw, address.size());
  return address;
}

}  // namespace
}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

/// RoCE has no LIDs: the MAC of a group follows from its GID. Attaching twice is once.
int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t) {
  const auto done = Qp::of(qp).core->attach_multicast(address_of(*gid));
  return !done && done.error() == rnic::Error::kExists ? 0 : errno_of(done);
}

int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t) {
  return errno_of(Qp::of(qp).core->detach_multicast(address_of(*gid)));
}

}  // extern "C"
