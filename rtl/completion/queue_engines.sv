`default_nettype none
`include "assert.svh"

/// CQEs and events: merges the sources of CQEs into one order, writes them, makes events of them,
/// and asks for MSI-X messages. What an input has handed over stays in that order up to the host. A
/// place is kept for the next CQE of each input (item_kept_o): who holds a context hands over only
/// then, and never waits for the host with it.
module queue_engines (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    output logic                     ready_o,
    input  wire logic [63:0]         cycles_i,
    output rnic_pkg::rest_t          rest_o,
    // CQEs: 0 retire, 1 rx_post, 2 flush, which also asks for events of QPs
    output logic [2:0]               item_kept_o,
    input  wire logic [2:0]          item_valid_i,
    output logic [2:0]               item_ready_o,
    input  wire logic [2:0]          item_is_event_i,
    input  wire logic [3*rnic_pkg::CqeReqBits-1:0] item_data_i,
    // Events of SRQs
    input  wire logic                srq_eqe_valid_i,
    output logic                     srq_eqe_ready_o,
    input  wire rnic_pkg::eqe_req_t  srq_eqe_data_i,
    input  wire logic                cq_doorbell_valid_i,
    output logic                     cq_doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t cq_doorbell_data_i,
    input  wire logic                eq_doorbell_valid_i,
    output logic                     eq_doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t eq_doorbell_data_i,
    input  wire logic [1:0]          admin_acq_valid_i,
    output logic [1:0]               admin_acq_ready_o,
    input  wire logic [7:0]          admin_acq_index_i,
    output logic [1:0]               admin_ctx_valid_o,
    output rnic_pkg::cq_ctx_t        admin_cq_ctx_o,
    output rnic_pkg::eq_ctx_t        admin_eq_ctx_o,
    input  wire logic [1:0]          admin_rel_valid_i,
    output logic [1:0]               admin_rel_ready_o,
    input  wire logic                admin_rel_write_i,
    input  wire rnic_pkg::cq_ctx_t   admin_cq_ctx_i,
    input  wire rnic_pkg::eq_ctx_t   admin_eq_ctx_i,
    output logic                     wr_valid_o,
    input  wire logic                wr_ready_i,
    output rnic_pkg::dma_wr_t        wr_data_o,
    input  wire logic                wr_done_i,
    output logic                     msix_valid_o,
    input  wire logic                msix_ready_i,
    output logic [7:0]               msix_vector_o,
    // Events of the device and of the port
    input  wire logic                device_eqe_valid_i,
    output logic                     device_eqe_ready_o,
    input  wire rnic_pkg::eqe_req_t  device_eqe_data_i,
    output logic                     dead_valid_o,
    output logic [7:0]               dead_qp_o,
    // QPs that may be of a CQ that has overrun
    output logic                     probe_valid_o,
    input  wire logic                probe_ready_i,
    output logic [7:0]               probe_qp_o,
    output logic [7:0]               probe_cqn_o,
    // Stages CQEs (0) and writes (1)
    output logic [1:0]               stage_enter_o,
    output logic [1:0]               stage_leave_o,
    // Doorbells that were refused elsewhere: counted here with those of CQs and EQs
    input  wire logic [1:0]          refused_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  localparam int unsigned ReqBits = rnic_pkg::CqeReqBits;
  localparam int unsigned ItemBits = ReqBits + 1;

  logic cq_ready, eq_ready;
  logic [3*ItemBits-1:0] items;
  logic item_valid, item_ready, item_is_event;
  rnic_pkg::cqe_req_t item_data;
  logic cq_eqe_valid, cq_eqe_ready, event_valid, event_ready, unused_eqe_last, gate_ready;
  logic [1:0] unused_eqe_source;
  rnic_pkg::eqe_req_t cq_eqe, event_data, eqe_data;
  logic eqe_valid, eqe_ready, eqe_written, ci_valid, ci_renew;
  logic [23:0] eqe_index, ci_index;
  logic [4:0] ci_eqn;
  logic cqe_wr_kept, cqe_wr_valid, cqe_wr_ready, eqe_wr_kept, eqe_wr_valid, eqe_wr_ready;
  rnic_pkg::dma_wr_t cqe_wr, eqe_wr;
  logic [7:0] eqe_vector;
  logic event_cqe, event_flushed, event_cq_overrun, event_cq_doorbell, event_eqe, event_eq_overrun;
  logic [1:0] refused;
  logic [2:0] refused_left_q;

  assign ready_o = cq_ready && eq_ready && gate_ready;

  always_comb begin
    for (int unsigned i = 0; i < 3; i++) begin
      items[i*ItemBits+:ItemBits] = {item_is_event_i[i], item_data_i[i*ReqBits+:ReqBits]};
    end
  end

  place_queue #(
      .N    (3),
      .Width(ItemBits),
      .Depth(16)
  ) u_queue (
      .clk_i,
      .rst_ni,
      .kept_o     (item_kept_o),
      .in_valid_i (item_valid_i),
      .in_ready_o (item_ready_o),
      .in_data_i  (items),
      .out_valid_o(item_valid),
      .out_ready_i(item_ready),
      .out_data_o ({item_is_event, item_data})
  );
  assign stage_enter_o[0] = (item_valid_i & item_ready_o) != '0;
  assign stage_leave_o[0] = item_valid && item_ready;

  logic gate_busy;
  rnic_pkg::rest_t timers_rest;
  always_comb begin
    rest_o      = timers_rest;
    rest_o.busy = timers_rest.busy || gate_busy;
  end

  cq_engine u_cq (
      .clk_i,
      .rst_ni,
      .ready_o          (cq_ready),
      .cycles_i,
      .timers_rest_o    (timers_rest),
      .item_valid_i     (item_valid),
      .item_ready_o     (item_ready),
      .item_is_event_i  (item_is_event),
      .item_data_i      (item_data),
      .doorbell_valid_i (cq_doorbell_valid_i),
      .doorbell_ready_o (cq_doorbell_ready_o),
      .doorbell_data_i  (cq_doorbell_data_i),
      .admin_acq_valid_i(admin_acq_valid_i[0]),
      .admin_acq_ready_o(admin_acq_ready_o[0]),
      .admin_acq_index_i,
      .admin_ctx_valid_o(admin_ctx_valid_o[0]),
      .admin_ctx_data_o (admin_cq_ctx_o),
      .admin_rel_valid_i(admin_rel_valid_i[0]),
      .admin_rel_ready_o(admin_rel_ready_o[0]),
      .admin_rel_write_i,
      .admin_rel_data_i (admin_cq_ctx_i),
      .wr_kept_i        (cqe_wr_kept),
      .wr_valid_o       (cqe_wr_valid),
      .wr_ready_i       (cqe_wr_ready),
      .wr_data_o        (cqe_wr),
      .eqe_valid_o      (cq_eqe_valid),
      .eqe_ready_i      (cq_eqe_ready),
      .eqe_data_o       (cq_eqe),
      .qp_dead_valid_o  (dead_valid_o),
      .qp_dead_qp_o     (dead_qp_o),
      .probe_valid_o,
      .probe_ready_i,
      .probe_qp_o,
      .probe_cqn_o,
      .event_cqe_o      (event_cqe),
      .event_flushed_o  (event_flushed),
      .event_overrun_o  (event_cq_overrun),
      .event_doorbell_o (event_cq_doorbell),
      .event_refused_o  (refused[0])
  );

  stream_arbiter #(
      .N    (3),
      .Width(rnic_pkg::EqeReqBits)
  ) u_events (
      .clk_i,
      .rst_ni,
      .in_valid_i  ({device_eqe_valid_i, srq_eqe_valid_i, cq_eqe_valid}),
      .in_ready_o  ({device_eqe_ready_o, srq_eqe_ready_o, cq_eqe_ready}),
      .in_last_i   (3'b111),
      .in_data_i   ({device_eqe_data_i, srq_eqe_data_i, cq_eqe}),
      .out_valid_o (event_valid),
      .out_ready_i (event_ready),
      .out_last_o  (unused_eqe_last),
      .out_data_o  (event_data),
      .out_source_o(unused_eqe_source)
  );

  event_gate u_gate (
      .clk_i,
      .rst_ni,
      .ready_o      (gate_ready),
      .busy_o       (gate_busy),
      .event_valid_i(event_valid),
      .event_ready_o(event_ready),
      .event_data_i (event_data),
      .ci_valid_i   (ci_valid),
      .ci_renew_i   (ci_renew),
      .ci_eqn_i     (ci_eqn),
      .ci_index_i   (ci_index),
      .wr_kept_i    (eqe_wr_kept),
      .eqe_valid_o  (eqe_valid),
      .eqe_ready_i  (eqe_ready),
      .eqe_data_o   (eqe_data),
      .eqe_written_i(eqe_written),
      .eqe_index_i  (eqe_index)
  );

  eq_engine u_eq (
      .clk_i,
      .rst_ni,
      .ready_o          (eq_ready),
      .cycles_i,
      .eqe_valid_i      (eqe_valid),
      .eqe_ready_o      (eqe_ready),
      .eqe_data_i       (eqe_data),
      .eqe_written_o    (eqe_written),
      .eqe_index_o      (eqe_index),
      .ci_valid_o       (ci_valid),
      .ci_renew_o       (ci_renew),
      .ci_eqn_o         (ci_eqn),
      .ci_index_o       (ci_index),
      .doorbell_valid_i (eq_doorbell_valid_i),
      .doorbell_ready_o (eq_doorbell_ready_o),
      .doorbell_data_i  (eq_doorbell_data_i),
      .admin_acq_valid_i(admin_acq_valid_i[1]),
      .admin_acq_ready_o(admin_acq_ready_o[1]),
      .admin_acq_index_i(admin_acq_index_i[4:0]),
      .admin_ctx_valid_o(admin_ctx_valid_o[1]),
      .admin_ctx_data_o (admin_eq_ctx_o),
      .admin_rel_valid_i(admin_rel_valid_i[1]),
      .admin_rel_ready_o(admin_rel_ready_o[1]),
      .admin_rel_write_i,
      .admin_rel_data_i (admin_eq_ctx_i),
      .wr_kept_i        (eqe_wr_kept),
      .wr_valid_o       (eqe_wr_valid),
      .wr_ready_i       (eqe_wr_ready),
      .wr_data_o        (eqe_wr),
      .wr_vector_o      (eqe_vector),
      .event_eqe_o      (event_eqe),
      .event_overrun_o  (event_eq_overrun),
      .event_refused_o  (refused[1])
  );

  queue_writes u_writes (
      .clk_i,
      .rst_ni,
      .cqe_kept_o  (cqe_wr_kept),
      .cqe_valid_i (cqe_wr_valid),
      .cqe_ready_o (cqe_wr_ready),
      .cqe_data_i  (cqe_wr),
      .eqe_kept_o  (eqe_wr_kept),
      .eqe_valid_i (eqe_wr_valid),
      .eqe_ready_o (eqe_wr_ready),
      .eqe_data_i  (eqe_wr),
      .eqe_vector_i(eqe_vector),
      .wr_valid_o,
      .wr_ready_i,
      .wr_data_o,
      .wr_done_i,
      .msix_valid_o,
      .msix_ready_i,
      .msix_vector_o,
      .enter_o     (stage_enter_o[1]),
      .leave_o     (stage_leave_o[1])
  );

  // Refusals of one cycle are reported one after the other.
  always_ff @(posedge clk_i) begin
    refused_left_q <= refused_left_q - 3'(refused_left_q != '0) + 3'(refused[0]) +
                      3'(refused[1]) + 3'(refused_i[0]) + 3'(refused_i[1]);
    if (!rst_ni) refused_left_q <= '0;
  end

  always_comb begin
    event_o                                    = '0;
    event_o[rnic_pkg::CounterCqDoorbells]      = event_cq_doorbell;
    event_o[rnic_pkg::CounterDoorbellsRefused] = refused_left_q != '0;
    event_o[rnic_pkg::CounterCqes]             = event_cqe;
    event_o[rnic_pkg::CounterFlushedWqes]      = event_flushed;
    event_o[rnic_pkg::CounterCqOverruns]       = event_cq_overrun;
    event_o[rnic_pkg::CounterEqes]             = event_eqe;
    event_o[rnic_pkg::CounterEqOverruns]       = event_eq_overrun;
  end
endmodule

`default_nettype wire
