`default_nettype none
`include "assert.svh"

/// Which Reads in the ring of a QP have PSNs of a repeated one. Keeps the first and the last PSN of
/// every entry, in four banks: start_i is answered with done_o for one cycle, ten cycles later, and
/// the slots in mask_o from then on until the next start_i. wr_* is an entry that is pushed. Slots
/// behind the oldest entry are compared like the others: what is left in them has no meaning.
/// Atomics overlap nothing.
module rsp_overlap (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic                   wr_en_i,
    input  wire logic [7:0]             wr_qp_i,
    input  wire logic [4:0]             wr_slot_i,
    input  wire logic                   wr_atomic_i,
    input  wire logic [23:0]            wr_first_i,
    input  wire logic [23:0]            wr_last_i,
    input  wire logic                   start_i,
    input  wire logic [7:0]             qp_i,
    input  wire logic [23:0]            first_i,
    input  wire logic [23:0]            last_i,
    output logic                        done_o,
    output logic [31:0]                 mask_o
);
  // A row of four entries is read while the one before it is compared.
  logic [3:0] row_q, overlaps;
  logic [2:0] compared_q;
  logic running_q, compare_q, read;
  assign read   = running_q && !row_q[3];
  assign done_o = running_q && row_q[3] && !compare_q;

  for (genvar bank = 0; bank < 4; bank++) begin : gen_bank
    logic atomic, unused_bits;
    logic [23:0] first, last, to_end, to_begin;
    ram_1r1w #(
        .Width(49),
        .Depth(256 * 8)
    ) u_ranges (
        .clk_i,
        .wr_en_i  (wr_en_i && wr_slot_i[1:0] == 2'(bank)),
        .wr_addr_i({wr_qp_i, wr_slot_i[4:2]}),
        .wr_data_i({wr_atomic_i, wr_last_i, wr_first_i}),
        .rd_en_i  (read),
        .rd_addr_i({qp_i, row_q[2:0]}),
        .rd_data_o({atomic, last, first})
    );
    // Differences of PSNs modulo 2^24: bit 23 clear means "not before".
    assign to_end         = last - first_i;
    assign to_begin       = last_i - first;
    assign overlaps[bank] = !atomic && !to_end[23] && !to_begin[23];
    assign unused_bits    = ^{to_end[22:0], to_begin[22:0]};
  end

  always_ff @(posedge clk_i) begin
    compared_q <= row_q[2:0];
    compare_q  <= read;
    if (read) row_q <= row_q + 1'b1;
    if (compare_q) mask_o[{compared_q, 2'd0}+:4] <= overlaps;
    if (done_o) running_q <= 1'b0;
    if (start_i) begin
      running_q <= 1'b1;
      row_q     <= '0;
    end
    if (!rst_ni) begin
      running_q <= 1'b0;
      compare_q <= 1'b0;
    end
  end

  `ASSERT(OneAtATime, !start_i || !running_q)
endmodule

`default_nettype wire
