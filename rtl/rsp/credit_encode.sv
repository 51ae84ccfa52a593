`default_nettype none

/// Credit code of an ACK for a number of receive WQEs: the largest that promises no more than there
/// are (InfiniBand specification 9.7.7.2.2, table 46). Powers of two from 1 on, and one and a half
/// of each from 2 on; code 31, for a queue that is shared, says that nothing is counted (a
/// responder with an SRQ must not count, 9.7.7.2.4). Combinational.
module credit_encode (
    input  wire logic        counted_i,
    input  wire logic [15:0] wqes_i,
    output logic [4:0]       code_o
);
  // The top bit gives the power of two, the one below it the half: 2^n is code 2n, 1.5 * 2^n the
  // one after it, but there is no 1.5.
  always_comb begin
    code_o = 5'd0;
    if (wqes_i[0]) code_o = 5'd1;
    for (int unsigned n = 1; n < 16; n++) begin
      if (wqes_i[n]) code_o = 5'(2 * n) + 5'(wqes_i[n-1]);
    end
    if (wqes_i[15]) code_o = 5'd30;
    if (!counted_i) code_o = 5'd31;
  end
endmodule

`default_nettype wire
