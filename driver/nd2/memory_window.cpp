#include "driver/nd2/memory_window.hpp"

#include <arpa/inet.h>

namespace rnic::nd2 {

// Decisions 25: network order, so that its bytes can be shipped as they are.
UINT32 MemoryWindow::GetRemoteToken() { return htonl(window_->key()); }

void MemoryWindow::on_final_release() {
  static_cast<void>(guarded([&] {
    static_cast<void>(window_->destroy().ok());
    return ND_SUCCESS;
  }));
}

}  // namespace rnic::nd2
