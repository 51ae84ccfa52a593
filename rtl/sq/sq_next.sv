`default_nettype none

/// May a turn of the send engine go on with another packet?
///
/// A turn is worth 1 KiB of payload, and a packet at least 256 bytes of it, counted in units of 256
/// bytes, begun ones too; the packet of a cycle with packet_i counts from the next cycle on.
/// goes_on_o: some of that is left, and the queue is runnable. line_o: where its next WQE is in the
/// buffer.
module sq_next (
    input  wire logic                clk_i,
    input  wire logic                start_i,
    input  wire logic                packet_i,
    input  wire logic [12:0]         payload_i,
    input  wire rnic_pkg::send_ctx_t ctx_i,
    output logic                     goes_on_o,
    output logic [2:0]               line_o
);
  logic runnable, unused_drained;
  logic [2:0] used_q;
  logic [5:0] used;

  sq_runnable u_runnable (
      .ctx_i,
      .runnable_o(runnable),
      .drained_o (unused_drained)
  );
  wqe_line u_line (
      .index_i     (ctx_i.exec_idx[2:0]),
      .log_stride_i(ctx_i.log_stride),
      .line_o
  );
  always_comb begin
    used = 6'(used_q) + 6'(payload_i[12:8]);
    if (payload_i[7:0] != '0 || payload_i == '0) used = used + 6'd1;
  end
  always_ff @(posedge clk_i) begin
    if (start_i) used_q <= '0;
    else if (packet_i) used_q <= (used >= 6'd4) ? 3'd4 : used[2:0];
  end
  assign goes_on_o = !used_q[2] && runnable;
endmodule

`default_nettype wire
