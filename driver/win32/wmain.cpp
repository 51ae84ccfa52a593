#include <clocale>
#include <string>
#include <vector>

#define UNICODE
#include "driver/win32/tchar.h"

// The `main` of programs that have wide arguments: those that can't be converted are empty.
int main(int count, char* arguments[]) {
  std::setlocale(LC_CTYPE, "");
  std::vector<std::wstring> wide(static_cast<std::size_t>(count));
  std::vector<wchar_t*> pointers;
  for (int i = 0; i < count; ++i) {
    std::wstring& text = wide[static_cast<std::size_t>(i)];
    text.resize(std::strlen(arguments[i]));
    const std::size_t length = std::mbstowcs(text.data(), arguments[i], text.size());
    text.resize(length == static_cast<std::size_t>(-1) ? 0 : length);
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return wmain(count, pointers.data());
}
