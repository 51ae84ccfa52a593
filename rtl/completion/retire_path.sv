`default_nettype none
`include "assert.svh"

/// Retirement with its sources of commands: received packets, the send queue, and faults of the
/// send path. A fault of a request fails its WQE; one of a response, for which the responder's
/// output sends a NAK, is an error of the QP.
module retire_path (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic                inflight_valid_i,
    input  wire rnic_pkg::inflight_t inflight_data_i,
    // Commands (retire_cmd_t): 0 rx_post, 1 send queue
    input  wire logic [1:0]          cmd_valid_i,
    output logic [1:0]               cmd_ready_o,
    input  wire logic [2*rnic_pkg::RetireCmdBits-1:0] cmd_data_i,
    input  wire logic                tx_fault_valid_i,
    output logic                     tx_fault_ready_o,
    input  wire rnic_pkg::tx_fault_t tx_fault_data_i,
    output logic                     acq_valid_o,
    input  wire logic                acq_ready_i,
    output logic [7:0]               acq_index_o,
    input  wire logic                ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t ctx_data_i,
    output logic                     rel_valid_o,
    input  wire logic                rel_ready_i,
    output logic                     rel_write_o,
    output rnic_pkg::send_ctx_t      rel_data_o,
    output logic                     cqe_valid_o,
    input  wire logic                cqe_ready_i,
    output rnic_pkg::cqe_req_t       cqe_data_o,
    // Errors (qp_error_t): 0 of retirement, 1 of responses
    output logic [1:0]               error_valid_o,
    input  wire logic [1:0]          error_ready_i,
    output logic [2*rnic_pkg::QpErrorBits-1:0] error_data_o,
    output logic                     record_valid_o,
    input  wire logic                record_ready_i,
    output rnic_pkg::dma_wr_t        record_data_o,
    output logic                     sq_wake_valid_o,
    output logic [7:0]               sq_wake_qp_o,
    // A command was taken in; one is finished
    output logic                     stage_enter_o,
    output logic                     stage_leave_o
);
  localparam int unsigned CmdBits = rnic_pkg::RetireCmdBits;

  rnic_pkg::retire_cmd_t fault_cmd, cmd;
  rnic_pkg::qp_error_t retire_error, fault_error;
  logic cmd_valid, cmd_ready, fault_valid, fault_ready, unused_last;
  logic [1:0] unused_source;

  always_comb begin
    fault_cmd          = '0;
    fault_cmd.qp       = tx_fault_data_i.qp;
    fault_cmd.command  = rnic_pkg::RetireCommandFailWqe;
    fault_cmd.psn      = tx_fault_data_i.psn;
    fault_cmd.wqe_idx  = tx_fault_data_i.wqe_idx;
    fault_cmd.status   = (tx_fault_data_i.status == rnic_pkg::XlateStatusOk) ?
                         rnic_pkg::CqeStatusFatalErr : rnic_pkg::CqeStatusLocProtErr;
    fault_cmd.syndrome = {4'd0, tx_fault_data_i.status};
    fault_error        = '0;
    fault_error.qp     = tx_fault_data_i.qp;
    fault_error.status = rnic_pkg::CqeStatusRemAccessErr;
  end
  assign fault_valid      = tx_fault_valid_i && !tx_fault_data_i.responder;
  assign error_valid_o[1] = tx_fault_valid_i && tx_fault_data_i.responder;
  assign tx_fault_ready_o = tx_fault_data_i.responder ? error_ready_i[1] : fault_ready;
  assign error_data_o     = {fault_error, retire_error};

  stream_arbiter #(
      .N    (3),
      .Width(CmdBits)
  ) u_commands (
      .clk_i,
      .rst_ni,
      .in_valid_i  ({fault_valid, cmd_valid_i}),
      .in_ready_o  ({fault_ready, cmd_ready_o}),
      .in_last_i   (3'b111),
      .in_data_i   ({fault_cmd, cmd_data_i}),
      .out_valid_o (cmd_valid),
      .out_ready_i (cmd_ready),
      .out_last_o  (unused_last),
      .out_data_o  (cmd),
      .out_source_o(unused_source)
  );
  assign stage_enter_o = ({fault_valid, cmd_valid_i} & {fault_ready, cmd_ready_o}) != '0;
  assign stage_leave_o = cmd_valid && cmd_ready;

  retire u_retire (
      .clk_i,
      .rst_ni,
      .inflight_valid_i,
      .inflight_data_i,
      .cmd_valid_i   (cmd_valid),
      .cmd_ready_o   (cmd_ready),
      .cmd_data_i    (cmd),
      .acq_valid_o,
      .acq_ready_i,
      .acq_index_o,
      .ctx_valid_i,
      .ctx_data_i,
      .rel_valid_o,
      .rel_ready_i,
      .rel_write_o,
      .rel_data_o,
      .cqe_valid_o,
      .cqe_ready_i,
      .cqe_data_o,
      .error_valid_o (error_valid_o[0]),
      .error_ready_i (error_ready_i[0]),
      .error_data_o  (retire_error),
      .record_valid_o,
      .record_ready_i,
      .record_data_o,
      .sq_wake_valid_o,
      .sq_wake_qp_o
  );
endmodule

`default_nettype wire
