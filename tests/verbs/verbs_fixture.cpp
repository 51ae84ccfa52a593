#include "tests/verbs/verbs_fixture.hpp"

#include <cstring>

#include "driver/verbs/devices.hpp"

namespace rnic::test {
namespace {

/// The library remembers a node for ever; behind it is the device of the present test.
class PresentNode final : public DeviceNode {
 public:
  [[nodiscard]] Result<std::unique_ptr<KernelPort>> open() override {
    if (present == nullptr) return Error::kDeviceNotFound;
    return present->open();
  }
  [[nodiscard]] Machine& machine() override { return present->machine(); }
  [[nodiscard]] EventTakers& takers() override { return present->takers(); }

  DeviceNode* present{};
};

PresentNode g_node;

}  // namespace
}  // namespace rnic::test

namespace rnic::verbs {

std::vector<FoundDevice> find_devices() {
  std::vector<FoundDevice> devices;
  if (test::g_node.present != nullptr)
    devices.push_back({.name = "rnic0", .node = {std::shared_ptr<void>(), &test::g_node}});
  return devices;
}

}  // namespace rnic::verbs

namespace rnic::test {

VerbsFixture::VerbsFixture() {
  kernel = kmd::KernelDevice::open(device, {.mac = 0x0200'0000'0001, .gids = {kOwnIpv4}}).take();
  REQUIRE(kernel->port_tables().add_neighbour(kPeerIpv4, kPeerMac).ok());
  g_node.present = &kernel->node();
  ibv_device** const list = ibv_get_device_list(nullptr);
  found = list[0];
  ibv_free_device_list(list);
  REQUIRE(found != nullptr);
  context = ibv_open_device(found);
  REQUIRE(context != nullptr);
  pd = ibv_alloc_pd(context);
  REQUIRE(pd != nullptr);
  device.commands.clear();
}

VerbsFixture::~VerbsFixture() {
  static_cast<void>(ibv_dealloc_pd(pd));
  ibv_close_device(context);
  g_node.present = nullptr;
}

ibv_qp_init_attr VerbsFixture::qp_attributes(ibv_cq* cq, ibv_qp_type type) const {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = cq;
  attributes.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64};
  attributes.qp_type = type;
  return attributes;
}

ibv_qp* VerbsFixture::make_qp(ibv_cq* cq, ibv_qp_type type) {
  auto attributes = qp_attributes(cq, type);
  ibv_qp* const qp = ibv_create_qp(pd, &attributes);
  REQUIRE(qp != nullptr);
  return qp;
}

/// The attributes that the manual of ibv_modify_qp asks for.
QpStep qp_step(ibv_qp_type type, ibv_qp_state next) {
  QpStep step;
  ibv_qp_attr& a = step.attributes;
  a.qp_state = next;
  a.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  a.qkey = 0x1111;
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = 0x123;
  a.rq_psn = 0x456;
  a.sq_psn = 0x789;
  a.max_rd_atomic = a.max_dest_rd_atomic = 4;
  a.min_rnr_timer = 12;
  a.timeout = 14;
  a.retry_cnt = 7;
  a.rnr_retry = 6;
  std::memcpy(a.ah_attr.grh.dgid.raw, kPeerIpv4.data(), kPeerIpv4.size());
  a.ah_attr.grh.sgid_index = 1;
  a.ah_attr.grh.hop_limit = 9;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  const bool ud = type == IBV_QPT_UD;
  const bool rc = type == IBV_QPT_RC;
  step.mask = IBV_QP_STATE;
  switch (next) {
    case IBV_QPS_INIT: step.mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS); break;
    case IBV_QPS_RTR:
      if (!ud) step.mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
      if (rc) step.mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
      break;
    case IBV_QPS_RTS:
      step.mask |= IBV_QP_SQ_PSN;
      if (rc) step.mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
      break;
    default: break;
  }
  return step;
}

int VerbsFixture::connect(ibv_qp* qp, ibv_qp_state until) {
  for (const ibv_qp_state next : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    auto step = qp_step(qp->qp_type, next);
    if (const int error = ibv_modify_qp(qp, &step.attributes, step.mask); error != 0) return error;
    if (next == until) return 0;
  }
  return 0;
}

ibv_qp* VerbsFixture::make_connected_qp(ibv_cq* cq, ibv_qp_type type) {
  ibv_qp* const qp = make_qp(cq, type);
  REQUIRE(connect(qp) == 0);
  return qp;
}

ibv_qp_ex* VerbsFixture::make_connected_qp_ex(ibv_cq* cq, std::uint64_t operations, ibv_qp_type type) {
  const auto plain = qp_attributes(cq, type);
  ibv_qp_init_attr_ex attributes{};
  attributes.send_cq = attributes.recv_cq = cq;
  attributes.cap = plain.cap;
  attributes.qp_type = type;
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attributes.pd = pd;
  attributes.send_ops_flags = operations;
  ibv_qp* const qp = ibv_create_qp_ex(context, &attributes);
  REQUIRE(qp != nullptr);
  REQUIRE(connect(qp) == 0);
  return ibv_qp_to_qp_ex(qp);
}

hw::WqeControl VerbsFixture::send_head(const ibv_qp* qp, std::uint16_t index) {
  const auto wqe = device.send_wqe(qp->qp_num, index);
  return hw::WqeControl::decode(std::span(wqe).first<hw::WqeControl::kBytes>());
}

std::vector<ibv_wc> VerbsFixture::poll(ibv_cq* cq) {
  std::vector<ibv_wc> all(100);
  const int count = ibv_poll_cq(cq, static_cast<int>(all.size()), all.data());
  REQUIRE(count >= 0);
  all.resize(static_cast<std::size_t>(count));
  return all;
}

}  // namespace rnic::test
