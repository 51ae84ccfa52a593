// What `rnic lockstep` promises to programs beyond their own work (docs/examples.md): `variables`, `spin`, `words` and
// `leave server|client ADDRESS`.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include <windows.h>

#include "examples/session.hpp"

namespace {

int g_runs = 0;

LONGLONG now_ns() {
  LARGE_INTEGER count{}, frequency{};
  QueryPerformanceCounter(&count);
  QueryPerformanceFrequency(&frequency);
  return count.QuadPart * (1'000'000'000 / frequency.QuadPart);
}

std::atomic<bool> g_set{false};

DWORD set_later(LPVOID) {
  Sleep(2);
  g_set = true;
  return 0;
}

/// Waits for a thread of its own by each call that a spin may have in it.
void spin() {
  for (const auto& [name, pass] : {std::pair<const char*, void (*)()>{"YieldProcessor", [] { YieldProcessor(); }},
                                   {"_mm_pause", [] { _mm_pause(); }},
                                   {"SwitchToThread", [] { SwitchToThread(); }},
                                   {"Sleep", [] { Sleep(0); }}}) {
    g_set = false;
    const LONGLONG begin = now_ns();
    const HANDLE thread = CreateThread(nullptr, 0, set_later, nullptr, 0, nullptr);
    while (!g_set) pass();
    std::printf("%s %d us\n", name, static_cast<int>((now_ns() - begin) / 1000));
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
  }
}

/// The client goes without a word; the server hears of it.
void leave(bool server, const std::string& address) {
  using namespace examples;
  require(NdStartup(), "NdStartup");
  const sockaddr_in there = address_of(address, 54400);
  Arguments arguments;
  arguments.address = address;
  const sockaddr_in own = server ? there : client_address(arguments);
  auto* const session = new Session(own, 4);
  session->begin();
  if (!server) {
    session->connect(own, there, {});
    Sleep(1);
    std::exit(3);
  }
  session->listen(there);
  session->accept({});
  session->finish(session->connector(), session->connector()->NotifyDisconnect(session->request()), "NotifyDisconnect");
  std::printf("the peer has gone\n");
}

}  // namespace

int main(int count, char* words[]) {
  const std::string what = count > 1 ? words[1] : "";
  if (what == "variables") std::printf("%d\n", ++g_runs);
  if (what == "spin") spin();
  if (what == "leave" && count == 4) leave(std::string(words[2]) == "server", words[3]);
  if (what == "words") {
    std::cout << "of C++, ";
    std::printf("of C\n");
    std::cerr << "the end of a line is not there";
  }
  return 0;
}
