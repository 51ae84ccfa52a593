`default_nettype none
`include "assert.svh"

/// Finds the place in a WQE's data segments where a message goes on after `offset_i` bytes: one
/// segment a cycle, and one more for each line of the WQE that is read.
///
/// start_i is a pulse, while idle. The line of rd_line_o is on line_i in the cycle after rd_en_o,
/// and stays. The sum of the segments must be larger than offset_i; then done_o, a pulse, comes
/// with the segment's index and the bytes of it that are used up.
module sge_seek (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    input  wire logic         start_i,
    input  wire logic [2:0]   header_segments_i,
    input  wire logic [31:0]  offset_i,
    output logic              rd_en_o,
    output logic [2:0]        rd_line_o,
    input  wire logic [511:0] line_i,
    output logic              done_o,
    output logic [4:0]        sge_index_o,
    output logic [31:0]       sge_offset_o
);
  // Idle  nothing to do
  // Read  the line of the next segment is being read
  // Step  the segment is here
  typedef enum logic [1:0] {
    StIdle,
    StRead,
    StStep
  } state_e;
  state_e state_q, state_d;
  logic [4:0] segment_q, index_q;
  logic [31:0] left_q, length;
  logic here;

  assign length       = line_i[segment_q[1:0]*128+64+:32];
  assign here         = left_q < length;
  assign rd_en_o      = state_q == StRead;
  assign rd_line_o    = segment_q[4:2];
  assign done_o       = state_q == StStep && here;
  assign sge_index_o  = index_q;
  assign sge_offset_o = left_q;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:  if (start_i) state_d = StRead;
      StRead:  state_d = StStep;
      StStep: begin
        if (here) state_d = StIdle;
        else if (segment_q[1:0] == 2'd3) state_d = StRead;
      end
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (start_i) begin
      segment_q <= 5'(header_segments_i);
      index_q   <= '0;
      left_q    <= offset_i;
    end else if (state_q == StStep && !here) begin
      segment_q <= segment_q + 1'b1;
      index_q   <= index_q + 1'b1;
      left_q    <= left_q - length;
    end
    if (!rst_ni) state_q <= StIdle;
  end

  `ASSERT(StartWhenIdle, !start_i || state_q == StIdle)
  `ASSERT(InTheList, state_q != StStep || index_q < rnic_pkg::MaxSge[4:0])
endmodule

`default_nettype wire
