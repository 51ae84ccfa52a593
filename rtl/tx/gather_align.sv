`default_nettype none
`include "assert.svh"

/// Packs runs of bytes, each at any lane of its line, into lines without holes: byte 0 of the
/// packet in lane 0 of its first line.
///
/// in_data_i.last ends the packet. A run with err must have last, and no bytes: the packet's last
/// beat then has err. Lanes past the last byte are zero. A line in and a line out in every cycle;
/// the only wait is for a line of leftover bytes, which a packet needs only when it had runs that
/// filled no line before. Two cycles of latency.
module gather_align (
    input  wire logic                     clk_i,
    input  wire logic                     rst_ni,
    input  wire logic                     in_valid_i,
    output logic                          in_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t    in_data_i,
    output logic                          out_valid_o,
    input  wire logic                     out_ready_i,
    output rnic_pkg::payload_beat_t       out_data_o
);
  // ---- Stage 1: rotate the run so that it starts in the first free lane ----
  // fill_q: lanes already taken in the line under way.
  logic take1, take2, valid1_q, last1_q, err1_q;
  logic [5:0] fill_q, start1_q;
  logic [6:0] stop, stop1_q;
  logic [511:0] rotated, rotated1_q;

  byte_rotate u_rotate (
      .data_i  (in_data_i.data),
      .amount_i(in_data_i.offset - fill_q),
      .data_o  (rotated)
  );

  assign take1      = in_valid_i && in_ready_o;
  assign in_ready_o = !valid1_q || take2;
  assign stop       = {1'b0, fill_q} + in_data_i.bytes;

  always_ff @(posedge clk_i) begin
    if (take1) begin
      rotated1_q <= rotated;
      start1_q   <= fill_q;
      stop1_q    <= stop;
      last1_q    <= in_data_i.last;
      err1_q     <= in_data_i.err;
      fill_q     <= in_data_i.last ? '0 : stop[5:0];
    end
    valid1_q <= take1 || (valid1_q && !take2);
    if (!rst_ni) begin
      valid1_q <= 1'b0;
      fill_q   <= '0;
    end
  end

  // ---- Stage 2: join with the bytes left over; a full line leaves, the rest stays ----
  // tail_q: the last bytes of a packet are left over; the next packet may begin meanwhile when its
  // run fills no line.
  logic [511:0] left_q, joined, line;
  logic [6:0] tail_bytes_q, line_bytes;
  logic tail_q, full, spill, out_free, line_valid;

  assign full       = stop1_q[6];
  assign spill      = full && last1_q && stop1_q[5:0] != '0;
  assign take2      = valid1_q && out_free && !(tail_q && (full || last1_q));
  assign line_valid = tail_q || (take2 && (full || last1_q));
  assign line_bytes = tail_q ? tail_bytes_q : (full ? 7'd64 : stop1_q);

  always_comb begin
    for (int unsigned i = 0; i < 64; i++) begin
      joined[8*i+:8] = (6'(i) < start1_q) ? left_q[8*i+:8] : rotated1_q[8*i+:8];
    end
  end
  always_comb begin
    for (int unsigned i = 0; i < 64; i++) begin
      line[8*i+:8] = (7'(i) >= line_bytes) ? 8'd0 : (tail_q ? left_q[8*i+:8] : joined[8*i+:8]);
    end
  end

  logic out_valid_q;
  rnic_pkg::payload_beat_t out_q;
  assign out_free    = !out_valid_q || out_ready_i;
  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_q;

  always_ff @(posedge clk_i) begin
    if (take2) begin
      left_q       <= full ? rotated1_q : joined;
      tail_bytes_q <= {1'b0, stop1_q[5:0]};
    end
    if (out_free) begin
      tail_q      <= take2 && spill;
      out_valid_q <= line_valid;
      out_q.data  <= line;
      out_q.bytes <= line_bytes;
      out_q.last  <= tail_q || (last1_q && !spill);
      out_q.err   <= !tail_q && last1_q && err1_q;
    end
    if (!rst_ni) begin
      tail_q      <= 1'b0;
      out_valid_q <= 1'b0;
    end
  end

  `ASSERT(RunInLine, !in_valid_i || {2'd0, in_data_i.offset} + {1'b0, in_data_i.bytes} <= 8'd64)
  `ASSERT(ErrorIsLast, !(in_valid_i && in_data_i.err) || (in_data_i.last && in_data_i.bytes == '0))
  `ASSERT_HOLD(InHold, in_valid_i, in_ready_o, in_data_i)
  `ASSERT_HOLD(OutHold, out_valid_o, out_ready_i, out_data_o)
endmodule

`default_nettype wire
