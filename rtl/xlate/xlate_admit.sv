`default_nettype none
`include "assert.svh"

/// Which port's request enters the translation pipeline, one a cycle. The pipeline never stalls: a
/// request enters when there is room for its answer (Depth at a port) and for a line that it may
/// miss (Misses at a port), so that neither port can take what the other needs.
module xlate_admit #(
    parameter int unsigned Depth = 16,
    parameter int unsigned Misses = 6
) (
    input  wire logic       clk_i,
    input  wire logic       rst_ni,
    input  wire logic       enable_i,
    input  wire logic [1:0] req_valid_i,
    output logic [1:0]      req_ready_o,
    input  wire logic [1:0] popped_i,   // An answer has left
    input  wire logic [1:0] settled_i,  // A request needs no line of its own
    input  wire logic [1:0] freed_i     // A line of this port has been given up
);
  localparam int unsigned AnswerBits = $clog2(Depth + 1);
  localparam int unsigned MissBits = $clog2(Misses + 1);

  logic [AnswerBits-1:0] answers_q[2];
  logic [MissBits-1:0] misses_q[2];
  logic [1:0] may, grant, in_range;

  always_comb begin
    for (int unsigned i = 0; i < 2; i++) begin
      in_range[i] = answers_q[i] <= AnswerBits'(Depth) && misses_q[i] <= MissBits'(Misses);
      may[i] = enable_i && answers_q[i] != AnswerBits'(Depth) && misses_q[i] != MissBits'(Misses);
    end
  end

  rr_arbiter #(
      .N(2)
  ) u_ports (
      .clk_i,
      .rst_ni,
      .request_i(req_valid_i & may),
      .advance_i(1'b1),
      .grant_o  (grant)
  );
  assign req_ready_o = grant;

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < 2; i++) begin
      answers_q[i] <= answers_q[i] + {{AnswerBits - 1{1'b0}}, grant[i]} -
          {{AnswerBits - 1{1'b0}}, popped_i[i]};
      misses_q[i] <= misses_q[i] + {{MissBits - 1{1'b0}}, grant[i]} -
          {{MissBits - 1{1'b0}}, settled_i[i]} - {{MissBits - 1{1'b0}}, freed_i[i]};
      if (!rst_ni) begin
        answers_q[i] <= '0;
        misses_q[i]  <= '0;
      end
    end
  end

  `ASSERT(InRange, in_range == '1)
endmodule

`default_nettype wire
