`default_nettype none

/// A WQE starts only if its fence (InfiniBand specification 10.8.3.3), the limit of outstanding
/// Reads and atomics, the window and, for a memory operation, all in front of it allow that.
module prove_sq_gate (
    input wire logic                   clk_i,
    input wire logic                   rst_ni,
    input wire rnic_pkg::send_ctx_t    ctx_i,
    input wire rnic_pkg::wqe_control_t control_i,
    input wire logic                   bad_i,
    input wire logic                   psn_room_i
);
  logic judged, step_aside, stalled, probe;
  logic [3:0] unused_reasons;
  sq_gate u_dut (
      .ctx_i,
      .control_i,
      .bad_i,
      .psn_room_i,
      .judged_o      (judged),
      .step_aside_o  (step_aside),
      .stalled_o     (stalled),
      .probe_o       (probe),
      .window_stall_o(unused_reasons[0]),
      .fence_stall_o (unused_reasons[1]),
      .read_stall_o  (unused_reasons[2]),
      .credit_stall_o(unused_reasons[3])
  );

  wire logic goes = !step_aside;
  wire logic start = !ctx_i.msg_active;
  wire logic reads = control_i.opcode == rnic_pkg::WqeOpcodeRead ||
      control_i.opcode == rnic_pkg::WqeOpcodeCompareSwap ||
      control_i.opcode == rnic_pkg::WqeOpcodeFetchAdd;
  wire logic memory = control_i.opcode == rnic_pkg::WqeOpcodeBindWindow1 ||
      control_i.opcode == rnic_pkg::WqeOpcodeBindWindow2 ||
      control_i.opcode == rnic_pkg::WqeOpcodeLocalInvalidate ||
      control_i.opcode == rnic_pkg::WqeOpcodeFastRegister;
  wire logic [15:0] open = ctx_i.exec_idx - ctx_i.retire_idx;
  always_comb begin
    if (rst_ni && goes && start) begin
      Fence: assert (!control_i.fence || ctx_i.rd_outstanding == '0);
      Reads: assert (!reads || (ctx_i.rd_outstanding < ctx_i.max_rd &&
                                ctx_i.rd_outstanding < 5'd16));
      Window: assert (open < rnic_pkg::SqWindow[15:0]);
      MemoryLast: assert (!memory || open == '0);
      NotBad: assert (!bad_i);
    end
    // A malformed WQE is not waited for; nothing else stops one that has begun but room for PSNs
    // and credits.
    if (rst_ni) begin
      BadIsSaid: assert (!(judged && bad_i) || (step_aside && !stalled));
      GoesOn: assert (!(!start && !ctx_i.credits && psn_room_i && !(judged && bad_i)) || goes);
    end
  end
endmodule

`default_nettype wire
