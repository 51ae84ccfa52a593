#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "testbench/verify/vector.hpp"
#include "testbench/verify/vector_names.hpp"
#include "testbench/verify/vector_reader.hpp"

/// Parts of steps, and steps of many keys (docs/vectors.md). All throw VectorError.
namespace rnic::testbench {

inline const VectorReader::Names kQueues = {{"initiator", number_of(VectorQueue::kInitiator)},
                                            {"receive", number_of(VectorQueue::kReceive)}};
inline const VectorReader::Names kAllQueues = {{"initiator", number_of(VectorQueue::kInitiator)},
                                               {"receive", number_of(VectorQueue::kReceive)},
                                               {"shared", number_of(VectorQueue::kShared)}};

inline constexpr std::uint32_t kDefer = 1u << 31;  // a flag of NDK, not of NetworkDirect
inline const VectorReader::Names kOpFlags = {{"SILENT_SUCCESS", ND_OP_FLAG_SILENT_SUCCESS},
                                             {"READ_FENCE", ND_OP_FLAG_READ_FENCE},
                                             {"SOLICIT", ND_OP_FLAG_SEND_AND_SOLICIT_EVENT},
                                             {"ALLOW_READ", ND_OP_FLAG_ALLOW_READ},
                                             {"ALLOW_WRITE", ND_OP_FLAG_ALLOW_WRITE},
                                             {"INLINE", ND_OP_FLAG_INLINE},
                                             {"DEFER", kDefer}};

VectorPlace read_place(VectorReader from, bool with_length);
/// A multicast group: its IPv4 or IPv6 address.
VectorGroup read_group(VectorReader& from);
/// Number of a queue pair, from 1 in the file and from 0 here.
std::size_t read_qp(VectorReader& from, const VectorSetup& setup, const char* key, std::size_t fallback = 0);
/// A whole number modulo 2^24: 0 is the first PSN, -1 the one before it.
std::uint32_t read_psn(VectorReader& from);
std::int32_t read_status(VectorReader& from);
void read_call(VectorReader& from, VectorStep& to);
/// Hexadecimal digits in pairs, "??" for any byte; spaces do not matter.
std::vector<std::optional<std::uint8_t>> read_pattern_bytes(const VectorReader& from, std::string text);
/// The same of a key, all of which are known.
std::vector<std::uint8_t> read_known_bytes(VectorReader& from, const char* key);

void read_request_step(VectorReader& from, const VectorSetup& setup, VectorStep& to);
void read_complete_step(VectorReader& from, const VectorSetup& setup, VectorStep& to);
/// "results": of `complete` and `get_results`.
void read_results(VectorReader& from, const VectorSetup& setup, VectorStep& to);
/// "options": ND_OP_FLAG_* of fast registrations and their ends.
std::uint32_t read_options(VectorReader& from, VectorStep& to);
void read_fast_register_step(VectorReader& from, VectorStep& to);
/// Steps about the interfaces themselves: their queries, references, and arguments.
void read_interface_step(VectorReader& from, const VectorSetup& setup, VectorStep& to);
/// Steps about connectors and listeners.
void read_connection_step(VectorReader& from, const VectorSetup& setup, VectorStep& to);
/// "null": one of these arguments is a null pointer.
void read_null(VectorReader& from, VectorStep& to, const VectorReader::Names& arguments);
/// A command on the admin queue, past the driver.
void read_admin_step(VectorReader& from, const VectorSetup& setup, VectorStep& to);
/// Bytes of a WQE, past the driver.
void read_spoil_step(VectorReader& from, const VectorSetup& setup, VectorStep& to);
/// A doorbell, and pieces of a WQE for a window, past the driver.
void read_doorbell_step(VectorReader& from, const VectorSetup& setup, VectorStep& to);
void read_push_step(VectorReader& from, const VectorSetup& setup, VectorStep& to);
/// What the host sets in the function's configuration space.
void read_configure_step(VectorReader& from, VectorStep& to);
/// Flow control of the PCI Express link.
void read_credits_step(VectorReader& from, VectorStep& to);
/// A TLP to BAR0.
void read_tlp_step(VectorReader& from, VectorStep& to);
void read_memory_step(VectorReader& from, const VectorSetup& setup, VectorStep& to);
void read_fault_step(VectorReader& from, const VectorSetup& setup, VectorStep& to);
void read_receive_ethernet_step(VectorReader& from, const VectorSetup& setup, VectorStep& to);
void read_frame_step(VectorReader& from, const VectorSetup& setup, VectorStep& to);

}  // namespace rnic::testbench
