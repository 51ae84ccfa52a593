// The provider of NetworkDirect and the helpers from an address to an adapter, on fake devices.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "driver/kmd/kernel_device.hpp"
#include "driver/nd2/framework.hpp"
#include "driver/nd2/handles.hpp"
#include "testbench/com_ptr.hpp"
#include "tests/driver/fake_device.hpp"

using namespace rnic;
using nd2::DeviceNodes;
using nd2::Framework;
using testbench::ComPtr;

namespace {

sockaddr_in ipv4(const char* text, std::uint16_t port = 0) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  REQUIRE(inet_pton(AF_INET, text, &to.sin_addr) == 1);
  return to;
}
sockaddr_in6 ipv6(const char* text, std::uint16_t port = 0) {
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(port);
  REQUIRE(inet_pton(AF_INET6, text, &to.sin6_addr) == 1);
  return to;
}
template <typename Address>
const sockaddr* generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}
kmd::Gid gid4(std::uint8_t host) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, host}; }

struct Machine {
  explicit Machine(std::uint8_t number, std::vector<kmd::Gid> gids) : device(number) {
    kernel = kmd::KernelDevice::open(device, {.mac = 0x0200'0000'0000ULL + number, .gids = std::move(gids)}).take();
  }
  test::FakeDevice device;
  std::unique_ptr<kmd::KernelDevice> kernel;
};

/// A process that finds two devices: 10.0.0.1 with fd00::1, and 10.0.0.2. The helpers are its own.
struct ProcessOfTwo {
  ProcessOfTwo() {
    nd2::set_framework([this]() -> Framework& { return framework; });
  }
  ~ProcessOfTwo() { nd2::set_framework({}); }
  ProcessOfTwo(const ProcessOfTwo&) = delete;
  ProcessOfTwo& operator=(const ProcessOfTwo&) = delete;

  ComPtr<IND2Provider> provider() {
    ComPtr<IND2Provider> made;
    REQUIRE(DllGetClassObject(CLSID_RnicProvider, IID_IND2Provider, made.put()) == ND_SUCCESS);
    return made;
  }

  Machine first{1, {gid4(1), {0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}};
  Machine second{2, {gid4(2)}};
  DeviceNodes nodes{&first.kernel->node(), &second.kernel->node()};
  unsigned searches = 0;
  Framework framework{[this] {
    ++searches;
    return nodes;
  }};
  // Far more than is needed.
  std::array<std::uint8_t, 512> room{};
  SOCKET_ADDRESS_LIST* list = reinterpret_cast<SOCKET_ADDRESS_LIST*>(room.data());
};

// Each device also has its link-local address.
constexpr SIZE_T kAll =
    sizeof(SOCKET_ADDRESS_LIST) + 4 * sizeof(SOCKET_ADDRESS) + 2 * sizeof(sockaddr_in) + 3 * sizeof(sockaddr_in6);

}  // namespace

TEST_CASE_METHOD(ProcessOfTwo, "a provider lists the addresses of its adapters") {
  const auto from = provider();
  CHECK(from->QueryAddressList(list, nullptr) == ND_INVALID_PARAMETER_2);
  ULONG bytes = 0;
  CHECK(from->QueryAddressList(nullptr, &bytes) == ND_BUFFER_OVERFLOW);
  CHECK(bytes == kAll);
  bytes = kAll - 1;
  CHECK(from->QueryAddressList(list, &bytes) == ND_BUFFER_OVERFLOW);
  CHECK(bytes == kAll);
  CHECK(room == decltype(room){});
  bytes = room.size();
  REQUIRE(from->QueryAddressList(list, &bytes) == ND_SUCCESS);
  CHECK(bytes == kAll);
  REQUIRE(list->iAddressCount == 5);
  const auto one = ipv4("10.0.0.1"), two = ipv4("10.0.0.2");
  const auto link_local = ipv6("fe80::ff:fe00:1"), six = ipv6("fd00::1");
  const auto is = [&](int place, const auto& address) {
    const SOCKET_ADDRESS& entry = list->Address[place];
    return entry.iSockaddrLength == sizeof address && std::memcmp(entry.lpSockaddr, &address, sizeof address) == 0;
  };
  CHECK(is(0, link_local));
  CHECK(is(1, one));
  CHECK(is(2, six));
  CHECK(is(4, two));
  // One comes while the process runs.
  REQUIRE(second.kernel->port_tables().add_gid(gid4(9)).ok());
  CHECK(from->QueryAddressList(nullptr, &(bytes = 0)) == ND_BUFFER_OVERFLOW);
  CHECK(bytes == kAll + sizeof(SOCKET_ADDRESS) + sizeof(sockaddr_in));
}

TEST_CASE_METHOD(ProcessOfTwo, "a provider finds the adapter of an address, whatever the port") {
  const auto from = provider();
  UINT64 id = 77;
  const auto resolve = [&](const auto& address, ULONG bytes) {
    return from->ResolveAddress(generic(address), bytes, &id);
  };
  CHECK(resolve(ipv4("10.0.0.9"), sizeof(sockaddr_in)) == ND_INVALID_ADDRESS);
  CHECK(resolve(ipv4("127.0.0.1"), sizeof(sockaddr_in)) == ND_INVALID_ADDRESS);
  CHECK(resolve(ipv4("0.0.0.0"), sizeof(sockaddr_in)) == ND_INVALID_ADDRESS);
  CHECK(resolve(ipv6("::ffff:10.0.0.1"), sizeof(sockaddr_in6)) == ND_INVALID_ADDRESS);
  sockaddr local{};
  local.sa_family = AF_UNIX;
  CHECK(resolve(local, sizeof local) == ND_INVALID_ADDRESS);
  CHECK(resolve(ipv4("10.0.0.1"), sizeof(sockaddr_in) - 1) == ND_INVALID_PARAMETER_2);
  CHECK(resolve(ipv6("fd00::1"), sizeof(sockaddr_in6) - 1) == ND_INVALID_PARAMETER_2);
  CHECK(from->ResolveAddress(nullptr, 16, &id) == ND_INVALID_PARAMETER_1);
  const auto two = ipv4("10.0.0.2", 5000);
  CHECK(from->ResolveAddress(generic(two), sizeof two, nullptr) == ND_INVALID_PARAMETER_3);
  CHECK(id == 77);
  REQUIRE(resolve(two, sizeof two) == ND_SUCCESS);
  CHECK(id == 0x0200'0000'0002);
  REQUIRE(resolve(ipv6("fd00::1", 9), sizeof(sockaddr_in6)) == ND_SUCCESS);
  CHECK(id == 0x0200'0000'0001);
}

TEST_CASE_METHOD(ProcessOfTwo, "a provider opens an adapter, and may be released at once") {
  auto from = provider();
  void* object = this;
  CHECK(from->OpenAdapter(IID_IND2Adapter, 0x0200'0000'0003, &object) == ND_INVALID_PARAMETER);
  CHECK(object == nullptr);
  object = this;
  CHECK(from->OpenAdapter(IID_IND2QueuePair, 0x0200'0000'0002, &object) == E_NOINTERFACE);
  CHECK(object == nullptr);
  CHECK(from->OpenAdapter(IID_IND2Adapter, 0x0200'0000'0002, nullptr) == E_POINTER);
  ComPtr<IND2Adapter> adapter;
  REQUIRE(from->OpenAdapter(IID_IND2Adapter, 0x0200'0000'0002, adapter.put()) == ND_SUCCESS);
  from.reset();
  ND2_ADAPTER_INFO info{};
  info.InfoVersion = ND_VERSION_2;
  ULONG bytes = sizeof info;
  REQUIRE(adapter->Query(&info, &bytes) == ND_SUCCESS);
  CHECK(info.AdapterId == 0x0200'0000'0002);
  CHECK(adapter->QueryAddressList(nullptr, &(bytes = 0)) == ND_BUFFER_OVERFLOW);
  CHECK(bytes == sizeof(SOCKET_ADDRESS_LIST) + sizeof(SOCKET_ADDRESS) + sizeof(sockaddr_in6) + sizeof(sockaddr_in));
}

TEST_CASE_METHOD(ProcessOfTwo, "what the library of a provider exports") {
  CHECK(DllCanUnloadNow() == S_OK);
  void* object = this;
  CHECK(DllGetClassObject(IID_IND2Provider, IID_IND2Provider, &object) == CLASS_E_CLASSNOTAVAILABLE);
  CHECK(object == nullptr);
  constexpr IID kClassFactory{0x00000001, 0, 0, {0xC0, 0, 0, 0, 0, 0, 0, 0x46}};
  CHECK(DllGetClassObject(CLSID_RnicProvider, kClassFactory, &object) == E_NOINTERFACE);
  CHECK(DllGetClassObject(CLSID_RnicProvider, IID_IND2Provider, nullptr) == E_POINTER);
  REQUIRE(DllGetClassObject(CLSID_RnicProvider, IID_IUnknown, &object) == ND_SUCCESS);
  auto* const unknown = static_cast<IUnknown*>(object);
  CHECK(DllCanUnloadNow() == S_FALSE);
  REQUIRE(unknown->QueryInterface(IID_IND2Provider, &object) == S_OK);
  CHECK(unknown->QueryInterface(IID_IND2Overlapped, &object) == E_NOINTERFACE);
  CHECK(object == nullptr);
  CHECK(unknown->AddRef() == 3);
  CHECK(unknown->Release() == 2);
  CHECK(unknown->Release() == 1);
  CHECK(unknown->Release() == 0);
  CHECK(DllCanUnloadNow() == S_OK);
}

TEST_CASE_METHOD(ProcessOfTwo, "helpers work between the first NdStartup and the last NdCleanup") {
  const auto one = ipv4("10.0.0.1");
  sockaddr_in local{};
  SIZE_T bytes = room.size();
  void* object = this;
  const auto all = [&] {
    INDAdapter* old = nullptr;
    return std::array{
        NdQueryAddressList(0, list, &(bytes = room.size())),
        NdResolveAddress(generic(one), sizeof one, reinterpret_cast<sockaddr*>(&local), &(bytes = sizeof local)),
        NdCheckAddress(generic(one), sizeof one), NdOpenAdapter(IID_IND2Adapter, generic(one), sizeof one, &object),
        NdOpenV1Adapter(generic(one), sizeof one, &old)};
  };
  const auto none = [&] {
    for (const HRESULT status : all()) CHECK(status == ND_DEVICE_NOT_READY);
    CHECK(NdCleanup() == ND_DEVICE_NOT_READY);
  };
  none();
  CHECK(object == nullptr);
  NdFlushProviders();
  none();
  REQUIRE(NdStartup() == ND_SUCCESS);
  REQUIRE(NdStartup() == ND_SUCCESS);
  CHECK(NdCleanup() == ND_SUCCESS);
  CHECK(all() == std::array{ND_SUCCESS, ND_SUCCESS, ND_SUCCESS, ND_SUCCESS, ND_INVALID_ADDRESS});
  auto* const adapter = static_cast<IND2Adapter*>(object);
  CHECK(NdCleanup() == ND_SUCCESS);
  none();
  // What was opened stays.
  HANDLE file = nullptr;
  CHECK(adapter->CreateOverlappedFile(&file) == ND_SUCCESS);
  CHECK(nd2::close_handle(file));
  CHECK(adapter->Release() == 0);
}

TEST_CASE_METHOD(ProcessOfTwo, "NdFlushProviders has devices searched anew") {
  REQUIRE(NdStartup() == ND_SUCCESS);
  const auto two = ipv4("10.0.0.2");
  CHECK(NdCheckAddress(generic(two), sizeof two) == ND_SUCCESS);
  CHECK(searches == 1);
  nodes.pop_back();
  CHECK(NdCheckAddress(generic(two), sizeof two) == ND_SUCCESS);
  NdFlushProviders();
  CHECK(NdCheckAddress(generic(two), sizeof two) == ND_INVALID_ADDRESS);
  CHECK(searches == 2);
  CHECK(NdCleanup() == ND_SUCCESS);
}

TEST_CASE_METHOD(ProcessOfTwo, "NdQueryAddressList gives the addresses that the flags do not leave out") {
  REQUIRE(NdStartup() == ND_SUCCESS);
  SIZE_T bytes = 0;
  CHECK(NdQueryAddressList(0, list, nullptr) == ND_INVALID_PARAMETER_3);
  CHECK(NdQueryAddressList(8, list, &bytes) == ND_INVALID_PARAMETER_1);
  CHECK(NdQueryAddressList(0, nullptr, &bytes) == ND_BUFFER_OVERFLOW);
  CHECK(bytes == kAll);
  bytes = kAll - 1;
  CHECK(NdQueryAddressList(0, list, &bytes) == ND_BUFFER_OVERFLOW);
  CHECK(bytes == kAll);
  REQUIRE(NdQueryAddressList(ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES | ND_QUERY_EXCLUDE_NDv1_ADDRESSES, list, &bytes) ==
          ND_SUCCESS);
  CHECK(list->iAddressCount == 5);
  CHECK(bytes == kAll);
  CHECK(NdQueryAddressList(ND_QUERY_EXCLUDE_NDv2_ADDRESSES, list, &bytes) == ND_SUCCESS);
  CHECK(bytes == 0);
  nodes.clear();
  NdFlushProviders();
  CHECK(NdQueryAddressList(0, nullptr, &(bytes = 4)) == ND_SUCCESS);
  CHECK(bytes == 0);
  CHECK(NdCleanup() == ND_SUCCESS);
}

TEST_CASE_METHOD(ProcessOfTwo, "NdResolveAddress gives the local address from which another is reached") {
  REQUIRE(NdStartup() == ND_SUCCESS);
  sockaddr_in local{};
  SIZE_T bytes = sizeof local;
  auto* const to = reinterpret_cast<sockaddr*>(&local);
  const auto resolve = [&](const auto& remote, SIZE_T size) {
    return NdResolveAddress(generic(remote), size, to, &bytes);
  };
  const auto far = ipv4("10.0.0.77", 5000);
  CHECK(NdResolveAddress(generic(far), sizeof far, to, nullptr) == ND_INVALID_PARAMETER_4);
  CHECK(NdResolveAddress(nullptr, sizeof far, to, &bytes) == ND_INVALID_PARAMETER_1);
  CHECK(resolve(far, 4) == ND_INVALID_PARAMETER_2);
  CHECK(resolve(ipv4("0.0.0.0", 5000), sizeof far) == ND_INVALID_ADDRESS);
  sockaddr other{};
  other.sa_family = AF_UNIX;
  CHECK(resolve(other, sizeof other) == ND_INVALID_ADDRESS);
  bytes = sizeof local - 1;
  CHECK(resolve(far, sizeof far) == ND_BUFFER_OVERFLOW);
  CHECK(bytes == sizeof local);
  CHECK(NdResolveAddress(generic(far), sizeof far, nullptr, &(bytes = 0)) == ND_BUFFER_OVERFLOW);
  CHECK(local.sin_family == 0);
  REQUIRE(resolve(far, sizeof far) == ND_SUCCESS);
  const auto one = ipv4("10.0.0.1"), two = ipv4("10.0.0.2");
  CHECK(std::memcmp(&local, &one, sizeof one) == 0);
  // A local one, and this host.
  REQUIRE(resolve(ipv4("10.0.0.2", 80), sizeof far) == ND_SUCCESS);
  CHECK(std::memcmp(&local, &two, sizeof two) == 0);
  REQUIRE(resolve(ipv4("127.0.0.1", 80), sizeof far) == ND_SUCCESS);
  CHECK(std::memcmp(&local, &one, sizeof one) == 0);
  // Of IPv6 the one that has the scope.
  sockaddr_in6 own{};
  bytes = sizeof own;
  const auto far_link = ipv6("fe80::77");
  REQUIRE(NdResolveAddress(generic(far_link), sizeof far_link, reinterpret_cast<sockaddr*>(&own), &bytes) ==
          ND_SUCCESS);
  const auto own_link = ipv6("fe80::ff:fe00:1");
  CHECK(std::memcmp(&own, &own_link, sizeof own_link) == 0);
  // Who has more room than is needed hears how long the address is.
  sockaddr_storage wide{};
  bytes = sizeof wide;
  REQUIRE(NdResolveAddress(generic(far), sizeof far, reinterpret_cast<sockaddr*>(&wide), &bytes) == ND_SUCCESS);
  CHECK(bytes == sizeof(sockaddr_in));
  bytes = sizeof local;
  CHECK(resolve(ipv6("fd00::5"), sizeof(sockaddr_in6)) == ND_BUFFER_OVERFLOW);
  CHECK(bytes == sizeof(sockaddr_in6));
  nodes.erase(nodes.begin());
  NdFlushProviders();
  CHECK(resolve(ipv6("fd00::5"), sizeof(sockaddr_in6)) == ND_NETWORK_UNREACHABLE);
  CHECK(NdCleanup() == ND_SUCCESS);
}

TEST_CASE_METHOD(ProcessOfTwo, "a device that does not answer has no addresses") {
  REQUIRE(NdStartup() == ND_SUCCESS);
  first.device.take_away();
  const auto one = ipv4("10.0.0.1"), two = ipv4("10.0.0.2");
  const auto six = ipv6("fd00::7");
  sockaddr_in6 local{};
  SIZE_T bytes = sizeof local;
  CHECK(NdCheckAddress(generic(one), sizeof one) == ND_INVALID_ADDRESS);
  CHECK(NdCheckAddress(generic(two), sizeof two) == ND_SUCCESS);
  CHECK(NdResolveAddress(generic(six), sizeof six, reinterpret_cast<sockaddr*>(&local), &bytes) == ND_UNSUCCESSFUL);
  void* object = this;
  CHECK(provider()->OpenAdapter(IID_IND2Adapter, 0x0200'0000'0001, &object) == ND_INVALID_PARAMETER);
  CHECK(NdCleanup() == ND_SUCCESS);
}

TEST_CASE_METHOD(ProcessOfTwo, "NdCheckAddress and NdOpenAdapter judge the address by its position") {
  REQUIRE(NdStartup() == ND_SUCCESS);
  const auto one = ipv4("10.0.0.1", 4), far = ipv4("10.0.0.7");
  const auto six = ipv6("fd00::1");
  CHECK(NdCheckAddress(nullptr, sizeof one) == ND_INVALID_PARAMETER_1);
  CHECK(NdCheckAddress(generic(one), sizeof(sockaddr) - 1) == ND_INVALID_PARAMETER_2);
  CHECK(NdCheckAddress(generic(six), sizeof(sockaddr_in6) - 1) == ND_INVALID_PARAMETER_2);
  CHECK(NdCheckAddress(generic(far), sizeof far) == ND_INVALID_ADDRESS);
  CHECK(NdCheckAddress(generic(one), sizeof one) == ND_SUCCESS);
  CHECK(NdCheckAddress(generic(six), sizeof six) == ND_SUCCESS);
  void* object = this;
  CHECK(NdOpenAdapter(IID_IND2Adapter, nullptr, sizeof one, &object) == ND_INVALID_PARAMETER_2);
  CHECK(object == nullptr);
  CHECK(NdOpenAdapter(IID_IND2Adapter, generic(one), 3, &object) == ND_INVALID_PARAMETER_3);
  CHECK(NdOpenAdapter(IID_IND2Adapter, generic(far), sizeof far, &object) == ND_INVALID_ADDRESS);
  CHECK(NdOpenAdapter(IID_IND2Adapter, generic(one), sizeof one, nullptr) == E_POINTER);
  CHECK(NdOpenAdapter(IID_IND2Listener, generic(one), sizeof one, &object) == E_NOINTERFACE);
  REQUIRE(NdOpenAdapter(IID_IND2Adapter, generic(six), sizeof six, &object) == ND_SUCCESS);
  CHECK(static_cast<IND2Adapter*>(object)->Release() == 0);
  INDAdapter* old = reinterpret_cast<INDAdapter*>(this);
  CHECK(NdOpenV1Adapter(nullptr, sizeof one, &old) == ND_INVALID_PARAMETER_1);
  CHECK(old == nullptr);
  CHECK(NdOpenV1Adapter(generic(one), 3, &old) == ND_INVALID_PARAMETER_2);
  CHECK(NdOpenV1Adapter(generic(one), sizeof one, nullptr) == E_POINTER);
  CHECK(NdOpenV1Adapter(generic(one), sizeof one, &old) == ND_INVALID_ADDRESS);
  CHECK(NdCleanup() == ND_SUCCESS);
}

TEST_CASE("names of version 1 are those of version 2") {
  CHECK(ND_LOCAL_LENGTH == ND_DATA_OVERRUN);
  CHECK(ND_INVALIDATION_ERROR == ND_INVALID_DEVICE_REQUEST);
}
