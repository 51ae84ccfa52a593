// What the kernel driver is told by a NIC, whichever kind it is (docs/host_interface.md, admin_capabilities).
#include <catch2/catch.hpp>

#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;

TEST_CASE("the RTL and the reference NIC tell the driver the same limits, those of the host interface", "[system]") {
  WorldOptions options;
  options.nics = {testbench::NicKind::kRtl, testbench::NicKind::kModel};
  auto& world = fresh_world(options);
  with_endpoints(world, [](Endpoint& rtl, Endpoint& model) {
    const Limits& a = rtl.kernel().limits();
    const Limits& b = model.kernel().limits();
    // Page 0 of the BAR is no UAR.
    CHECK(a.uar_count == (1u << hw::kUarIndexBits) - 1);
    CHECK(b.uar_count == a.uar_count);
    CHECK(b.max_qp == a.max_qp);
    CHECK(b.max_cq == a.max_cq);
    CHECK(b.max_eq == a.max_eq);
    CHECK(b.max_mr == a.max_mr);
    CHECK(b.max_mw == a.max_mw);
    CHECK(b.max_srq == a.max_srq);
    CHECK(b.max_queue_depth == a.max_queue_depth);
    CHECK(b.max_cq_depth == a.max_cq_depth);
    CHECK(b.max_eq_depth == a.max_eq_depth);
    CHECK(b.max_srq_depth == a.max_srq_depth);
    CHECK(b.max_sge == a.max_sge);
    CHECK(b.max_inline == a.max_inline);
    CHECK(b.max_rd_atomic == a.max_rd_atomic);
    CHECK(b.max_mtu == a.max_mtu);
    CHECK(b.msix_vectors == a.msix_vectors);
    CHECK(b.max_message == a.max_message);
    CHECK(b.clock_mhz == a.clock_mhz);
    CHECK(b.max_region == a.max_region);
    CHECK(b.window_type1 == a.window_type1);
    CHECK(b.window_type2 == a.window_type2);
    CHECK(b.max_fast_pages == a.max_fast_pages);
    CHECK(b.max_multicast_groups == a.max_multicast_groups);
  });
}
