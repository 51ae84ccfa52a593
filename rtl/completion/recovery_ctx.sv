`default_nettype none

/// The send context after recovery. Combinational. WQE index_i holds PSN psn_i, its packet number
/// packets_i (of a Read with is_read_i, in responses).
///
/// back_o: the queue goes back there, for the cause of work_i. failing_o: the WQE is refused and
/// still to be sent again; nothing of it is. whole_i: all of it has been sent before, up to
/// last_psn_i.
module recovery_ctx (
    input  wire rnic_pkg::recover_cmd_t work_i,
    input  wire rnic_pkg::send_ctx_t    ctx_i,
    input  wire logic [15:0]            index_i,
    input  wire logic [23:0]            psn_i,
    input  wire logic [23:0]            packets_i,
    input  wire logic                   is_read_i,
    input  wire logic                   whole_i,
    input  wire logic [23:0]            last_psn_i,
    output rnic_pkg::send_ctx_t         back_o,
    output rnic_pkg::send_ctx_t         failing_o
);
  logic is_timer, is_rnr, is_fault;
  logic [15:0] steps;
  assign is_timer = work_i.cause == rnic_pkg::RecoverCauseTimer;
  assign is_rnr   = work_i.cause == rnic_pkg::RecoverCauseRnr;
  assign is_fault = work_i.cause == rnic_pkg::RecoverCauseFault;
  // There is no memory operation, which has no SSN, between a packet and those behind it that are
  // not acknowledged.
  assign steps = ctx_i.exec_idx - index_i;

  // Path MTU 128 << ibv_mtu bytes.
  logic [3:0] log_mtu;
  assign log_mtu = 4'd7 + 4'(ctx_i.mtu);

  always_comb begin
    back_o                = ctx_i;
    back_o.exec_idx       = index_i;
    back_o.next_psn       = psn_i;
    back_o.ssn            = ctx_i.ssn - 24'(steps);
    back_o.msg_off        = 32'(packets_i) << log_mtu;
    back_o.msg_active     = packets_i != '0 && !is_read_i;
    back_o.resume         = packets_i != '0;
    back_o.asked          = 1'b0;
    back_o.sge_idx        = '0;
    back_o.sge_off        = '0;
    back_o.buf_count      = '0;
    back_o.ahead          = '0;
    back_o.fetch_gen      = ctx_i.fetch_gen + 1'b1;
    back_o.rd_tail        = ctx_i.rd_head;
    back_o.rd_outstanding = ctx_i.rd_outstanding - (ctx_i.rd_tail - ctx_i.rd_head);
    back_o.rec_psn        = psn_i;
    back_o.turned         = 1'b1;
    back_o.tries          = ctx_i.tries + 1'b1;
    back_o.recovering     = !is_timer && !is_rnr;
    back_o.rnr_wait       = is_rnr || ctx_i.rnr_wait;
    if (is_rnr && ctx_i.rnr_retry != '1) back_o.rnr_left = ctx_i.rnr_left - 1'b1;
    if (!is_rnr && !is_fault) back_o.retry_left = ctx_i.retry_left - 1'b1;
  end

  always_comb begin
    failing_o                = ctx_i;
    failing_o.una_psn        = psn_i;
    failing_o.next_psn       = whole_i ? last_psn_i + 24'd1 : psn_i + 24'd1;
    failing_o.exec_idx       = whole_i ? index_i + 16'd1 : index_i;
    failing_o.msg_active     = !whole_i;
    failing_o.fault          = 1'b1;
    failing_o.fault_idx      = index_i;
    failing_o.fault_status   = is_rnr ? rnic_pkg::CqeStatusRnrRetryExcErr : work_i.status;
    failing_o.fault_syndrome = work_i.syndrome;
    if (is_rnr) failing_o.fault_syndrome[7:5] = rnic_pkg::AethSyndromeRnrNak[7:5];
  end

  logic unused_bits;
  assign unused_bits = ^work_i;
endmodule

`default_nettype wire
