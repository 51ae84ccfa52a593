`default_nettype none

/// The clock of a room of the NIC: it stands still while nothing in the room can change.
///
/// stir_i: something moves at the ports of the room, a deadline of it has come, or it has work that
/// its ports do not show. At most Hold cycles after the last of it everything inside has come to
/// rest: another edge would change no register until there is the next one, so the room goes on as
/// if it had been clocked all the time. awake_o: this cycle ends with an edge of clk_o, unless
/// open_i asks for all of them. open_i changes only while nothing depends on the clock (a test, a
/// scan chain).
///
/// The enable is taken while clk_i falls, so clk_o has no glitch; what makes stir_i has half a
/// cycle. A chip puts its clock gating cell here. An FPGA needs none: for SYNTHESIS the clock runs,
/// which nobody can tell apart.
module room_clock #(
    parameter int unsigned Hold = 8
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic open_i,
    input  wire logic stir_i,
    output logic      clk_o,
    output logic      awake_o
);
  if (Hold < 2) begin : gen_bad_hold
    $fatal(1, "room_clock: Hold must be at least 2");
  end

  localparam int unsigned Bits = $clog2(Hold + 1);
  logic [Bits-1:0] still_q;
  assign awake_o = stir_i || still_q != Bits'(Hold);

  always_ff @(posedge clk_i) begin
    if (stir_i || !rst_ni) still_q <= '0;
    else if (still_q != Bits'(Hold)) still_q <= still_q + 1'b1;
  end

`ifdef SYNTHESIS
  logic unused_open;
  assign unused_open = open_i;
  assign clk_o       = clk_i;
`else
  logic enable_q;
  always_ff @(negedge clk_i) enable_q <= awake_o || !rst_ni;
  assign clk_o = clk_i && (enable_q || open_i);
`endif
endmodule

`default_nettype wire
