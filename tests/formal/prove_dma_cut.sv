`default_nettype none

/// A DMA request is cut into TLPs that cross no 4 KiB boundary (PCI Express base specification
/// 2.2.7), whose byte enables are those of 2.2.5 and name exactly the bytes of the request; for all
/// addresses, lengths and limits.
module prove_dma_cut (
    input wire logic        clk_i,
    input wire logic        rst_ni,
    input wire logic [11:0] addr_i,
    input wire logic [12:0] left_i,
    input wire logic [6:0]  max_lines_i
);
  logic [12:0] bytes, enabled;
  logic [6:0] lines;
  logic [10:0] length_dw;
  logic [3:0] first_be, last_be;
  logic last;
  always_comb begin
    assume (left_i != '0 && left_i <= 13'd4096);
    assume (max_lines_i != '0 && max_lines_i <= 7'd64);
  end

  dma_cut u_dut (
      .addr_i,
      .left_i,
      .max_lines_i,
      .bytes_o    (bytes),
      .lines_o    (lines),
      .length_dw_o(length_dw),
      .first_be_o (first_be),
      .last_be_o  (last_be),
      .last_o     (last)
  );

  function automatic logic [12:0] ones(input logic [3:0] enables);
    ones = 13'(enables[0]) + 13'(enables[1]) + 13'(enables[2]) + 13'(enables[3]);
  endfunction
  assign enabled = ones(first_be) + ones(last_be) +
      (length_dw > 11'd2 ? {length_dw - 11'd2, 2'd0} : 13'd0);

  wire logic [12:0] from = {1'b0, addr_i};
  wire logic [13:0] past = {2'd0, addr_i} + {1'b0, bytes};
  always_comb begin
    if (rst_ni) begin
      Progress: assert (bytes != '0 && bytes <= left_i);
      Last: assert (last == (bytes == left_i));
      InPage: assert (past <= 14'd4096);
      Limit: assert (lines <= max_lines_i);
      // Lines that it touches, and it ends with one unless it is the last.
      Lines: assert (lines == 7'((past + 14'd63) >> 6) - {1'b0, from[11:6]});
      WholeLines: assert (last || past[5:0] == '0);
      Dwords: assert (length_dw == 11'((past + 14'd3) >> 2) - {1'b0, from[11:2]});
      EveryByte: assert (enabled == bytes);
      // 2.2.5: one dword has no last byte enables, more have both; no holes in them.
      OneDword: assert ((length_dw == 11'd1) == (last_be == '0));
      FirstStarts: assert (first_be != '0 && first_be[addr_i[1:0]] &&
                           (first_be & ((4'd1 << addr_i[1:0]) - 4'd1)) == '0);
      LastFromZero: assert ((last_be & (last_be + 4'd1)) == '0);
      FirstToTop: assert (length_dw == 11'd1 || first_be[3]);
    end
  end
endmodule

`default_nettype wire
