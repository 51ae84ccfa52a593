`default_nettype none

/// The next TLP of a DMA request: as many whole 64-byte lines as `max_lines_i` and the 4 KiB
/// boundary allow (PCI Express base specification 2.2.7), with byte enables for the first and the
/// last dword (2.2.5). Combinational.
module dma_cut (
    input  wire logic [11:0] addr_i,       // First byte
    input  wire logic [12:0] left_i,       // Bytes left of the request, at least 1
    input  wire logic [6:0]  max_lines_i,  // 1 to 64
    output logic [12:0]      bytes_o,
    output logic [6:0]       lines_o,
    output logic [10:0]      length_dw_o,
    output logic [3:0]       first_be_o,
    output logic [3:0]       last_be_o,
    output logic             last_o        // Nothing is left after it
);
  logic [6:0] wanted, page, allowed;
  logic [12:0] padded, span;
  logic [1:0] final_byte;
  logic [3:0] head, tail;
  logic [7:0] unused_bits;

  assign padded  = left_i + {7'd0, addr_i[5:0]} + 13'd63;
  assign wanted  = padded[12:6];
  assign page    = 7'd64 - {1'b0, addr_i[11:6]};
  assign allowed = page < max_lines_i ? page : max_lines_i;
  assign last_o  = wanted <= allowed;
  assign lines_o = last_o ? wanted : allowed;
  assign bytes_o = last_o ? left_i : {allowed, 6'd0} - {7'd0, addr_i[5:0]};

  assign unused_bits = {padded[5:0], span[1:0]};
  assign span        = bytes_o + {11'd0, addr_i[1:0]} + 13'd3;
  assign length_dw_o = span[12:2];
  assign final_byte  = addr_i[1:0] + bytes_o[1:0] - 2'd1;
  assign head        = 4'hF << addr_i[1:0];
  assign tail        = 4'hF >> (2'd3 - final_byte);
  assign first_be_o  = length_dw_o == 11'd1 ? head & tail : head;
  assign last_be_o   = length_dw_o == 11'd1 ? 4'h0 : tail;
endmodule

`default_nettype wire
