`default_nettype none

/// Credit codes (InfiniBand specification 9.7.7.2.2, table 46): an encoder never promises more than
/// there is, and no other code promises more without being too much; decoder and table agree.
module prove_credit_codes (
    input wire logic        clk_i,
    input wire logic        rst_ni,
    input wire logic        counted_i,
    input wire logic [15:0] wqes_i,
    input wire logic [4:0]  other_i
);
  logic [4:0] code;
  logic limited, other_limited;
  logic [15:0] promised, other_promised;

  credit_encode u_encode (
      .counted_i,
      .wqes_i,
      .code_o(code)
  );
  credit_decode u_decode (
      .code_i   (code),
      .limited_o(limited),
      .wqes_o   (promised)
  );
  credit_decode u_other (
      .code_i   (other_i),
      .limited_o(other_limited),
      .wqes_o   (other_promised)
  );

  // Table 46, written out.
  function automatic logic [15:0] table46(input logic [4:0] of_code);
    unique case (of_code)
      5'd0: table46 = 16'd0;
      5'd1: table46 = 16'd1;
      5'd2: table46 = 16'd2;
      5'd3: table46 = 16'd3;
      5'd4: table46 = 16'd4;
      5'd5: table46 = 16'd6;
      5'd6: table46 = 16'd8;
      5'd7: table46 = 16'd12;
      5'd8: table46 = 16'd16;
      5'd9: table46 = 16'd24;
      5'd10: table46 = 16'd32;
      5'd11: table46 = 16'd48;
      5'd12: table46 = 16'd64;
      5'd13: table46 = 16'd96;
      5'd14: table46 = 16'd128;
      5'd15: table46 = 16'd192;
      5'd16: table46 = 16'd256;
      5'd17: table46 = 16'd384;
      5'd18: table46 = 16'd512;
      5'd19: table46 = 16'd768;
      5'd20: table46 = 16'd1024;
      5'd21: table46 = 16'd1536;
      5'd22: table46 = 16'd2048;
      5'd23: table46 = 16'd3072;
      5'd24: table46 = 16'd4096;
      5'd25: table46 = 16'd6144;
      5'd26: table46 = 16'd8192;
      5'd27: table46 = 16'd12288;
      5'd28: table46 = 16'd16384;
      5'd29: table46 = 16'd24576;
      default: table46 = 16'd32768;
    endcase
  endfunction

  always_comb begin
    if (rst_ni) begin
      Table: assert (!other_limited || other_promised == table46(other_i));
      Code31: assert (other_limited == (other_i != 5'd31));
      Uncounted: assert (limited == counted_i);
      NotTooMuch: assert (!counted_i || promised <= wqes_i);
      Closest: assert (!counted_i || !other_limited || other_promised <= promised ||
                       other_promised > wqes_i);
    end
  end
endmodule

`default_nettype wire
