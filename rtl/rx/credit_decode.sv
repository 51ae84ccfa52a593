`default_nettype none

/// Receive WQEs that a credit code promises (InfiniBand specification 9.7.7.2.2, table 46), at most
/// 32768. limited_o: 0 for code 31, whose sender does not count. Combinational.
module credit_decode (
    input  wire logic [4:0]  code_i,
    output logic             limited_o,
    output logic [15:0]      wqes_o
);
  always_comb begin
    wqes_o = 16'({1'b1, code_i[0], 15'd0} >> (5'd16 - 5'(code_i[4:1])));
    if (code_i == 5'd0) wqes_o = 16'd0;
    if (code_i == 5'd1) wqes_o = 16'd1;
  end
  assign limited_o = code_i != 5'd31;
endmodule

`default_nettype wire
