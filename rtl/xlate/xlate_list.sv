`default_nettype none
`include "assert.svh"

/// Page lists on chip: lines of eight page addresses, which came in FastRegister requests.
///
/// Whoever writes sees to it that nobody reads the line (mem_op_list). A line is asked for by its
/// number, with an id that comes back with it; lines come in the order in which they were asked
/// for. There is room for Entries that are under way. Pages are aligned to 4 KiB at least, so the
/// low bits of an address are not kept.
module xlate_list #(
    parameter int unsigned Entries = 16,
    localparam int unsigned IdBits = $clog2(Entries),
    localparam int unsigned LineBits = $clog2(rnic_pkg::ListLines)
) (
    input  wire logic                 clk_i,
    input  wire logic                 rst_ni,
    input  wire logic                 wr_valid_i,
    input  wire logic [LineBits-1:0]  wr_line_i,
    input  wire logic [511:0]         wr_data_i,
    input  wire logic                 req_valid_i,    // There is always room
    input  wire logic [IdBits-1:0]    req_id_i,
    input  wire logic [LineBits-1:0]  req_line_i,
    output logic                      rsp_valid_o,
    input  wire logic                 rsp_ready_i,
    output logic [IdBits-1:0]         rsp_id_o,
    output logic [511:0]              rsp_data_o
);
  localparam int unsigned Kept = 52;

  logic req_ready, next_valid, next_ready;
  logic [IdBits-1:0] next_id;
  logic [LineBits-1:0] next_line;
  logic [IdBits+1:0] request_count;
  logic [8*Kept-1:0] wr_word, rd_word;

  stream_fifo #(
      .Width(IdBits + LineBits),
      .Depth(Entries)
  ) u_requests (
      .clk_i,
      .rst_ni,
      .in_valid_i (req_valid_i),
      .in_ready_o (req_ready),
      .in_data_i  ({req_id_i, req_line_i}),
      .out_valid_o(next_valid),
      .out_ready_i(next_ready),
      .out_data_o ({next_id, next_line}),
      .count_o    (request_count)
  );

  for (genvar i = 0; i < 8; i++) begin : gen_word
    assign wr_word[i*Kept+:Kept]  = wr_data_i[i*64+12+:Kept];
    assign rsp_data_o[i*64+:64] = {rd_word[i*Kept+:Kept], 12'd0};
  end

  // The RAM keeps what was read until the next reading.
  assign next_ready = !rsp_valid_o || rsp_ready_i;
  ram_1r1w #(
      .Width(8 * Kept),
      .Depth(rnic_pkg::ListLines)
  ) u_lines (
      .clk_i,
      .wr_en_i  (wr_valid_i),
      .wr_addr_i(wr_line_i),
      .wr_data_i(wr_word),
      .rd_en_i  (next_valid && next_ready),
      .rd_addr_i(next_line),
      .rd_data_o(rd_word)
  );

  always_ff @(posedge clk_i) begin
    if (next_ready) begin
      rsp_valid_o <= next_valid;
      rsp_id_o    <= next_id;
    end
    if (!rst_ni) rsp_valid_o <= 1'b0;
  end

  logic unused_bits;
  always_comb begin
    unused_bits = 1'b0;
    for (int unsigned i = 0; i < 8; i++) unused_bits = unused_bits ^ (^wr_data_i[i*64+:12]);
  end

  `ASSERT(EntryForEach, request_count <= (IdBits + 2)'(Entries))
  `ASSERT(HasRoom, !req_valid_i || req_ready)
  `ASSERT_HOLD(LineHold, rsp_valid_o, rsp_ready_i, {rsp_id_o, rsp_data_o})
endmodule

`default_nettype wire
