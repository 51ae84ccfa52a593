#include <cstdint>
#include <cstdio>
#include <cstring>

#include "testbench/world.hpp"
#include "tests/testbench/echo_nic.hpp"

/// A machine around a NIC of this project: it copies 256 bytes of memory by DMA. Exit code: 0 they are there.
int main() {
  using namespace rnic;
  testbench::World world;
  bool equal = false;
  world.add_app(0, "copy", [&](testbench::Host& host) {
    Device& device = host.device();
    const DmaBuffer source = device.dma_alloc(4096).take(), target = device.dma_alloc(4096).take();
    std::memset(source.pointer, 0x5a, 256);
    test::copy(device, source.iova, target.iova, 64);
    equal = std::memcmp(source.pointer, target.pointer, 256) == 0;
  });
  world.run();
  std::puts(equal ? "equal" : "the bytes differ");
  return equal ? 0 : 1;
}
