#include "tests/server/child_peer.hpp"

#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "tests/server/tool_process.hpp"

namespace rnic::test {
namespace {

template <typename T>
void put(int pipe, const T& value) {
  if (write(pipe, &value, sizeof value) != sizeof value) throw std::runtime_error("the other process has gone");
}

template <typename T>
T get(int pipe) {
  T value;
  if (read(pipe, &value, sizeof value) != sizeof value) throw std::runtime_error("the other process has gone");
  return value;
}

}  // namespace

ChildPeer::ChildPeer(const std::string& socket, RemotePeer& peer, const std::function<Memory()>& prepare,
                     const std::function<int(RemotePeer&, const Memory&)>& body) {
  if (pipe(to_child_.data()) != 0 || pipe(from_child_.data()) != 0) throw std::runtime_error("no pipe for a child");
  const auto there = peer.address();
  process_ = in_child([&] {
    close(to_child_[1]);
    close(from_child_[0]);
    RemotePeer own(socket, 0);
    const Memory memory = prepare();
    const auto region = own.context().create_mr(
        {.address = memory.at, .length = memory.bytes, .local_write = true, .remote_read = true, .remote_write = true});
    if (!region) return 90;
    own.connect(there);
    auto told = own.address();
    told.key = (*region)->key();
    told.memory = reinterpret_cast<std::uint64_t>(memory.at);
    put(from_child_[1], told);
    get<char>(to_child_[0]);
    return body(own, memory);
  });
  close(to_child_[0]);
  close(from_child_[1]);
  address_ = get<RemotePeer::Address>(from_child_[0]);
  peer.connect(address_);
}

ChildPeer::~ChildPeer() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    end();
  }
  close(to_child_[1]);
  close(from_child_[0]);
}

void ChildPeer::begin() { put(to_child_[1], 'x'); }

int ChildPeer::end() {
  const int code = exit_of(process_);
  process_ = -1;
  return code;
}

}  // namespace rnic::test
