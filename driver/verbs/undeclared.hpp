#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

// Functions of libibverbs.so.1 that programs call and that verbs.h does not declare.

extern "C" {

/// Where sysfs is.
const char* ibv_get_sysfs_path();
/// The text of a file without its last line end, with a 0 behind it; returns its length, or -1.
int ibv_read_sysfs_file(const char* folder, const char* file, char* buffer, std::size_t size);
/// `type`: 0 IB or RoCE v1, 1 RoCE v2. Returns -1 if the entry is empty, with errno set.
int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type);

}  // extern "C"
