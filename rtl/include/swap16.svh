// A field of 16 bits from network byte order to a number, or back. Included inside the module that
// calls it, as a function needs a place to stand in.
function automatic logic [15:0] swap16(input logic [15:0] wire_order);
  swap16 = {wire_order[7:0], wire_order[15:8]};
endfunction
