`default_nettype none
`include "assert.svh"

/// Which QPs have taken a WQE of an SRQ for a message that is still under way, and the tag of that
/// WQE. A QP has one at most: its messages do not interleave.
///
/// open_i, close_i are pulses for set_qp_i. rd_open_o, rd_tag_o belong to rd_qp_i, the tag as of
/// one cycle ago. clear_i closes rd_qp_i.
module srq_open (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        open_i,
    input  wire logic        close_i,
    input  wire logic [7:0]  set_qp_i,
    input  wire logic [15:0] set_tag_i,
    input  wire logic [7:0]  rd_qp_i,
    output logic             rd_open_o,
    output logic [15:0]      rd_tag_o,
    input  wire logic        clear_i
);
  logic [255:0] open_q;

  ram_1r1w #(
      .Width(16),
      .Depth(256)
  ) u_tags (
      .clk_i,
      .wr_en_i  (open_i),
      .wr_addr_i(set_qp_i),
      .wr_data_i(set_tag_i),
      .rd_en_i  (1'b1),
      .rd_addr_i(rd_qp_i),
      .rd_data_o(rd_tag_o)
  );
  assign rd_open_o = open_q[rd_qp_i];

  always_ff @(posedge clk_i) begin
    if (clear_i) open_q[rd_qp_i] <= 1'b0;
    if (open_i) open_q[set_qp_i] <= 1'b1;
    if (close_i) open_q[set_qp_i] <= 1'b0;
    if (!rst_ni) open_q <= '0;
  end

  `ASSERT(OneAtATime, !(open_i && close_i))
endmodule

`default_nettype wire
