#include <winsock2.h>
#include <ws2tcpip.h>
#include <tchar.h>

// Reads its arguments as programs for Windows with UNICODE do; 0 if it has understood them.
int _tmain(int argc, TCHAR* argv[]) {
  if (argc != 4 || _wcsicmp(argv[1], L"-s") != 0 || _tcsicmp(argv[1], _T("-S")) != 0) return 1;
  WSADATA data;
  if (WSAStartup(MAKEWORD(2, 2), &data) != 0) return 2;
  sockaddr_in address{};
  INT length = sizeof address;
  if (WSAStringToAddress(argv[2], AF_INET, nullptr, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 3;
  if (address.sin_port != htons(5000) || address.sin_addr.s_addr != htonl(INADDR_LOOPBACK)) return 4;
  WCHAR text[32];
  DWORD room = _countof(text);
  if (WSAAddressToString(reinterpret_cast<sockaddr*>(&address), sizeof address, nullptr, text, &room) != 0) return 5;
  if (_tcscmp(text, argv[2]) != 0 || room != _tcslen(text) + 1) return 6;
  if (_ttol(argv[3]) != 42) return 7;
  WCHAR copy[4];
  if (wcscpy_s(copy, L"abc") != 0 || wcscpy_s(copy, L"abcd") == 0 || copy[0] != 0) return 8;
  return WSACleanup() == 0 ? 0 : 9;
}
