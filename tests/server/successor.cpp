// A program that takes the place of another one in its process: it has memory of its own where that had its, and looks
// whether anybody changes it.
// usage: server_successor ADDRESS BYTES SECONDS; numbers are hexadecimal. Exit code: 0 nobody did, 5 somebody did.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 16); };
  const std::size_t bytes = number(2);
  void* const place = reinterpret_cast<void*>(number(1));
  void* const got =
      mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != place) return 3;
  auto* const memory = static_cast<volatile std::uint8_t*>(got);
  constexpr std::uint8_t kOwn = 0x5A;
  std::fill_n(memory, bytes, kOwn);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(number(3));
  while (std::chrono::steady_clock::now() < end) {
    if (!std::all_of(memory, memory + bytes, [](std::uint8_t byte) { return byte == kOwn; })) return 5;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return 0;
}
