`default_nettype none

/// The oldest answers of a QP that are ended: how many (at most Most), and how many of them were
/// repeated ones. Combinational.
module rsp_skip #(
    parameter int unsigned SlotBits = 5,
    parameter int unsigned Most = 8
) (
    input  wire logic [SlotBits:0]      head_i,
    input  wire logic [SlotBits:0]      tail_i,
    input  wire logic [2**SlotBits-1:0] ended_i,
    input  wire logic [2**SlotBits-1:0] repeated_i,
    output logic [3:0]                  count_o,
    output logic [3:0]                  repeated_o
);
  logic [SlotBits:0] waiting;
  logic [SlotBits-1:0] at;
  logic going;
  assign waiting = tail_i - head_i;

  always_comb begin : p_count
    going      = 1'b1;
    count_o    = '0;
    repeated_o = '0;
    at         = head_i[SlotBits-1:0];
    for (int unsigned i = 0; i < Most; i++) begin
      going      = going && waiting > (SlotBits + 1)'(i) && ended_i[at];
      count_o    = count_o + 4'(going);
      repeated_o = repeated_o + 4'(going && repeated_i[at]);
      at         = at + 1'b1;
    end
  end

  if (Most > 15) begin : gen_most
    $fatal(1, "rsp_skip: counts have four bits");
  end
endmodule

`default_nettype wire
