#pragma once

#include <type_traits>

#include "driver/win32/types.h"

// Interlocked operations: full barriers, as on Windows. The plain names are of LONG, those that end in 64 of 64 bits. A program
// may have written `long` for LONG: it has the width of Linux, and is one atomic number all the same.

template <typename T>
concept Interlocked32 = sizeof(T) == 4 || std::is_same_v<T, long> || std::is_same_v<T, unsigned long>;
template <typename T>
concept Interlocked64 = sizeof(T) == 8;

template <Interlocked32 T>
T InterlockedIncrement(volatile T* value) {
  return __atomic_add_fetch(value, 1, __ATOMIC_SEQ_CST);
}
template <Interlocked32 T>
T InterlockedDecrement(volatile T* value) {
  return __atomic_sub_fetch(value, 1, __ATOMIC_SEQ_CST);
}
template <Interlocked32 T>
T InterlockedExchange(volatile T* value, std::type_identity_t<T> other) {
  return __atomic_exchange_n(value, other, __ATOMIC_SEQ_CST);
}
template <Interlocked32 T>
T InterlockedExchangeAdd(volatile T* value, std::type_identity_t<T> more) {
  return __atomic_fetch_add(value, more, __ATOMIC_SEQ_CST);
}
template <Interlocked32 T>
T InterlockedAnd(volatile T* value, std::type_identity_t<T> mask) {
  return __atomic_fetch_and(value, mask, __ATOMIC_SEQ_CST);
}
template <Interlocked32 T>
T InterlockedOr(volatile T* value, std::type_identity_t<T> mask) {
  return __atomic_fetch_or(value, mask, __ATOMIC_SEQ_CST);
}
/// What was there; `other` is there now if that was `expected`.
template <Interlocked32 T>
T InterlockedCompareExchange(volatile T* value, std::type_identity_t<T> other, std::type_identity_t<T> expected) {
  __atomic_compare_exchange_n(value, &expected, other, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}

template <Interlocked64 T>
T InterlockedIncrement64(volatile T* value) {
  return __atomic_add_fetch(value, 1, __ATOMIC_SEQ_CST);
}
template <Interlocked64 T>
T InterlockedDecrement64(volatile T* value) {
  return __atomic_sub_fetch(value, 1, __ATOMIC_SEQ_CST);
}
template <Interlocked64 T>
T InterlockedExchange64(volatile T* value, std::type_identity_t<T> other) {
  return __atomic_exchange_n(value, other, __ATOMIC_SEQ_CST);
}
template <Interlocked64 T>
T InterlockedExchangeAdd64(volatile T* value, std::type_identity_t<T> more) {
  return __atomic_fetch_add(value, more, __ATOMIC_SEQ_CST);
}
template <Interlocked64 T>
T InterlockedCompareExchange64(volatile T* value, std::type_identity_t<T> other, std::type_identity_t<T> expected) {
  __atomic_compare_exchange_n(value, &expected, other, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}
inline PVOID InterlockedExchangePointer(PVOID volatile* value, PVOID other) {
  return __atomic_exchange_n(value, other, __ATOMIC_SEQ_CST);
}
inline PVOID InterlockedCompareExchangePointer(PVOID volatile* value, PVOID other, PVOID expected) {
  __atomic_compare_exchange_n(value, &expected, other, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}
inline void MemoryBarrier() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
