// Objects of other processes can't be brought in: a client of the kernel driver owns its own only.
#include "driver/verbs/errors.hpp"
#include "driver/verbs/objects.hpp"

using rnic::verbs::refuse;

extern "C" {

ibv_context* ibv_import_device(int) { return refuse(EOPNOTSUPP); }
ibv_pd* ibv_import_pd(ibv_context*, std::uint32_t) { return refuse(EOPNOTSUPP); }
void ibv_unimport_pd(ibv_pd*) {}
ibv_mr* ibv_import_mr(ibv_pd*, std::uint32_t) { return refuse(EOPNOTSUPP); }
void ibv_unimport_mr(ibv_mr*) {}
ibv_dm* ibv_import_dm(ibv_context*, std::uint32_t) { return refuse(EOPNOTSUPP); }
void ibv_unimport_dm(ibv_dm*) {}

}  // extern "C"
