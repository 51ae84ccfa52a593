`default_nettype none

/// Adds up the lengths of a WQE's data segments, a line of four segments a cycle: the first line is
/// on line_i with start_i, the others with run_i.
///
/// In a cycle with start_i or run_i, more_o asks for line next_line_o, to be there in the next
/// cycle with run_i. sum_o is right in the cycle after the last line. Of inline data it says
/// nothing.
module sq_sum (
    input  wire logic                   clk_i,
    input  wire logic                   start_i,
    input  wire logic                   run_i,
    input  wire rnic_pkg::wqe_control_t control_i,
    input  wire logic [2:0]             header_segments_i,
    input  wire logic [511:0]           line_i,
    output logic                        more_o,
    output logic [2:0]                  next_line_o,
    output logic [36:0]                 sum_o
);
  logic [36:0] line_sum;
  logic [7:0] line_segment, segment;
  logic [2:0] line, line_q;

  // Data segments are segments [header, size) of the WQE.
  always_comb begin
    line_sum = '0;
    segment  = '0;
    for (int unsigned i = 0; i < 4; i++) begin
      segment = line_segment + 8'(i);
      if (segment >= 8'(header_segments_i) && segment < control_i.size) begin
        line_sum = line_sum + 37'(line_i[i*128+64+:32]);
      end
    end
  end
  assign line         = start_i ? 3'd0 : line_q;
  assign line_segment = 8'({line, 2'd0});
  assign more_o       = !control_i.inline_data && line != 3'd7 &&
                        line_segment + 8'd4 < control_i.size;
  assign next_line_o  = line + 3'd1;

  always_ff @(posedge clk_i) begin
    if (start_i || run_i) begin
      sum_o  <= (start_i ? 37'd0 : sum_o) + line_sum;
      line_q <= next_line_o;
    end
  end

  logic unused_bits;
  assign unused_bits = ^control_i;
endmodule

`default_nettype wire
