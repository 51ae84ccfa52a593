`default_nettype none
`include "assert.svh"

/// Retirement with its sources of commands: received packets, the send queue, and faults of the
/// send path. A fault of a request fails its WQE; one of a response, for which the responder's
/// output sends a NAK, is an error of the QP. Recovery and its timers belong here too: recovery and
/// retire take turns, with one context client and one in-flight table, and a WQE whose retries are
/// used up fails like any other. clear_*: nothing of recovery is left of a QP.
module retire_path (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic [63:0]         cycles_i,
    output rnic_pkg::rest_t          timers_rest_o,
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
    input  wire logic                cqe_kept_i,
    output logic                     cqe_valid_o,
    input  wire logic                cqe_ready_i,
    output rnic_pkg::cqe_req_t       cqe_data_o,
    // Errors (qp_error_t): 0 of retirement, 1 of responses
    output logic [1:0]               error_valid_o,
    input  wire logic [1:0]          error_ready_i,
    output logic [2*rnic_pkg::QpErrorBits-1:0] error_data_o,
    output logic                failing_o,
    output logic                     record_valid_o,
    input  wire logic                record_ready_i,
    output rnic_pkg::dma_wr_t        record_data_o,
    output logic                     sq_wake_valid_o,
    output logic [7:0]               sq_wake_qp_o,
    // As in qp_timer: a QP begins to send; a packet that asks for an answer has left; Read data has
    // come
    input  wire logic                begun_valid_i,
    input  wire logic [7:0]          begun_qp_i,
    input  wire logic                left_valid_i,
    output logic                     left_ready_o,
    input  wire rnic_pkg::timer_event_t left_data_i,
    input  wire logic                timer_valid_i,
    input  wire rnic_pkg::timer_event_t timer_data_i,
    output logic [7:0]               recovery_qp_o,
    input  wire logic                clear_valid_i,
    output logic                     clear_ready_o,
    input  wire logic [7:0]          clear_qp_i,
    // A command was taken in; one is finished
    output logic                     stage_enter_o,
    output logic                     stage_leave_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  localparam int unsigned CmdBits = rnic_pkg::RetireCmdBits;

  rnic_pkg::retire_cmd_t fault_cmd, cmd;
  rnic_pkg::qp_error_t retire_error, fault_error;
  logic cmd_valid, cmd_ready, fault_valid, fault_ready, own_fault, unused_last;
  logic [1:0] unused_source;

  // Our own memory failed: what was asked for was allowed.
  assign own_fault = tx_fault_data_i.status == rnic_pkg::XlateStatusOk ||
                     tx_fault_data_i.status == rnic_pkg::XlateStatusPageListError;
  always_comb begin
    fault_cmd          = '0;
    fault_cmd.qp       = tx_fault_data_i.qp;
    fault_cmd.command  = rnic_pkg::RetireCommandFailWqe;
    fault_cmd.psn      = tx_fault_data_i.psn;
    fault_cmd.wqe_idx  = tx_fault_data_i.wqe_idx;
    fault_cmd.status   = own_fault ? rnic_pkg::CqeStatusFatalErr : rnic_pkg::CqeStatusLocProtErr;
    fault_cmd.syndrome = {4'd0, tx_fault_data_i.status};
    // Of UC and UD a message is done when it has left: as if it were acknowledged.
    if (tx_fault_data_i.sent) begin
      fault_cmd.command  = rnic_pkg::RetireCommandAck;
      fault_cmd.status   = rnic_pkg::CqeStatusSuccess;
      fault_cmd.syndrome = '0;
    end
    fault_error        = '0;
    fault_error.qp     = tx_fault_data_i.qp;
    fault_error.status = own_fault ? rnic_pkg::CqeStatusFatalErr : rnic_pkg::CqeStatusRemAccessErr;
    fault_error.responder = 1'b1;
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

  // ---- Retire and recovery ----------------------------------------------------------------------
  // A failure that recovery reports goes before all other commands: retire is idle then.
  logic retire_valid, retire_ready, fail_valid, fail_ready, hold, idle;
  logic retire_acq, recovery_acq, retire_rel, recovery_rel, retire_write, recovery_write;
  logic [7:0] retire_index, recovery_index, retire_wake_qp;
  logic retire_wake, recovery_wake, retire_timer, recover, expired, expired_ready, wait_valid;
  logic stop_valid, stands;
  logic [7:0] expired_qp, wait_qp;
  logic [17:0] wait_units;
  logic [3:0] wait_tries;
  logic peek_en, peek_is_read;
  logic [15:0] peek_index;
  logic [23:0] peek_first, peek_last;
  rnic_pkg::retire_cmd_t fail_cmd, retire_cmd;
  rnic_pkg::recover_cmd_t recover_cmd;
  rnic_pkg::timer_event_t retire_timer_data;
  rnic_pkg::send_ctx_t retire_rel_data, recovery_rel_data;

  assign retire_valid = fail_valid || cmd_valid;
  assign retire_cmd   = fail_valid ? fail_cmd : cmd;
  assign fail_ready   = fail_valid && retire_ready;
  assign cmd_ready    = !fail_valid && retire_ready;

  assign acq_valid_o     = retire_acq || recovery_acq;
  assign acq_index_o     = recovery_acq ? recovery_index : retire_index;
  assign rel_valid_o     = retire_rel || recovery_rel;
  assign rel_write_o     = recovery_rel ? recovery_write : retire_write;
  assign rel_data_o      = recovery_rel ? recovery_rel_data : retire_rel_data;
  assign sq_wake_valid_o = retire_wake || recovery_wake;
  assign sq_wake_qp_o    = recovery_wake ? recovery_index : retire_wake_qp;
  assign recovery_qp_o   = recovery_index;

  retire u_retire (
      .clk_i,
      .rst_ni,
      .inflight_valid_i,
      .inflight_data_i,
      .cmd_valid_i    (retire_valid),
      .cmd_ready_o    (retire_ready),
      .cmd_data_i     (retire_cmd),
      .acq_valid_o    (retire_acq),
      .acq_ready_i,
      .acq_index_o    (retire_index),
      .ctx_valid_i    (ctx_valid_i && !idle),
      .ctx_data_i,
      .rel_valid_o    (retire_rel),
      .rel_ready_i,
      .rel_write_o    (retire_write),
      .rel_data_o     (retire_rel_data),
      .cqe_kept_i,
      .cqe_valid_o,
      .cqe_ready_i,
      .cqe_data_o,
      .failing_o,
      .error_valid_o  (error_valid_o[0]),
      .error_ready_i  (error_ready_i[0]),
      .error_data_o   (retire_error),
      .record_valid_o,
      .record_ready_i,
      .record_data_o,
      .sq_wake_valid_o(retire_wake),
      .sq_wake_qp_o   (retire_wake_qp),
      .timer_valid_o  (retire_timer),
      .timer_data_o   (retire_timer_data),
      .recover_valid_o(recover),
      .recover_data_o (recover_cmd),
      .hold_i         (hold),
      .idle_o         (idle),
      .peek_en_i      (peek_en),
      .peek_qp_i      (recovery_index),
      .peek_index_i   (peek_index),
      .peek_is_read_o (peek_is_read),
      .peek_first_o   (peek_first),
      .peek_last_o    (peek_last)
  );

  recovery u_recovery (
      .clk_i,
      .rst_ni,
      .cmd_valid_i    (recover),
      .cmd_data_i     (recover_cmd),
      .expired_valid_i(expired),
      .expired_ready_o(expired_ready),
      .expired_qp_i   (expired_qp),
      .stands_i       (stands),
      .wait_valid_o   (wait_valid),
      .stop_valid_o   (stop_valid),
      .wait_qp_o      (wait_qp),
      .wait_units_o   (wait_units),
      .wait_tries_o   (wait_tries),
      .hold_o         (hold),
      .retire_idle_i  (idle),
      .acq_valid_o    (recovery_acq),
      .acq_ready_i,
      .acq_index_o    (recovery_index),
      .ctx_valid_i    (ctx_valid_i && idle),
      .ctx_data_i,
      .rel_valid_o    (recovery_rel),
      .rel_ready_i,
      .rel_write_o    (recovery_write),
      .rel_data_o     (recovery_rel_data),
      .slot_en_o      (peek_en),
      .slot_index_o   (peek_index),
      .slot_is_read_i (peek_is_read),
      .slot_first_i   (peek_first),
      .slot_last_i    (peek_last),
      .fail_valid_o   (fail_valid),
      .fail_ready_i   (fail_ready),
      .fail_data_o    (fail_cmd),
      .wake_valid_o   (recovery_wake),
      .clear_valid_i,
      .clear_ready_o,
      .event_o
  );

  qp_timer #(
      .Ports(2)
  ) u_timer (
      .clk_i,
      .rst_ni,
      .cycles_i,
      .rest_o         (timers_rest_o),
      .begun_valid_i,
      .begun_qp_i,
      .left_valid_i,
      .left_ready_o,
      .left_data_i,
      .ack_valid_i    ({retire_timer, timer_valid_i}),
      .ack_data_i     ({retire_timer_data, timer_data_i}),
      .wait_valid_i   (wait_valid),
      .stop_valid_i   (stop_valid),
      .wait_qp_i      (wait_qp),
      .wait_units_i   (wait_units),
      .wait_tries_i   (wait_tries),
      .expired_valid_o(expired),
      .expired_ready_i(expired_ready),
      .expired_qp_o   (expired_qp),
      .stands_o       (stands),
      .clear_valid_i,
      .clear_qp_i
  );

  logic unused_bits;
  assign unused_bits = tx_fault_data_i.atomic;

  `ASSERT(OneWake, !(retire_wake && recovery_wake))
  `ASSERT(OneClient, !(retire_acq && recovery_acq) && !(retire_rel && recovery_rel))
endmodule

`default_nettype wire
