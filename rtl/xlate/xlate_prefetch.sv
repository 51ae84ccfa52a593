`default_nettype none
`include "assert.svh"

/// Next-line prefetch: the use of a line of a page list makes one probe for the line after it,
/// which goes through the pipeline when no request does. Uses of the line that a port used last
/// make none. A probe that finds the place taken is not made.
/// A probe belongs to the epoch of the use; a flush ends it.
module xlate_prefetch #(
    parameter int unsigned KeyBits = 56,
    parameter int unsigned LineShift = 22
) (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    input  wire logic               use_i,        // A line is used, and there is one after it
    input  wire logic               use_port_i,
    input  wire logic               use_epoch_i,
    input  wire logic [KeyBits-1:0] use_key_i,
    input  wire logic [58:0]        use_list_i,   // As in xlate_check
    output logic                    begin_o,      // A probe is made, of use_epoch_i
    output logic                    dropped_o,    // A probe of probe_epoch_o ended here
    input  wire logic               flush_i,
    output logic                    probe_valid_o,
    input  wire logic               probe_ready_i,
    output logic [KeyBits-1:0]      probe_key_o,
    output logic [58:0]             probe_list_o,
    output logic                    probe_epoch_o
);
  localparam logic [KeyBits-1:0] NextLine = {
    {KeyBits - LineShift - 1{1'b0}}, 1'b1, {LineShift{1'b0}}
  };

  logic [KeyBits-1:0] last_q[2];
  logic [1:0] last_valid_q;
  logic known, valid_q;

  assign known         = last_valid_q[use_port_i] && last_q[use_port_i] == use_key_i;
  assign begin_o       = use_i && !known && !valid_q && !flush_i;
  assign probe_valid_o = valid_q && !flush_i;
  assign dropped_o     = valid_q && flush_i;

  always_ff @(posedge clk_i) begin
    if (begin_o) begin
      valid_q                  <= 1'b1;
      probe_key_o              <= use_key_i + NextLine;
      probe_list_o             <= use_list_i;
      probe_epoch_o            <= use_epoch_i;
      last_q[use_port_i]       <= use_key_i;
      last_valid_q[use_port_i] <= 1'b1;
    end else if (probe_ready_i || flush_i) begin
      valid_q <= 1'b0;
    end
    if (!rst_ni) begin
      valid_q      <= 1'b0;
      last_valid_q <= '0;
    end
  end
endmodule

`default_nettype wire
