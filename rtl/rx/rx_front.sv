`default_nettype none
`include "assert.svh"

/// Receive front end: frames in, packets with a right ICRC out.
///
/// Frames cannot be held up (a MAC gives no back-pressure): when the buffer (at least 128 KiB of payload, 2048 packets) cannot take a whole frame it is dropped and counted.
/// Checks: destination MAC (ours or broadcast), EtherType, IP version and header length, no fragments, IPv4 header checksum, UDP port and length against the frame,
/// BTH version 0, pad count, an opcode of RC, UC or UD whose extended headers fit, payload not above 4096 bytes, ICRC. A packet leaves only when all of it is known to be
/// good: first rx_desc_t, then (payload_length > 0) its payload, packed, padding and ICRC removed.
module rx_front (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic [47:0]               port_mac_i,
    input  wire logic                      enable_i,
    input  wire logic                      eth_rx_valid_i,
    input  wire rnic_pkg::frame_beat_t     eth_rx_data_i,
    output logic                           desc_valid_o,
    input  wire logic                      desc_ready_i,
    output rnic_pkg::rx_desc_t             desc_data_o,
    output logic                           payload_valid_o,
    input  wire logic                      payload_ready_i,
    output rnic_pkg::payload_beat_t        payload_data_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
endmodule

`default_nettype wire
