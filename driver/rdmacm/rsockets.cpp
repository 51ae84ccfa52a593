// Sockets over RDMA: none are here, and each call says so.
#include "driver/rdmacm/objects.hpp"

#define RNIC_NO_RSOCKET(name) \
  int name() { return rnic::rdmacm::refuse(EOPNOTSUPP); }
// Of those that return a long or an offset.
#define RNIC_NO_RSOCKET_BYTES(name) \
  long name() { return rnic::rdmacm::refuse(EOPNOTSUPP); }

extern "C" {

RNIC_NO_RSOCKET(rsocket)
RNIC_NO_RSOCKET(rbind)
RNIC_NO_RSOCKET(rlisten)
RNIC_NO_RSOCKET(raccept)
RNIC_NO_RSOCKET(rconnect)
RNIC_NO_RSOCKET(rshutdown)
RNIC_NO_RSOCKET(rclose)
RNIC_NO_RSOCKET_BYTES(rrecv)
RNIC_NO_RSOCKET_BYTES(rrecvfrom)
RNIC_NO_RSOCKET_BYTES(rrecvmsg)
RNIC_NO_RSOCKET_BYTES(rsend)
RNIC_NO_RSOCKET_BYTES(rsendto)
RNIC_NO_RSOCKET_BYTES(rsendmsg)
RNIC_NO_RSOCKET_BYTES(rread)
RNIC_NO_RSOCKET_BYTES(rreadv)
RNIC_NO_RSOCKET_BYTES(rwrite)
RNIC_NO_RSOCKET_BYTES(rwritev)
RNIC_NO_RSOCKET(rpoll)
RNIC_NO_RSOCKET(rselect)
RNIC_NO_RSOCKET(rgetpeername)
RNIC_NO_RSOCKET(rgetsockname)
RNIC_NO_RSOCKET(rsetsockopt)
RNIC_NO_RSOCKET(rgetsockopt)
RNIC_NO_RSOCKET(rfcntl)
RNIC_NO_RSOCKET_BYTES(riomap)
RNIC_NO_RSOCKET(riounmap)
RNIC_NO_RSOCKET_BYTES(riowrite)

}  // extern "C"
