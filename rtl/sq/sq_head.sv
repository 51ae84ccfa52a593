`default_nettype none

/// The WQE under way: takes its first line (start_i) and keeps what the planner needs of it; adds
/// up its data segments, line after line (as in sq_sum). Outputs are right from the next cycle on,
/// the sum when more_o was low.
module sq_head (
    input  wire logic                clk_i,
    input  wire logic                start_i,
    input  wire logic                run_i,
    input  wire logic                is_ud_i,
    input  wire logic [511:0]        line_i,
    output logic                     more_o,
    output logic [2:0]               next_line_o,
    output rnic_pkg::wqe_control_t   control_o,
    // What follows wqe_control
    output logic [383:0]             header_o,
    // Segments in front of the data segments
    output logic [2:0]               header_segments_o,
    output logic [36:0]              sum_o
);
  rnic_pkg::wqe_control_t control;
  logic [2:0] segments;
  assign control = line_i[127:0];

  sq_header u_header (
      .opcode_i  (control.opcode),
      .is_ud_i,
      .segments_o(segments)
  );
  sq_sum u_sum (
      .clk_i,
      .start_i,
      .run_i,
      .control_i        (start_i ? control : control_o),
      .header_segments_i(start_i ? segments : header_segments_o),
      .line_i,
      .more_o,
      .next_line_o,
      .sum_o
  );
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      control_o         <= control;
      header_o          <= line_i[511:128];
      header_segments_o <= segments;
    end
  end
endmodule

`default_nettype wire
