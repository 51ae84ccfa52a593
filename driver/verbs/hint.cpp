#include "driver/verbs/hint.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver/unnoticed.hpp"

namespace rnic::verbs {

void hint(std::atomic_flag& given, std::string_view text) noexcept {
  if (given.test_and_set()) return;
  const char* const wanted = std::getenv("RNIC_HINTS");
  if (wanted != nullptr && std::strcmp(wanted, "0") == 0) return;
  const Unnoticed unnoticed;
  std::fprintf(stderr, "rnic: hint: %.*s (RNIC_HINTS=0: no hints)\n", static_cast<int>(text.size()), text.data());
}

void hint_at_grh() noexcept {
  static std::atomic_flag given;
  hint(given,
       "the port is RoCE, so every address needs a GRH: set is_global and grh.sgid_index in ibv_ah_attr. The pingpongs "
       "of ibverbs-utils do so with -g 0, perftest with -x 0");
}

}  // namespace rnic::verbs
