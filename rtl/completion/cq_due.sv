`default_nettype none

/// Is the event that a pending arm asks for due, and does event moderation hold it back
/// (admin_modify_cq)? Combinational; ctx_i with what the present step has changed already.
///
/// Due: entries newer than the last event are there that the arm is about. notified_pi and
/// solicited_pi trail pi as cqe_writer says, so that this is inequality.
module cq_due (
    input  wire rnic_pkg::cq_ctx_t ctx_i,
    output logic                   due_o,
    output logic                   held_o
);
  logic counted, timed, enough;
  logic [23:0] new_entries;

  assign new_entries = ctx_i.pi - ctx_i.notified_pi;
  assign counted     = ctx_i.moderate_count > 16'd1;
  assign timed       = ctx_i.moderate_period != '0;
  assign enough      = counted && new_entries >= {8'd0, ctx_i.moderate_count};

  assign due_o  = !ctx_i.overrun &&
                  ((ctx_i.arm == rnic_pkg::CqArmAny && ctx_i.pi != ctx_i.notified_pi) ||
                   (ctx_i.arm == rnic_pkg::CqArmSolicited &&
                    ctx_i.solicited_pi != ctx_i.notified_pi));
  assign held_o = due_o && (counted || timed) && !enough;

  logic unused_bits;
  assign unused_bits = ^ctx_i;
endmodule

`default_nettype wire
