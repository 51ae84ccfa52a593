#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

#include "pattern.hpp"
#include "times.hpp"

/// What nd_storage and ndk_storage speak: the client, which has data to be stored, opens the memory of one piece to the
/// server and sends a request; the server reads the piece and answers; the client shuts the memory again. So many
/// requests are under way at a time, each in a slot of its own. A last request is for memory that is shut: the server
/// must not be able to read it, and its attempt ends the connection.
namespace examples::storage {

struct Request {
  std::uint64_t address = 0;  ///< Of the piece
  std::uint32_t token = 0;
  std::uint32_t bytes = 0;
  std::uint32_t number = 0;  ///< Of the request, from 0
  std::uint32_t slot = 0;
};

struct Answer {
  std::uint32_t number = 0;
  std::uint32_t slot = 0;
};

/// The table at the end: `all` durations of requests, which took `us` together.
inline void print(std::uint32_t bytes, std::uint32_t depth, double us, std::vector<double> all) {
  const auto count = static_cast<double>(all.size());
  std::printf("%10s %10s %6s %12s %10s %10s %12s %10s %10s\n", "bytes", "requests", "depth", "requests/s", "MB/s",
              "min us", "median us", "mean us", "99 % us");
  const Times times = times_of(std::move(all));
  std::printf("%10u %10.0f %6u %12.0f %10.1f %10.2f %12.2f %10.2f %10.2f\n", bytes, count, depth, count * 1e6 / us,
              bytes * count / us, times.min, times.median, times.mean, times.most);
}

}  // namespace examples::storage
