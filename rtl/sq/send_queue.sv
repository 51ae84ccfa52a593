`default_nettype none
`include "assert.svh"

/// Send queues: doorbells, WQE fetch, decode, fence, Read limit, segmentation into packets.
///
/// A doorbell (or a WQE from a UAR window) is checked against the QP's UAR, moves its producer index and wakes the scheduler.
/// A window WQE whose index is the next to execute, on a queue with nothing buffered behind it, goes into the WQE buffer and
/// needs no fetch; otherwise it counts as a doorbell only. The scheduler picks one runnable QP after the other; each turn makes at most one packet, so QPs
/// share the wire fairly. A QP that cannot go on (no WQE in the buffer, fence, Read limit, SqWindow full, fault, not RTS) is put aside until an
/// event wakes it: fetch done, sq_wake_valid_i, a doorbell.
///
/// A packet is one tx_desc_t and, for payload_length > 0, its sg_piece_t run; a Read request has no payload and reserves the PSNs of its response
/// (at least one), with an entry in the Read ring of its QP. The last packet of a WQE is preceded by its inflight_t. ack_req is set on the
/// last packet of every message, and on every 16th packet in between.
/// A malformed WQE (opcode, flags, size, length above MaxMessageBytes, too few SGE bytes, wrong qpn or index; a Read with max_rd 0) sends nothing: the
/// context gets `fault` and a retire_cmd_t FailWqe (LocQpOpErr) goes out. `fault` stops the queue.
/// A doorbell for a QP in the error state sends its QP index to flush_req.
/// Send context clients: 0 doorbells, 1 WQE fetch, 2 engine.
module send_queue (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic                      sq_doorbell_valid_i,
    output logic                           sq_doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t       sq_doorbell_data_i,
    input  wire logic                      wqe_push_valid_i,
    output logic                           wqe_push_ready_o,
    input  wire rnic_pkg::wqe_push_t       wqe_push_data_i,
    output logic [2:0]                     acq_valid_o,
    input  wire logic [2:0]                acq_ready_i,
    output logic [3*8-1:0]                 acq_index_o,
    input  wire logic [2:0]                ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t       ctx_data_i,
    output logic [2:0]                     rel_valid_o,
    input  wire logic [2:0]                rel_ready_i,
    output logic [2:0]                     rel_write_o,
    output logic [3*rnic_pkg::SendCtxBits-1:0] rel_data_o,
    output logic                           rd_req_valid_o,
    input  wire logic                      rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t          rd_req_data_o,
    input  wire logic                      rd_rsp_valid_i,
    output logic                           rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t     rd_rsp_data_i,
    output logic                           desc_valid_o,
    input  wire logic                      desc_ready_i,
    output rnic_pkg::tx_desc_t             desc_data_o,
    output logic                           piece_valid_o,
    input  wire logic                      piece_ready_i,
    output rnic_pkg::sg_piece_t            piece_data_o,
    // Always taken; a cycle with valid is one entry
    output logic                           inflight_valid_o,
    output rnic_pkg::inflight_t            inflight_data_o,
    output logic                           retire_cmd_valid_o,
    input  wire logic                      retire_cmd_ready_i,
    output rnic_pkg::retire_cmd_t          retire_cmd_data_o,
    output logic                           flush_req_valid_o,
    input  wire logic                      flush_req_ready_i,
    output logic [7:0]                     flush_req_qp_o,
    // The QP may be able to go on (slots retired, a Read finished, state changed)
    input  wire logic                      sq_wake_valid_i,
    input  wire logic [7:0]                sq_wake_qp_i,
    // Read ring, read port: slot {qp, slot} one cycle after read_slot_en_i
    input  wire logic                      read_slot_en_i,
    input  wire logic [11:0]               read_slot_addr_i,
    output rnic_pkg::read_slot_t           read_slot_data_o,
    // Forget everything about a QP; ready when done
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
endmodule

`default_nettype wire
