`default_nettype none
`include "assert.svh"

/// Epochs: counts, for each of two, what was begun in it and has not ended. A drain turns to the
/// other epoch, which is empty, and waits for the old one to empty.
module xlate_drain #(
    parameter int unsigned Ends = 2,
    parameter int unsigned Begins = 2
) (
    input  wire logic              clk_i,
    input  wire logic              rst_ni,
    output logic                   epoch_o,
    input  wire logic [Begins-1:0] begin_i,
    input  wire logic [Begins-1:0] begin_epoch_i,
    input  wire logic [Ends-1:0]   end_i,
    input  wire logic [Ends-1:0]   end_epoch_i,
    input  wire logic              drain_valid_i,
    output logic                   drain_ready_o
);
  localparam int unsigned CountBits = 16;

  logic epoch_q, draining_q, other_empty;
  logic [1:0] negative;
  logic [CountBits-1:0] count_q[2];
  logic [CountBits-1:0] count_d[2];

  always_comb begin
    for (int unsigned e = 0; e < 2; e++) begin
      count_d[e]  = count_q[e];
      negative[e] = count_q[e][CountBits-1];
      for (int unsigned i = 0; i < Begins; i++) begin
        count_d[e] = count_d[e] +
            {{CountBits - 1{1'b0}}, begin_i[i] && begin_epoch_i[i] == (e == 1)};
      end
      for (int unsigned i = 0; i < Ends; i++) begin
        count_d[e] = count_d[e] -
            {{CountBits - 1{1'b0}}, end_i[i] && end_epoch_i[i] == (e == 1)};
      end
    end
  end

  assign epoch_o       = epoch_q;
  assign other_empty   = count_q[!epoch_q] == '0;
  assign drain_ready_o = draining_q && other_empty;

  always_ff @(posedge clk_i) begin
    for (int unsigned e = 0; e < 2; e++) begin
      count_q[e] <= count_d[e];
      if (!rst_ni) count_q[e] <= '0;
    end
    if (draining_q) begin
      if (drain_ready_o) draining_q <= 1'b0;
    end else if (drain_valid_i) begin
      draining_q <= 1'b1;
      epoch_q    <= !epoch_q;
    end
    if (!rst_ni) begin
      draining_q <= 1'b0;
      epoch_q    <= 1'b0;
    end
  end

  `ASSERT(OtherIsEmpty, !(drain_valid_i && !draining_q) || other_empty)
  `ASSERT(NoMoreEndsThanBegins, negative == '0)
endmodule

`default_nettype wire
