`default_nettype none

/// What a retire command itself says about its queue pair, as the context arrives (retire).
/// Combinational.
///
/// live_o: the QP exists, and its send queue has not ended. owed_o: it has, but a memory operation
/// that was executed is still to complete, as such. progress_o: the oldest unacknowledged PSN
/// moves. stale_o: the command fails a WQE that has retired. psn_open_o: its PSN has been sent and
/// is not acknowledged. ctx_o: the context with what the command brings; again_i: it has been
/// counted before.
module retire_load (
    input  wire rnic_pkg::retire_cmd_t cmd_i,
    input  wire rnic_pkg::send_ctx_t   ctx_i,
    input  wire logic                  again_i,
    output logic                       live_o,
    output logic                       owed_o,
    output logic                       progress_o,
    output logic                       stale_o,
    output logic                       psn_open_o,
    output rnic_pkg::send_ctx_t        ctx_o
);
  logic ended, is_retry, is_refusal;
  logic [15:0] command_age, recorded_age;
  logic [23:0] bound, named, ahead, window, ever, since_una, lsn_gain;
  assign is_retry   = cmd_i.command == rnic_pkg::RetireCommandRetry;
  assign is_refusal = cmd_i.command == rnic_pkg::RetireCommandRefuse;

  assign ended  = ctx_i.state == rnic_pkg::QpStateErr || ctx_i.state == rnic_pkg::QpStateSqe;
  assign live_o = ctx_i.in_use && ctx_i.state != rnic_pkg::QpStateReset && !ended;
  // A memory operation that was executed completes as such in the error state too; nothing else
  // does.
  assign owed_o = ctx_i.in_use && ctx_i.mem_done && ended;

  assign named = (cmd_i.command == rnic_pkg::RetireCommandFail || is_retry) ? cmd_i.psn :
                                                                              cmd_i.psn + 24'd1;
  // As many as 2^23 PSNs are out (9.7.2), so distances from the oldest of them are compared, not
  // signs. The queue may have gone back since the command was made: it counts up to next_psn.
  assign ahead      = named - ctx_i.una_psn;
  assign window     = ctx_i.next_psn - ctx_i.una_psn;
  assign ever       = ctx_i.max_psn - ctx_i.una_psn;
  assign bound      = (ahead > window) ? ctx_i.next_psn : named;
  assign since_una  = cmd_i.psn - ctx_i.una_psn;
  assign psn_open_o = since_una < window;
  assign lsn_gain   = cmd_i.lsn - ctx_i.lsn;

  assign command_age  = cmd_i.wqe_idx - ctx_i.retire_idx;
  assign recorded_age = ctx_i.fault_idx - ctx_i.retire_idx;

  always_comb begin
    progress_o = 1'b0;
    stale_o    = 1'b0;
    ctx_o      = ctx_i;
    if (cmd_i.command == rnic_pkg::RetireCommandFailWqe) begin
      // The oldest failure is the one that ends the queue; one of a WQE that has retired is stale.
      if (!command_age[15] && (!ctx_i.fault || command_age <= recorded_age)) begin
        ctx_o.fault          = 1'b1;
        ctx_o.fault_idx      = cmd_i.wqe_idx;
        ctx_o.fault_status   = cmd_i.status;
        ctx_o.fault_syndrome = cmd_i.syndrome;
      end
      stale_o = command_age[15];
    end else if (ahead <= ever && !is_refusal) begin
      progress_o    = bound != ctx_i.una_psn;
      ctx_o.una_psn = bound;
      if (cmd_i.with_credits) begin
        ctx_o.credits = cmd_i.limited;
        if (!ctx_i.credits || !lsn_gain[23]) ctx_o.lsn = cmd_i.lsn;
      end
    end
    if (progress_o) begin
      ctx_o.recovering = 1'b0;
      ctx_o.retry_left = ctx_i.retry_count;
      ctx_o.rnr_left   = ctx_i.rnr_retry;
    end
    if (cmd_i.command == rnic_pkg::RetireCommandReadDone && !again_i &&
        ctx_i.rd_outstanding != '0) begin
      ctx_o.rd_outstanding = ctx_i.rd_outstanding - 1'b1;
    end
    if (!live_o) ctx_o = ctx_i;
  end

  logic unused_bits;
  assign unused_bits = ^{cmd_i, lsn_gain[22:0]};
endmodule

`default_nettype wire
