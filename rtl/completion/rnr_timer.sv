`default_nettype none

/// The RNR NAK timer of a code (InfiniBand specification 9.7.5.2.8, table 45), in units of 1024
/// cycles at 250 MHz, rounded up. Combinational.
module rnr_timer (
    input  wire logic [4:0]  code_i,
    output logic [17:0]      units_o
);
  // Milliseconds * 1000 / 4.096
  always_comb begin
    unique case (code_i)
      5'd1:  units_o = 18'd3;
      5'd2:  units_o = 18'd5;
      5'd3:  units_o = 18'd8;
      5'd4:  units_o = 18'd10;
      5'd5:  units_o = 18'd15;
      5'd6:  units_o = 18'd20;
      5'd7:  units_o = 18'd30;
      5'd8:  units_o = 18'd40;
      5'd9:  units_o = 18'd59;
      5'd10: units_o = 18'd79;
      5'd11: units_o = 18'd118;
      5'd12: units_o = 18'd157;
      5'd13: units_o = 18'd235;
      5'd14: units_o = 18'd313;
      5'd15: units_o = 18'd469;
      5'd16: units_o = 18'd625;
      5'd17: units_o = 18'd938;
      5'd18: units_o = 18'd1250;
      5'd19: units_o = 18'd1875;
      5'd20: units_o = 18'd2500;
      5'd21: units_o = 18'd3750;
      5'd22: units_o = 18'd5000;
      5'd23: units_o = 18'd7500;
      5'd24: units_o = 18'd10000;
      5'd25: units_o = 18'd15000;
      5'd26: units_o = 18'd20000;
      5'd27: units_o = 18'd30000;
      5'd28: units_o = 18'd40000;
      5'd29: units_o = 18'd60000;
      5'd30: units_o = 18'd80000;
      5'd31: units_o = 18'd120000;
      default: units_o = 18'd160000;  // 0
    endcase
  end
endmodule

`default_nettype wire
