#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include <strings.h>

#include "driver/win32/types.h"

// Characters that are wide with UNICODE and narrow without, and the functions of the C library for both. A program with
// `_tmain` and UNICODE links rnic_win32_wmain, which converts the arguments.

#ifdef UNICODE
using TCHAR = wchar_t;
#define _T(text) L##text
#define _tmain wmain
#else
using TCHAR = char;
#define _T(text) text
#define _tmain main
#endif
using _TCHAR = TCHAR;
using LPTSTR = TCHAR*;
using LPCTSTR = const TCHAR*;
using PCTSTR = const TCHAR*;
#define TEXT(text) _T(text)

#ifdef UNICODE
int wmain(int count, wchar_t* arguments[]);
#endif

// Both widths under one name.
inline int _tcsicmp(const char* one, const char* other) { return strcasecmp(one, other); }
inline int _tcsicmp(const wchar_t* one, const wchar_t* other) { return wcscasecmp(one, other); }
inline int _tcsnicmp(const char* one, const char* other, std::size_t most) { return strncasecmp(one, other, most); }
inline int _tcsnicmp(const wchar_t* one, const wchar_t* other, std::size_t most) {
  return wcsncasecmp(one, other, most);
}
inline int _tcscmp(const char* one, const char* other) { return std::strcmp(one, other); }
inline int _tcscmp(const wchar_t* one, const wchar_t* other) { return std::wcscmp(one, other); }
inline std::size_t _tcslen(const char* text) { return std::strlen(text); }
inline std::size_t _tcslen(const wchar_t* text) { return std::wcslen(text); }
inline LONG _ttol(const char* text) { return static_cast<LONG>(std::strtol(text, nullptr, 10)); }
inline LONG _ttol(const wchar_t* text) { return static_cast<LONG>(std::wcstol(text, nullptr, 10)); }
inline int _ttoi(const char* text) { return _ttol(text); }
inline int _ttoi(const wchar_t* text) { return _ttol(text); }

inline int _stricmp(const char* one, const char* other) { return strcasecmp(one, other); }
inline int _wcsicmp(const wchar_t* one, const wchar_t* other) { return wcscasecmp(one, other); }
inline int _fcloseall() { return fcloseall(); }

/// File names and modes are in the encoding of the locale. 0, or an errno.
inline int freopen_s(FILE** file, const char* name, const char* mode, FILE* old) {
  *file = std::freopen(name, mode, old);
  return *file != nullptr ? 0 : errno;
}
FILE* _tfreopen(const char* name, const char* mode, FILE* old);
FILE* _tfreopen(const wchar_t* name, const wchar_t* mode, FILE* old);

/// 0; an errno, and `to` is empty (ERANGE: no room).
int wcscpy_s(wchar_t* to, std::size_t room, const wchar_t* from);
int strcpy_s(char* to, std::size_t room, const char* from);
template <std::size_t kRoom>
int wcscpy_s(wchar_t (&to)[kRoom], const wchar_t* from) {
  return wcscpy_s(to, kRoom, from);
}
template <std::size_t kRoom>
int strcpy_s(char (&to)[kRoom], const char* from) {
  return strcpy_s(to, kRoom, from);
}

#ifdef UNICODE
#define _tprintf std::wprintf
#define _ftprintf std::fwprintf
#else
#define _tprintf std::printf
#define _ftprintf std::fprintf
#endif
