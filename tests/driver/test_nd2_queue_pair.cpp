#include <catch2/catch.hpp>

#include <arpa/inet.h>

#include <cstring>

#include "tests/driver/nd2_fixture.hpp"

using namespace rnic;
using test::Nd2Fixture;

namespace {

struct PostFixture : Nd2Fixture {
  PostFixture() {
    open_pair(true);
    for (auto& entry : sge) entry = {memory.data(), 8, 0x77};
  }
  hw::WqeControl control(std::uint16_t index) {
    const auto wqe = device.send_wqe(core->qpn(), index);
    return hw::WqeControl::decode(std::span<const std::uint8_t, 16>(wqe.data(), 16));
  }
  std::vector<ND2_RESULT> results() {
    std::vector<ND2_RESULT> all(100);
    all.resize(queue->GetResults(all.data(), 100));
    return all;
  }
  void* context(std::uintptr_t number) { return reinterpret_cast<void*>(number); }
  std::array<std::uint8_t, 4096> memory{};
  std::array<ND2_SGE, 300> sge;
};

}  // namespace

TEST_CASE_METHOD(PostFixture, "flags that a request does not know are refused by their position") {
  for (unsigned bit = 0; bit < 32; ++bit) {
    const ULONG flag = 1U << bit;
    const bool send = (flag & 0x27) != 0;
    const bool write = (flag & 0x23) != 0;
    const bool read = (flag & 0x03) != 0;
    CHECK(pair->Send(nullptr, sge.data(), 1, flag) == (send ? ND_SUCCESS : ND_INVALID_PARAMETER_4));
    CHECK(pair->Write(nullptr, sge.data(), 1, 0, 0, flag) == (write ? ND_SUCCESS : ND_INVALID_PARAMETER_6));
    CHECK(pair->Read(nullptr, sge.data(), 1, 0, 0, flag) == (read ? ND_SUCCESS : ND_INVALID_PARAMETER_6));
    pair->Release();
    pair = make_pair(queue);
    core = nd2::QueuePair::find(pair)->core();
    REQUIRE(core->connect({}).ok());
  }
}

TEST_CASE_METHOD(PostFixture, "flags reach the WQE") {
  REQUIRE(pair->Send(nullptr, sge.data(), 2, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT | ND_OP_FLAG_READ_FENCE) == ND_SUCCESS);
  CHECK(control(0).opcode == 0);
  CHECK(control(0).solicited == 1);
  CHECK(control(0).fence == 1);
  CHECK(control(0).silent == 0);
  CHECK(control(0).length == 16);
  CHECK(control(0).size == 3);
  const UINT32 token = htonl(0x00112233);
  REQUIRE(pair->Write(nullptr, sge.data(), 1, 0xABC, token, ND_OP_FLAG_SILENT_SUCCESS) == ND_SUCCESS);
  CHECK(control(1).opcode == 1);
  CHECK(control(1).silent == 1);
  const auto wqe = device.send_wqe(core->qpn(), 1);
  const auto remote = hw::WqeRemote::decode(std::span<const std::uint8_t, 16>(wqe.data() + 16, 16));
  CHECK(remote.va == 0xABC);
  CHECK(remote.rkey == 0x00112233);
  const auto data = hw::WqeData::decode(std::span<const std::uint8_t, 16>(wqe.data() + 32, 16));
  CHECK(data.va == reinterpret_cast<std::uintptr_t>(memory.data()));
  CHECK(data.lkey == 0x77);
  REQUIRE(pair->Read(nullptr, nullptr, 0, 0, token, 0) == ND_SUCCESS);
  CHECK(control(2).opcode == 2);
}

TEST_CASE_METHOD(PostFixture, "inline data is copied in the call, from any number of segments") {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint8_t>(i * 7);
  for (std::size_t i = 0; i < 64; ++i) sge[i] = {memory.data() + 2 * i, 1, 0xDEAD};
  sge[10] = {nullptr, 0, 0};
  REQUIRE(pair->Write(nullptr, sge.data(), 65, 0, 0, ND_OP_FLAG_INLINE) == ND_BUFFER_OVERFLOW);  // 63 + 8 bytes
  REQUIRE(pair->Write(nullptr, sge.data(), 64, 0, 0, ND_OP_FLAG_INLINE) == ND_SUCCESS);
  CHECK(control(0).inline_data == 1);
  CHECK(control(0).length == 63);
  const auto wqe = device.send_wqe(core->qpn(), 0);
  std::size_t at = 32;
  for (std::size_t i = 0; i < 64; ++i) {
    if (i != 10) CHECK(wqe[at++] == memory[2 * i]);
  }
  ND2_SGE huge{memory.data(), 0xFFFFFFFF, 0};
  CHECK(pair->Send(nullptr, &huge, 1, ND_OP_FLAG_INLINE) == ND_BUFFER_OVERFLOW);
  std::vector<ND2_SGE> many(3, huge);  // the sum needs more than 32 bits
  CHECK(pair->Send(nullptr, many.data(), 3, ND_OP_FLAG_INLINE) == ND_BUFFER_OVERFLOW);
  REQUIRE(pair->Send(nullptr, nullptr, 0, ND_OP_FLAG_INLINE) == ND_SUCCESS);
  CHECK(control(1).length == 0);
}

TEST_CASE_METHOD(PostFixture, "inline failures, which leave the queue pair usable") {
  CHECK(pair->Send(nullptr, sge.data(), 5, 0) == ND_DATA_OVERRUN);
  CHECK(pair->Write(nullptr, sge.data(), 5, 0, 0, 0) == ND_DATA_OVERRUN);
  CHECK(pair->Read(nullptr, sge.data(), 300, 0, 0, 0) == ND_DATA_OVERRUN);
  CHECK(pair->Receive(nullptr, sge.data(), 5) == ND_DATA_OVERRUN);
  sge[0].BufferLength = 0x7FFFFFFF;
  sge[1].BufferLength = 2;
  CHECK(pair->Send(nullptr, sge.data(), 2, 0) == ND_BUFFER_OVERFLOW);
  CHECK(pair->Write(nullptr, sge.data(), 2, 0, 0, 0) == ND_BUFFER_OVERFLOW);
  CHECK(pair->Read(nullptr, sge.data(), 2, 0, 0, 0) == ND_BUFFER_OVERFLOW);
  CHECK(pair->Receive(nullptr, sge.data(), 2) == ND_BUFFER_OVERFLOW);
  // The number is validated before the list is read.
  const auto* const nothing = reinterpret_cast<const ND2_SGE*>(16);
  for (const ULONG flags : {ULONG{0}, ULONG{ND_OP_FLAG_INLINE}}) {
    CHECK(pair->Send(nullptr, nothing, 0xFFFFFFFF, flags) == ND_DATA_OVERRUN);
    CHECK(pair->Write(nullptr, nothing, 0xFFFFFFFF, 0, 0, flags) == ND_DATA_OVERRUN);
  }
  CHECK(pair->Read(nullptr, nothing, 0xFFFFFFFF, 0, 0, 0) == ND_DATA_OVERRUN);
  CHECK(pair->Receive(nullptr, nothing, 0xFFFFFFFF) == ND_DATA_OVERRUN);
  CHECK(pair->Send(nullptr, nullptr, 1, 0) == ND_INVALID_PARAMETER_2);
  CHECK(pair->Receive(nullptr, nullptr, 1) == ND_INVALID_PARAMETER_2);
  for (int i = 0; i < 8; ++i) {
    CHECK(pair->Send(nullptr, sge.data(), 1, 0) == ND_SUCCESS);
    CHECK(pair->Receive(nullptr, sge.data(), 1) == ND_SUCCESS);
  }
  CHECK(pair->Send(nullptr, sge.data(), 1, 0) == ND_NO_MORE_ENTRIES);
  CHECK(pair->Receive(nullptr, sge.data(), 1) == ND_NO_MORE_ENTRIES);
  CHECK(results().empty());
  CHECK(device.pairs.at(core->qpn()).state == hw::QpState::kRts);
}

TEST_CASE_METHOD(PostFixture, "results carry contexts, kinds, bytes and statuses") {
  REQUIRE(pair->Receive(context(1), sge.data(), 4) == ND_SUCCESS);
  REQUIRE(pair->Receive(context(2), sge.data(), 1) == ND_SUCCESS);
  REQUIRE(pair->Send(context(3), sge.data(), 1, 0) == ND_SUCCESS);
  REQUIRE(pair->Read(context(4), sge.data(), 1, 0, 0, 0) == ND_SUCCESS);
  REQUIRE(pair->Write(context(5), sge.data(), 1, 0, 0, ND_OP_FLAG_SILENT_SUCCESS) == ND_SUCCESS);
  REQUIRE(pair->Send(context(6), sge.data(), 1, 0) == ND_SUCCESS);
  device.finish_receive(core->qpn(), 29);
  device.finish_receive(core->qpn(), 100, hw::CqeStatus::kLocLenErr);
  device.finish_send(core->qpn());
  device.finish_send(core->qpn());
  device.finish_send(core->qpn(), hw::CqeStatus::kRemAccessErr);
  device.finish_send(core->qpn(), hw::CqeStatus::kWrFlushErr);
  const auto all = results();
  REQUIRE(all.size() == 6);
  const HRESULT statuses[] = {ND_SUCCESS, ND_BUFFER_OVERFLOW, ND_SUCCESS, ND_SUCCESS, ND_ACCESS_VIOLATION, ND_CANCELED};
  const ND2_REQUEST_TYPE types[] = {Nd2RequestTypeReceive, Nd2RequestTypeReceive, Nd2RequestTypeSend,
                                    Nd2RequestTypeRead,    Nd2RequestTypeWrite,   Nd2RequestTypeSend};
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].Status == statuses[i]);
    CHECK(all[i].RequestType == types[i]);
    CHECK(all[i].RequestContext == context(i + 1));
    CHECK(all[i].QueuePairContext == static_cast<Nd2Fixture*>(this));
  }
  // Of Receives that succeed alone (section 4 of the interface reference), though the device counts those of requests.
  CHECK(all[0].BytesTransferred == 29);
  for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i].BytesTransferred == 0);
}

TEST_CASE_METHOD(PostFixture, "GetResults fills what is asked, across its batches") {
  pair->Release();
  pair = make_pair(queue, 72);
  core = nd2::QueuePair::find(pair)->core();
  for (std::uintptr_t i = 0; i < 72; ++i) {
    REQUIRE(pair->Receive(context(i), nullptr, 0) == ND_SUCCESS);
    device.finish_receive(core->qpn(), 0);
  }
  std::array<ND2_RESULT, 80> out{};
  CHECK(queue->GetResults(out.data(), 0) == 0);
  CHECK(queue->GetResults(out.data(), 1) == 1);
  CHECK(queue->GetResults(out.data(), 33) == 33);
  CHECK(out[32].RequestContext == context(33));
  CHECK(queue->GetResults(out.data(), 80) == 38);
  CHECK(queue->GetResults(out.data(), 80) == 0);
}

TEST_CASE_METHOD(Nd2Fixture, "before a connection") {
  open_pair(false);
  ND2_SGE sge{nullptr, 0, 0};
  CHECK(pair->Send(nullptr, &sge, 1, 0) == ND_CONNECTION_INVALID);
  CHECK(pair->Write(nullptr, &sge, 1, 0, 0, ND_OP_FLAG_INLINE) == ND_CONNECTION_INVALID);
  CHECK(pair->Read(nullptr, &sge, 1, 0, 0, 0) == ND_CONNECTION_INVALID);
  CHECK(pair->Receive(nullptr, &sge, 1) == ND_SUCCESS);
  CHECK(pair->Flush() == ND_SUCCESS);
  ND2_RESULT result{};
  REQUIRE(queue->GetResults(&result, 1) == 1);
  CHECK(result.Status == ND_CANCELED);
  CHECK(result.RequestType == Nd2RequestTypeReceive);
  REQUIRE(core->connect({}).ok());
  CHECK(pair->Send(nullptr, &sge, 1, 0) == ND_SUCCESS);
}

TEST_CASE_METHOD(PostFixture, "after Flush requests are taken and cancelled") {
  REQUIRE(pair->Send(nullptr, sge.data(), 1, ND_OP_FLAG_SILENT_SUCCESS) == ND_SUCCESS);
  CHECK(pair->Flush() == ND_SUCCESS);
  CHECK(pair->Send(nullptr, sge.data(), 1, ND_OP_FLAG_SILENT_SUCCESS) == ND_SUCCESS);
  const auto all = results();
  REQUIRE(all.size() == 2);
  CHECK(all[0].Status == ND_CANCELED);
  CHECK(all[1].Status == ND_CANCELED);
}

TEST_CASE_METHOD(PostFixture, "the last release flushes; results can still be fetched") {
  REQUIRE(pair->Send(context(1), sge.data(), 1, 0) == ND_SUCCESS);
  REQUIRE(pair->Receive(context(2), sge.data(), 1) == ND_SUCCESS);
  core.reset();
  CHECK(pair->AddRef() == 2);
  CHECK(pair->Release() == 1);
  CHECK(pair->Release() == 0);
  pair = nullptr;
  CHECK(device.pairs.empty());
  CHECK(results().size() == 2);
}
