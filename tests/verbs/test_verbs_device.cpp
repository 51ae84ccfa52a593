#include <arpa/inet.h>
#include <endian.h>

#include <cstring>
#include <string>

#include "driver/verbs/undeclared.hpp"
#include "tests/verbs/verbs_fixture.hpp"

using namespace rnic;
using test::VerbsFixture;

namespace {

std::string sysfs(const std::string& folder, const char* file) {
  char text[64];
  const int length = ibv_read_sysfs_file(folder.c_str(), file, text, sizeof text);
  if (length < 0) return "nothing";
  CHECK(std::strlen(text) == static_cast<std::size_t>(length));
  return text;
}

}  // namespace

TEST_CASE_METHOD(VerbsFixture, "a device has a name, a kind and a GUID") {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  REQUIRE(count == 1);
  CHECK(list[1] == nullptr);
  CHECK(list[0] == found);
  CHECK(std::string(ibv_get_device_name(list[0])) == "rnic0");
  CHECK(list[0]->node_type == IBV_NODE_CA);
  CHECK(list[0]->transport_type == IBV_TRANSPORT_IB);
  CHECK(ibv_get_device_index(list[0]) == 0);
  // EUI-64 of 02:00:00:00:00:01, as in the link-local GID.
  CHECK(be64toh(ibv_get_device_guid(list[0])) == 0x0000'00FF'FE00'0001);
  ibv_free_device_list(list);
}

TEST_CASE_METHOD(VerbsFixture, "a device says what it can do") {
  ibv_device_attr plain{};
  REQUIRE(ibv_query_device(context, &plain) == 0);
  CHECK(plain.max_qp == static_cast<int>(kernel->limits().max_qp));
  CHECK(plain.max_mr == (1 << hw::kMptIndexBits) - 1);  // one key is the host's own agent's
  CHECK(plain.max_mw == plain.max_mr);
  CHECK(plain.phys_port_cnt == 1);
  CHECK(plain.atomic_cap == IBV_ATOMIC_HCA);
  CHECK((plain.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0);
  ibv_device_attr_ex extended{};
  REQUIRE(ibv_query_device_ex(context, nullptr, &extended) == 0);
  CHECK(std::memcmp(&extended.orig_attr, &plain, sizeof plain) == 0);
  CHECK(extended.phys_port_cnt_ex == 1);
  CHECK(extended.completion_timestamp_mask != 0);
  const ibv_query_device_ex_input input{.comp_mask = 1};
  CHECK(ibv_query_device_ex(context, &input, &extended) == EINVAL);
  // A program of another age knows less of the structure.
  auto* const table = verbs_get_ctx(context);
  REQUIRE(table != nullptr);
  std::memset(static_cast<void*>(&extended), 0xAA, sizeof extended);
  REQUIRE(table->query_device_ex(context, nullptr, &extended, offsetof(ibv_device_attr_ex, odp_caps)) == 0);
  CHECK(extended.hca_core_clock == 0xAAAA'AAAA'AAAA'AAAA);
  CHECK(table->query_device_ex(context, nullptr, &extended, sizeof extended.orig_attr - 1) == EINVAL);
  CHECK(table->query_device_ex(context, &input, &extended, sizeof extended) == EINVAL);
  // The clock, and nothing else that may be asked for.
  ibv_values_ex values{.comp_mask = 6, .raw_clock = {}};
  REQUIRE(ibv_query_rt_values_ex(context, &values) == 0);
  CHECK(values.comp_mask == 0);
  values.comp_mask = 6 | IBV_VALUES_MASK_RAW_CLOCK;
  REQUIRE(ibv_query_rt_values_ex(context, &values) == 0);
  CHECK(values.comp_mask == IBV_VALUES_MASK_RAW_CLOCK);
}

TEST_CASE_METHOD(VerbsFixture, "a port says how it is and what its tables hold") {
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(context, 1, &port) == 0);
  CHECK(port.link_layer == IBV_LINK_LAYER_ETHERNET);
  CHECK(port.gid_tbl_len == 16);
  CHECK(port.pkey_tbl_len == 1);
  CHECK(port.lid == 0);
  CHECK(port.max_msg_sz == 1U << 31);
  CHECK(port.state == IBV_PORT_DOWN);  // the device has no cable
  device.registers[hw::reg::kPortStatus] = hw::RegPortStatus{.link_up = 1}.word();
  REQUIRE(ibv_query_port(context, 1, &port) == 0);
  CHECK(port.state == IBV_PORT_ACTIVE);
  CHECK(ibv_query_port(context, 0, &port) == EINVAL);
  CHECK(ibv_query_port(context, 2, &port) == EINVAL);

  ibv_gid gid{};
  REQUIRE(ibv_query_gid(context, 1, 0, &gid) == 0);
  CHECK(be64toh(gid.global.subnet_prefix) == 0xFE80'0000'0000'0000);
  CHECK(gid.global.interface_id == ibv_get_device_guid(found));
  REQUIRE(ibv_query_gid(context, 1, 1, &gid) == 0);
  CHECK(std::memcmp(gid.raw, test::kOwnIpv4.data(), sizeof gid.raw) == 0);
  REQUIRE(ibv_query_gid(context, 1, 2, &gid) == 0);  // empty
  CHECK(gid.global.subnet_prefix == 0);
  CHECK(gid.global.interface_id == 0);
  CHECK(ibv_query_gid(context, 1, 16, &gid) == -1);
  CHECK(ibv_query_gid(context, 1, -1, &gid) == -1);
  CHECK(ibv_query_gid(context, 2, 0, &gid) == -1);

  ibv_gid_entry entry{};
  REQUIRE(ibv_query_gid_ex(context, 1, 1, &entry, 0) == 0);
  CHECK(entry.gid_index == 1);
  CHECK(entry.port_num == 1);
  CHECK(entry.gid_type == IBV_GID_TYPE_ROCE_V2);
  CHECK(ibv_query_gid_ex(context, 1, 7, &entry, 0) == ENODATA);
  CHECK(ibv_query_gid_ex(context, 1, 0, &entry, 1) == EOPNOTSUPP);
  CHECK(ibv_query_gid_ex(context, 3, 0, &entry, 0) == EINVAL);
  // Of a longer entry than ours the rest is 0, of a shorter one there is the beginning.
  struct {
    ibv_gid_entry known;
    std::uint8_t more[16];
  } longer;
  std::memset(&longer, 0xAA, sizeof longer);
  REQUIRE(_ibv_query_gid_ex(context, 1, 1, &longer.known, 0, sizeof longer) == 0);
  CHECK(longer.known.gid_index == 1);
  for (const std::uint8_t byte : longer.more) CHECK(byte == 0);
  ibv_gid_entry entries[3];
  CHECK(ibv_query_gid_table(context, entries, 3, 0) == 2);
  CHECK(entries[1].gid_index == 1);
  CHECK(ibv_query_gid_table(context, entries, 1, 0) == -EINVAL);

  __be16 pkey{};
  REQUIRE(ibv_query_pkey(context, 1, 0, &pkey) == 0);
  CHECK(ntohs(pkey) == 0xFFFF);
  CHECK(ibv_query_pkey(context, 1, 5, &pkey) == -1);
  CHECK(ibv_get_pkey_index(context, 1, htons(0xFFFF)) == 0);
  CHECK(ibv_get_pkey_index(context, 1, htons(0x8001)) == -1);
}

TEST_CASE_METHOD(VerbsFixture, "sysfs of a device is made up, other files are real") {
  const std::string folder = found->ibdev_path;
  CHECK(folder == std::string(ibv_get_sysfs_path()) + "/class/infiniband/rnic0");
  CHECK(sysfs(folder, "node_guid") == "0000:00ff:fe00:0001");
  CHECK(sysfs(folder, "node_type") == "1: CA");
  CHECK(sysfs(folder, "ports/1/link_layer") == "Ethernet");
  CHECK(sysfs(folder, "ports/1/gids/0") == "fe80:0000:0000:0000:0000:00ff:fe00:0001");
  CHECK(sysfs(folder, "ports/1/gid_attrs/types/1") == "RoCE v2");
  CHECK(sysfs(folder, "ports/1/gid_attrs/types/2") == "nothing");
  CHECK(sysfs(folder, "ports/1/pkeys/0") == "0xffff");
  CHECK(sysfs(folder, "ports/2/lid") == "nothing");
  CHECK(sysfs(folder + "/ports/1", "lid") == "0x0");
  CHECK(sysfs(found->dev_path, "ibdev") == "rnic0");
  CHECK(sysfs("/proc/sys/kernel", "ostype") == "Linux");
  CHECK(sysfs("/proc/sys/kernel", "no_such_file") == "nothing");
}

TEST_CASE_METHOD(VerbsFixture, "an address has a station, as far as the machine knows") {
  ibv_ah_attr attributes{};
  std::uint8_t mac[ETHERNET_LL_SIZE];
  std::uint16_t vid = 0;
  std::memcpy(attributes.grh.dgid.raw, test::kPeerIpv4.data(), sizeof attributes.grh.dgid.raw);
  REQUIRE(ibv_resolve_eth_l2_from_gid(context, &attributes, mac, &vid) == 0);
  const std::uint8_t peer[] = {2, 0, 0, 0, 0, 2};
  CHECK(std::memcmp(mac, peer, sizeof peer) == 0);
  CHECK(vid == 0xFFFF);
  attributes.grh.dgid.raw[15] = 99;
  CHECK(ibv_resolve_eth_l2_from_gid(context, &attributes, mac, nullptr) == -1);
  CHECK(errno == EHOSTUNREACH);
}

TEST_CASE("enumerators have names, and rates have speeds") {
  CHECK(std::string(ibv_wc_status_str(IBV_WC_SUCCESS)) == "success");
  CHECK(std::string(ibv_wc_status_str(static_cast<ibv_wc_status>(999))) == "unknown");
  CHECK(std::string(ibv_node_type_str(IBV_NODE_UNKNOWN)) == "unknown");
  CHECK(std::string(ibv_port_state_str(IBV_PORT_ACTIVE)) == "active");
  CHECK(std::string(ibv_event_type_str(IBV_EVENT_QP_LAST_WQE_REACHED)) == "last WQE reached");
  CHECK(ibv_rate_to_mult(IBV_RATE_10_GBPS) == 4);
  CHECK(mult_to_ibv_rate(4) == IBV_RATE_10_GBPS);
  CHECK(ibv_rate_to_mbps(IBV_RATE_100_GBPS) == 103125);
  CHECK(mbps_to_ibv_rate(25781) == IBV_RATE_25_GBPS);
  CHECK(ibv_rate_to_mult(IBV_RATE_MAX) == -1);
  CHECK(mbps_to_ibv_rate(1) == IBV_RATE_MAX);
}

TEST_CASE_METHOD(VerbsFixture, "what there is not answers so") {
  CHECK(ibv_import_device(3) == nullptr);
  CHECK(errno == EOPNOTSUPP);
  ibv_alloc_dm_attr memory{.length = 64, .log_align_req = 0, .comp_mask = 0};
  CHECK(ibv_alloc_dm(context, &memory) == nullptr);
  CHECK(errno == EOPNOTSUPP);
  ibv_xrcd_init_attr domain{};
  CHECK(ibv_open_xrcd(context, &domain) == nullptr);
  CHECK(errno == EOPNOTSUPP);
  CHECK(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 3, 0) == nullptr);
  CHECK(errno == EOPNOTSUPP);
}
