// What NetworkDirect finds on this host: addresses, and the limits of the adapter of each.
#include <cstdio>
#include <string>

#include "session.hpp"

namespace {

void print(const ND2_ADAPTER_INFO& of) {
  const auto row = [](const char* name, unsigned long long value) { std::printf("  %-28s %llu\n", name, value); };
  std::printf("  %-28s %04x:%04x\n", "vendor and device", of.VendorId, of.DeviceId);
  row("MaxRegistrationSize", of.MaxRegistrationSize);
  row("MaxWindowSize", of.MaxWindowSize);
  row("MaxInitiatorSge", of.MaxInitiatorSge);
  row("MaxReceiveSge", of.MaxReceiveSge);
  row("MaxReadSge", of.MaxReadSge);
  row("MaxTransferLength", of.MaxTransferLength);
  row("MaxInlineDataSize", of.MaxInlineDataSize);
  row("MaxInboundReadLimit", of.MaxInboundReadLimit);
  row("MaxOutboundReadLimit", of.MaxOutboundReadLimit);
  row("MaxReceiveQueueDepth", of.MaxReceiveQueueDepth);
  row("MaxInitiatorQueueDepth", of.MaxInitiatorQueueDepth);
  row("MaxSharedReceiveQueueDepth", of.MaxSharedReceiveQueueDepth);
  row("MaxCompletionQueueDepth", of.MaxCompletionQueueDepth);
  row("InlineRequestThreshold", of.InlineRequestThreshold);
  row("LargeRequestThreshold", of.LargeRequestThreshold);
  row("MaxCallerData", of.MaxCallerData);
  row("MaxCalleeData", of.MaxCalleeData);
  std::printf("  %-28s%s%s%s%s\n", "flags",
              (of.AdapterFlags & ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED) ? " in-order-dma" : "",
              (of.AdapterFlags & ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED) ? " cq-moderation" : "",
              (of.AdapterFlags & ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED) ? " cq-resize" : "",
              (of.AdapterFlags & ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED) ? " loopback" : "");
}

}  // namespace

int main() {
  using namespace examples;
  require(NdStartup(), "NdStartup");
  SIZE_T bytes = 0;
  if (NdQueryAddressList(0, nullptr, &bytes) == ND_SUCCESS) fail("no adapter (run it by rnic exec)");
  std::string room(bytes, '\0');
  auto* const list = reinterpret_cast<SOCKET_ADDRESS_LIST*>(room.data());
  require(NdQueryAddressList(0, list, &bytes), "NdQueryAddressList");
  for (INT i = 0; i < list->iAddressCount; ++i) {
    if (list->Address[i].lpSockaddr->sa_family != AF_INET) continue;
    const auto own = *reinterpret_cast<const sockaddr_in*>(list->Address[i].lpSockaddr);
    char text[INET_ADDRSTRLEN] = "";
    std::printf("%s\n", inet_ntop(AF_INET, &own.sin_addr, text, sizeof text));
    Session session(own, 1);
    print(session.limits());
  }
  require(NdCleanup(), "NdCleanup");
}
