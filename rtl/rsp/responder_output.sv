`default_nettype none
`include "assert.svh"

/// Responder's output: Read responses, ACKs, NAKs, in PSN order per QP, QPs in turn.
///
/// Per QP: a ring of MaxReadsOutstanding Reads to answer, the newest executed PSN, whether an ACK is due, a NAK that waits, and the MSN.
/// Each turn of a QP sends one packet: the next response packet of its oldest Read, or, when no Read is left, the NAK, or one ACK for the newest
/// executed PSN (so ACKs coalesce while the QP waits for its turn). A Read response acknowledges what precedes it. After a fatal NAK
/// (0x61 to 0x63) nothing more is sent for the QP until qp_reset. Read response First, Last and Only carry an AETH with the MSN of that Read.
/// Payload of responses: one sg_piece_t with access RemoteRead. tx_fault of a responder's packet: the Reads left are dropped and a NAK remote
/// access error for the faulted PSN is queued.
/// The receive context is acquired for MTU, PD and state, and to count rd_inflight down when a Read has been answered.
module responder_output (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic                      cmd_valid_i,
    output logic                           cmd_ready_o,
    input  wire rnic_pkg::rsp_cmd_t        cmd_data_i,
    input  wire logic                      tx_fault_valid_i,
    output logic                           tx_fault_ready_o,
    input  wire rnic_pkg::tx_fault_t       tx_fault_data_i,
    output logic                           acq_valid_o,
    input  wire logic                      acq_ready_i,
    output logic [7:0]                     acq_index_o,
    input  wire logic                      ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t       ctx_data_i,
    output logic                           rel_valid_o,
    input  wire logic                      rel_ready_i,
    output logic                           rel_write_o,
    output rnic_pkg::recv_ctx_t            rel_data_o,
    output logic                           desc_valid_o,
    input  wire logic                      desc_ready_i,
    output rnic_pkg::tx_desc_t             desc_data_o,
    output logic                           piece_valid_o,
    input  wire logic                      piece_ready_i,
    output rnic_pkg::sg_piece_t            piece_data_o,
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i
);
endmodule

`default_nettype wire
