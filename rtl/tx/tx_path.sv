`default_nettype none
`include "assert.svh"

/// Send path: descriptors and pieces in, frames out.
///
/// Merges requests (source 0) and the responder's packets (source 1) a packet at a time. Gathers payload: each piece is cut at pages,
/// translated, read by DMA, and packed; several packets are under way at once, in order. Builds Ethernet, IPv4 (identification 0, DF) or IPv6, UDP (checksum
/// 0 on IPv4 and IPv6, as annex A17 allows), BTH and extended headers, pads, appends the ICRC. A frame starts on the wire only when all of it is there, and
/// then has no gap other than by eth_tx_ready_i; frames are padded to 60 bytes.
/// A payload that cannot be had (translation refused, DMA error) drops the packet, reports tx_fault once, and drops all later packets of that side of that QP until
/// qp_reset.
module tx_path (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic [47:0]               port_mac_i,
    input  wire logic [1:0]                desc_valid_i,
    output logic [1:0]                     desc_ready_o,
    input  wire logic [2*rnic_pkg::TxDescBits-1:0] desc_data_i,
    input  wire logic [1:0]                piece_valid_i,
    output logic [1:0]                     piece_ready_o,
    input  wire logic [2*rnic_pkg::SgPieceBits-1:0] piece_data_i,
    output logic                           xlate_req_valid_o,
    input  wire logic                      xlate_req_ready_i,
    output rnic_pkg::xlate_req_t           xlate_req_data_o,
    input  wire logic                      xlate_rsp_valid_i,
    output logic                           xlate_rsp_ready_o,
    input  wire rnic_pkg::xlate_rsp_t      xlate_rsp_data_i,
    output logic                           xlate_retire_valid_o,
    output logic                           xlate_retire_epoch_o,
    output logic                           rd_req_valid_o,
    input  wire logic                      rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t          rd_req_data_o,
    input  wire logic                      rd_rsp_valid_i,
    output logic                           rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t     rd_rsp_data_i,
    // Path table: data one cycle after path_rd_en_o
    output logic                           path_rd_en_o,
    output logic [7:0]                     path_rd_qp_o,
    input  wire rnic_pkg::path_t           path_rd_data_i,
    output logic                           tx_fault_valid_o,
    input  wire logic                      tx_fault_ready_i,
    output rnic_pkg::tx_fault_t            tx_fault_data_o,
    output logic                           eth_tx_valid_o,
    input  wire logic                      eth_tx_ready_i,
    output rnic_pkg::frame_beat_t          eth_tx_data_o,
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
endmodule

`default_nettype wire
