`default_nettype none
`include "assert.svh"

/// Receive engine: protocol checks, scatter lists, translation, payload writes; in wire order, pipelined.
///
/// Check stage: looks up the QP by the full QPN, peer address and P_Key, state; requests go through the responder checks (PSN, opcode sequence,
/// lengths, rights of the QP, receive WQE present, Read limit), responses through the requester checks (PSN against the Read ring). Each packet becomes an rx_plan_t; the first packet of
/// a SEND or of a Read response also asks for the WQE that holds its scatter list. Later packets are checked while earlier ones wait for memory.
/// Place stage: takes each plan in order, walks the scatter list from the packet's offset, translates every run (at most a page), and writes the payload.
/// A refused run or a scatter list that is too short faults the packet: nothing more of it is written, and all later packets of that side of that QP are dropped
/// (action None) until qp_reset. Done stage: rx_done_t in order, when the writes have been handed to PCIe.
/// Send context client: Read responses. Receive context client: requests.
module rx_engine (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic                      desc_valid_i,
    output logic                           desc_ready_o,
    input  wire rnic_pkg::rx_desc_t        desc_data_i,
    input  wire logic                      payload_valid_i,
    output logic                           payload_ready_o,
    input  wire rnic_pkg::payload_beat_t   payload_data_i,
    output logic                           send_acq_valid_o,
    input  wire logic                      send_acq_ready_i,
    output logic [7:0]                     send_acq_index_o,
    input  wire logic                      send_ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t       send_ctx_data_i,
    output logic                           send_rel_valid_o,
    input  wire logic                      send_rel_ready_i,
    output logic                           send_rel_write_o,
    output rnic_pkg::send_ctx_t            send_rel_data_o,
    output logic                           recv_acq_valid_o,
    input  wire logic                      recv_acq_ready_i,
    output logic [7:0]                     recv_acq_index_o,
    input  wire logic                      recv_ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t       recv_ctx_data_i,
    output logic                           recv_rel_valid_o,
    input  wire logic                      recv_rel_ready_i,
    output logic                           recv_rel_write_o,
    output rnic_pkg::recv_ctx_t            recv_rel_data_o,
    output logic                           read_slot_en_o,
    output logic [11:0]                    read_slot_addr_o,
    input  wire rnic_pkg::read_slot_t      read_slot_data_i,
    output logic                           path_rd_en_o,
    output logic [7:0]                     path_rd_qp_o,
    input  wire rnic_pkg::path_t           path_rd_data_i,
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
    output logic                           wr_valid_o,
    input  wire logic                      wr_ready_i,
    output rnic_pkg::dma_wr_t              wr_data_o,
    input  wire logic                      wr_done_i,
    output logic                           done_valid_o,
    input  wire logic                      done_ready_i,
    output rnic_pkg::rx_done_t             done_data_o,
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
endmodule

`default_nettype wire
