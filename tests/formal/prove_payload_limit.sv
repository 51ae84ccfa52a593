`default_nettype none

/// The bytes between two points of a path are counted exactly, so that a gate on below_o lets no
/// more pass than the limit and two packets.
module prove_payload_limit (
    input wire logic        clk_i,
    input wire logic        rst_ni,
    input wire logic        begin_i,
    input wire logic        in_valid_i,
    input wire logic [12:0] in_bytes_i,
    input wire logic        out_valid_i,
    input wire logic [12:0] out_bytes_i
);
  logic below;
  logic [1:0] open_q;
  logic [14:0] between_q;
  initial assume (!rst_ni);

  payload_limit #(
      .Limit(8192)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .in_valid_i,
      .in_bytes_i,
      .out_valid_i,
      .out_bytes_i,
      .below_o(below)
  );

  // Packets begin while below_o, at most two of them before they are counted.
  wire logic begins = begin_i && below && open_q != 2'd2;
  always_comb begin
    assume (!in_valid_i || (open_q != '0 && in_bytes_i <= 13'd4096));
    assume (!out_valid_i || {2'd0, out_bytes_i} <= between_q);
  end
  always_ff @(posedge clk_i) begin
    open_q    <= open_q + 2'(begins) - 2'(in_valid_i);
    between_q <= between_q + (in_valid_i ? {2'd0, in_bytes_i} : 15'd0) -
        (out_valid_i ? {2'd0, out_bytes_i} : 15'd0);
    if (!rst_ni) begin
      open_q    <= '0;
      between_q <= '0;
    end
  end
  always_comb begin
    if (rst_ni) begin
      Exact: assert (below == (between_q < 15'd8192));
      Limited: assert (between_q < 15'(8192 + 2 * 4096));
    end
  end
endmodule

`default_nettype wire
