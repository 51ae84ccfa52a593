// Names of enumerators, rates, and what programs say of fork.
#include <infiniband/verbs.h>

#include <algorithm>
#include <iterator>

#include "driver/verbs/number.hpp"

namespace rnic::verbs {
namespace {

/// `names[i]` is that of `i`.
template <std::size_t Count>
const char* name_of(const char* const (&names)[Count], int number) {
  return number >= 0 && number < static_cast<int>(Count) && names[number] != nullptr ? names[number] : "unknown";
}

struct Rate {
  ibv_rate rate;
  int mbps;
  int multiple;  ///< Of 2.5 Gbit/s; 0: none
};

constexpr Rate kRates[] = {
    {IBV_RATE_2_5_GBPS, 2500, 1},     {IBV_RATE_5_GBPS, 5000, 2},        {IBV_RATE_10_GBPS, 10000, 4},
    {IBV_RATE_20_GBPS, 20000, 8},     {IBV_RATE_30_GBPS, 30000, 12},     {IBV_RATE_40_GBPS, 40000, 16},
    {IBV_RATE_60_GBPS, 60000, 24},    {IBV_RATE_80_GBPS, 80000, 32},     {IBV_RATE_120_GBPS, 120000, 48},
    {IBV_RATE_14_GBPS, 14062, 6},     {IBV_RATE_56_GBPS, 56250, 22},     {IBV_RATE_112_GBPS, 112500, 45},
    {IBV_RATE_168_GBPS, 168750, 67},  {IBV_RATE_25_GBPS, 25781, 10},     {IBV_RATE_100_GBPS, 103125, 41},
    {IBV_RATE_200_GBPS, 206250, 82},  {IBV_RATE_300_GBPS, 309375, 124},  {IBV_RATE_28_GBPS, 28125, 11},
    {IBV_RATE_50_GBPS, 53125, 21},    {IBV_RATE_400_GBPS, 425000, 170},  {IBV_RATE_600_GBPS, 637500, 255},
    {IBV_RATE_800_GBPS, 850000, 340}, {IBV_RATE_1200_GBPS, 1275000, 510}};

template <typename Member, typename Value>
const Rate* rate_with(Member member, Value value) {
  const auto found =
      std::find_if(std::begin(kRates), std::end(kRates), [&](const Rate& rate) { return rate.*member == value; });
  return found == std::end(kRates) ? nullptr : found;
}

}  // namespace
}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

const char* ibv_node_type_str(ibv_node_type type) {
  static const char* const kNames[] = {nullptr,
                                       "InfiniBand channel adapter",
                                       "InfiniBand switch",
                                       "InfiniBand router",
                                       "iWARP NIC",
                                       "usNIC",
                                       "usNIC UDP",
                                       "unspecified"};
  return name_of(kNames, number_of(type));
}

const char* ibv_port_state_str(ibv_port_state state) {
  static const char* const kNames[] = {"no change", "down", "init", "armed", "active", "active defer"};
  return name_of(kNames, number_of(state));
}

const char* ibv_event_type_str(ibv_event_type event) {
  static const char* const kNames[] = {"CQ error",
                                       "local work queue catastrophic error",
                                       "invalid request local work queue error",
                                       "local access violation work queue error",
                                       "communication established",
                                       "send queue drained",
                                       "path migrated",
                                       "path migration request error",
                                       "local catastrophic error",
                                       "port active",
                                       "port error",
                                       "LID change",
                                       "P_Key change",
                                       "SM change",
                                       "SRQ catastrophic error",
                                       "SRQ limit reached",
                                       "last WQE reached",
                                       "client reregistration",
                                       "GID table change",
                                       "work queue catastrophic error"};
  return name_of(kNames, number_of(event));
}

const char* ibv_wc_status_str(ibv_wc_status status) {
  static const char* const kNames[] = {"success",
                                       "local length error",
                                       "local QP operation error",
                                       "local EE context operation error",
                                       "local protection error",
                                       "flushed",
                                       "memory window bind error",
                                       "bad response error",
                                       "local access error",
                                       "remote invalid request error",
                                       "remote access error",
                                       "remote operation error",
                                       "transport retry counter exceeded",
                                       "RNR retry counter exceeded",
                                       "local RDD violation error",
                                       "remote invalid RD request",
                                       "aborted error",
                                       "invalid EE context number",
                                       "invalid EE context state",
                                       "fatal error",
                                       "response timeout error",
                                       "general error",
                                       "TM error",
                                       "TM rendezvous incomplete"};
  return name_of(kNames, number_of(status));
}

int ibv_rate_to_mult(ibv_rate rate) {
  const Rate* const known = rate_with(&Rate::rate, rate);
  return known != nullptr ? known->multiple : -1;
}

ibv_rate mult_to_ibv_rate(int multiple) {
  const Rate* const known = rate_with(&Rate::multiple, multiple);
  return known != nullptr ? known->rate : IBV_RATE_MAX;
}

int ibv_rate_to_mbps(ibv_rate rate) {
  const Rate* const known = rate_with(&Rate::rate, rate);
  return known != nullptr ? known->mbps : -1;
}

ibv_rate mbps_to_ibv_rate(int mbps) {
  const Rate* const known = rate_with(&Rate::mbps, mbps);
  return known != nullptr ? known->rate : IBV_RATE_MAX;
}

/// The device reaches a process by its address space, not by pages that fork could take away: nothing is to be done.
int ibv_fork_init() { return 0; }

ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

int ibv_dontfork_range(void*, std::size_t) { return 0; }

int ibv_dofork_range(void*, std::size_t) { return 0; }

}  // extern "C"
