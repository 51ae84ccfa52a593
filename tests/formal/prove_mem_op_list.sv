`default_nettype none

/// Of an inline page list each line is written once, in order, into the lines that begin with the
/// first; no more than the list needs; and a page of the list that is not aligned is told with the
/// last, whatever stands before and behind the list.
module prove_mem_op_list (
    input wire logic                clk_i,
    input wire logic                rst_ni,
    input wire logic                run_i,
    input wire logic                valid_i,
    input wire rnic_pkg::mem_list_t line_i
);
  (* anyconst *) logic [5:0] pages, page;
  (* anyconst *) logic [4:0] log_page;
  (* anyconst *) logic [9:0] first;
  logic done, bad, ready, wr_valid;
  logic [9:0] wr_line;
  logic [511:0] wr_data;
  logic [3:0] taken_q;
  logic odd_q;
  initial assume (!rst_ni);
  always_comb begin
    assume (pages != '0 && pages <= 6'd58 && page < pages);
    assume (log_page >= 5'd12 && log_page <= 5'd30);
    // Held until the list is done, and then not at once for another.
    assume (taken_q == '0 || run_i);
  end

  mem_op_list u_dut (
      .clk_i,
      .rst_ni,
      .run_i,
      .page_count_i    (pages),
      .log_page_i      (log_page),
      .first_line_i    (first),
      .done_o          (done),
      .bad_o           (bad),
      .mem_list_valid_i(valid_i),
      .mem_list_ready_o(ready),
      .mem_list_data_i (line_i),
      .list_wr_valid_o (wr_valid),
      .list_wr_line_o  (wr_line),
      .list_wr_data_o  (wr_data)
  );

  wire logic take = ready && valid_i;
  wire logic [6:0] at = {1'b0, page} + 7'd6;
  wire logic [6:0] lines = ({1'b0, pages} + 7'd13) >> 3;
  wire logic [63:0] word = line_i.data[{at[2:0], 6'd0}+:64];
  wire logic odd = take && {3'd0, taken_q} == at >> 3 &&
      (word[30:0] & ~(31'h7FFF_FFFF << log_page)) != '0;
  always_ff @(posedge clk_i) begin
    if (take) taken_q <= done ? '0 : taken_q + 4'd1;
    odd_q <= !(take && done) && (odd_q || odd);
    if (!rst_ni) begin
      taken_q <= '0;
      odd_q   <= 1'b0;
    end
  end
  always_comb begin
    if (rst_ni) begin
      OnlyInARun: assert (run_i || (!ready && !done && !wr_valid));
      Written: assert (wr_valid == take);
      InOrder: assert (!wr_valid || (wr_line == first + {6'd0, taken_q} && wr_data == line_i.data));
      Lines: assert (!take || done == ({3'd0, taken_q} == lines - 7'd1));
      Told: assert (!(done && (odd_q || odd)) || bad);
    end
  end
endmodule

`default_nettype wire
