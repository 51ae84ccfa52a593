`default_nettype none
`include "assert.svh"

/// The inline page list of a fast registration: takes the lines of its WQE (mem_list) and puts them
/// into the region's lines on chip, in order. docs/architecture.md, "Memory operations".
///
/// run_i is held, with the operation, until done_o, a pulse. bad_o, with it: a page is not aligned
/// to the page size, and the list is not to be used. Takes as many lines as page_count_i pages
/// need, the first two of which are the last words of the first line; it has been judged that so
/// many are the region's.
module mem_op_list (
    input  wire logic                 clk_i,
    input  wire logic                 rst_ni,
    input  wire logic                 run_i,
    input  wire logic [5:0]           page_count_i,   // 1 to 58
    input  wire logic [4:0]           log_page_i,
    input  wire logic [9:0]           first_line_i,
    output logic                      done_o,
    output logic                      bad_o,
    input  wire logic                 mem_list_valid_i,
    output logic                      mem_list_ready_o,
    input  wire rnic_pkg::mem_list_t  mem_list_data_i,
    // Lines on chip: a line is written in each cycle with valid
    output logic                      list_wr_valid_o,
    output logic [9:0]                list_wr_line_o,
    output logic [511:0]              list_wr_data_o
);
  // Words of the WQE in front of the list.
  localparam logic [6:0] HeaderWords = 7'd6;

  logic [2:0] line_q;
  logic [6:0] end_word, word;
  logic [30:0] mask;
  logic take, last, bad_q, bad_line;

  assign end_word         = HeaderWords + {1'b0, page_count_i};
  assign mask             = ~(31'h7FFF_FFFF << log_page_i);
  assign mem_list_ready_o = run_i;
  assign take             = run_i && mem_list_valid_i;
  assign last             = {1'b0, line_q, 3'd7} >= end_word - 7'd1;

  always_comb begin
    word     = '0;
    bad_line = 1'b0;
    for (int unsigned i = 0; i < 8; i++) begin
      word = {1'b0, line_q, 3'(i)};
      if (word >= HeaderWords && word < end_word &&
          (mem_list_data_i.data[i*64+:31] & mask) != '0) begin
        bad_line = 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      line_q <= last ? '0 : line_q + 3'd1;
      bad_q  <= !last && (bad_q || bad_line);
    end
    if (!rst_ni) begin
      line_q <= '0;
      bad_q  <= 1'b0;
    end
  end

  assign done_o          = take && last;
  assign bad_o           = bad_q || bad_line;
  assign list_wr_valid_o = take;
  assign list_wr_line_o  = first_line_i + {7'd0, line_q};
  assign list_wr_data_o  = mem_list_data_i.data;

  `ASSERT(FitsAWqe, !run_i || (page_count_i != '0 && page_count_i <= 6'd58))
endmodule

`default_nettype wire
