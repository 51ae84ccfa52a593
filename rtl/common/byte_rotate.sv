`default_nettype none

/// Rotates a 64-byte line by `amount_i` lanes towards lane 0: out lane i is in lane (i + amount_i)
/// mod 64. Combinational.
module byte_rotate (
    input  wire logic [511:0] data_i,
    input  wire logic [5:0]   amount_i,
    output logic [511:0]      data_o
);
  logic [511:0] by32, by16, by8, by4, by2;

  assign by32   = amount_i[5] ? {data_i[255:0], data_i[511:256]} : data_i;
  assign by16   = amount_i[4] ? {by32[127:0], by32[511:128]} : by32;
  assign by8    = amount_i[3] ? {by16[63:0], by16[511:64]} : by16;
  assign by4    = amount_i[2] ? {by8[31:0], by8[511:32]} : by8;
  assign by2    = amount_i[1] ? {by4[15:0], by4[511:16]} : by4;
  assign data_o = amount_i[0] ? {by2[7:0], by2[511:8]} : by2;
endmodule

`default_nettype wire
