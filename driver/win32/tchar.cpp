#include "driver/win32/tchar.h"

#include <string>

namespace {

std::string in_locale(const wchar_t* wide) {
  std::mbstate_t state{};
  const wchar_t* from = wide;
  const std::size_t bytes = std::wcsrtombs(nullptr, &from, 0, &state);
  if (bytes == static_cast<std::size_t>(-1)) return {};
  std::string text(bytes, '\0');
  from = wide;
  std::wcsrtombs(text.data(), &from, bytes, &state);
  return text;
}

template <typename Character>
int copy_text(Character* to, std::size_t room, const Character* from, std::size_t length) {
  if (to == nullptr || room == 0) return EINVAL;
  to[0] = 0;
  if (length >= room) return ERANGE;
  std::char_traits<Character>::copy(to, from, length + 1);
  return 0;
}

}  // namespace

FILE* _tfreopen(const char* name, const char* mode, FILE* old) { return std::freopen(name, mode, old); }

FILE* _tfreopen(const wchar_t* name, const wchar_t* mode, FILE* old) {
  return std::freopen(in_locale(name).c_str(), in_locale(mode).c_str(), old);
}

int wcscpy_s(wchar_t* to, std::size_t room, const wchar_t* from) {
  return copy_text(to, room, from, std::wcslen(from));
}

int strcpy_s(char* to, std::size_t room, const char* from) { return copy_text(to, room, from, std::strlen(from)); }
