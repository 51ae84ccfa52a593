#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "driver/kmd/kernel_device.hpp"
#include "driver/kmd/port_tables.hpp"
#include "tests/driver/fake_device.hpp"

namespace rnic::test {

inline constexpr kmd::Gid kOwnIpv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1};
inline constexpr kmd::Gid kPeerIpv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 2};
inline constexpr std::uint64_t kPeerMac = 0x0200'0000'0002;

/// A fake device, which the library finds as rnic0, and a program that has opened it.
struct VerbsFixture {
  VerbsFixture();
  ~VerbsFixture();

  ibv_cq* make_cq(int entries = 64, ibv_comp_channel* channel = nullptr) {
    return ibv_create_cq(context, entries, this, channel, 0);
  }
  ibv_qp_init_attr qp_attributes(ibv_cq* cq, ibv_qp_type type = IBV_QPT_RC) const;
  ibv_qp* make_qp(ibv_cq* cq, ibv_qp_type type = IBV_QPT_RC);
  /// INIT, RTR, RTS. Returns the errno of the first that fails.
  static int connect(ibv_qp* qp, ibv_qp_state until = IBV_QPS_RTS);
  ibv_qp* make_connected_qp(ibv_cq* cq, ibv_qp_type type = IBV_QPT_RC);
  ibv_qp_ex* make_connected_qp_ex(ibv_cq* cq, std::uint64_t operations, ibv_qp_type type = IBV_QPT_RC);
  ibv_mr* make_mr(unsigned access = IBV_ACCESS_LOCAL_WRITE) {
    return ibv_reg_mr(pd, buffer.data(), buffer.size(), access);
  }
  [[nodiscard]] hw::WqeControl send_head(const ibv_qp* qp, std::uint16_t index);
  std::vector<ibv_wc> poll(ibv_cq* cq);

  FakeDevice device;
  std::unique_ptr<kmd::KernelDevice> kernel;
  ibv_device* found{};
  ibv_context* context{};
  ibv_pd* pd{};
  alignas(4096) std::array<std::uint8_t, 8192> buffer{};
};

/// Attributes for each step of connect, and their mask.
struct QpStep {
  ibv_qp_attr attributes{};
  int mask{};
};
[[nodiscard]] QpStep qp_step(ibv_qp_type type, ibv_qp_state next);

}  // namespace rnic::test
