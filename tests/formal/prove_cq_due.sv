`default_nettype none

/// The event that an arm asks for is due when there is an entry newer than the last event that the
/// arm is about (InfiniBand specification 11.4.2.2), on no CQ that has overrun; and moderation
/// never holds it back once the count of entries is there, nor when nothing is moderated.
module prove_cq_due (
    input wire logic              clk_i,
    input wire logic              rst_ni,
    input wire rnic_pkg::cq_ctx_t ctx_i
);
  logic due, held;
  cq_due u_dut (
      .ctx_i,
      .due_o (due),
      .held_o(held)
  );
  wire logic [23:0] newer = ctx_i.pi - ctx_i.notified_pi;
  wire logic [23:0] solicited = ctx_i.solicited_pi - ctx_i.notified_pi;
  always_comb begin
    if (rst_ni) begin
      Unarmed: assert (!due || ctx_i.arm == rnic_pkg::CqArmAny ||
                       ctx_i.arm == rnic_pkg::CqArmSolicited);
      Any: assert (ctx_i.arm != rnic_pkg::CqArmAny || ctx_i.overrun || due == (newer != '0));
      Solicited: assert (ctx_i.arm != rnic_pkg::CqArmSolicited || ctx_i.overrun ||
                         due == (solicited != '0));
      Overrun: assert (!ctx_i.overrun || !due);
      HeldIsDue: assert (!held || due);
      Enough: assert (!(held && ctx_i.moderate_count > 16'd1) ||
                      newer < {8'd0, ctx_i.moderate_count});
      Unmoderated: assert (!held || ctx_i.moderate_count > 16'd1 || ctx_i.moderate_period != '0);
    end
  end
endmodule

`default_nettype wire
