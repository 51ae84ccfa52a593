`default_nettype none
`include "assert.svh"

/// Completions of host requests, in the order of the requests.
///
/// Orders wait in a queue; a register read waits there for its response. There is a place for each
/// tag that the host may use, so what the host posts never waits behind reads whose completions
/// cannot leave (PCI Express base specification 2.4.1). hold_i: none begins.
/// A completion is one beat, or two with zeros for a longer read: it ends where the read ends or at
/// a multiple of 128 bytes (2.3.1.1).
/// Register responses cannot be held up: their queue takes one for each order that may be waiting.
module pcie_completer (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic                    order_valid_i,
    output logic                         order_ready_o,
    input  wire logic                    order_zeros_i,
    input  wire rnic_pkg::host_cpl_hdr_t order_hdr_i,
    input  wire logic                    reg_rsp_valid_i,
    input  wire logic [63:0]             reg_rsp_data_i,
    input  wire logic                    hold_i,
    output logic                         host_cpl_valid_o,
    input  wire logic                    host_cpl_ready_i,
    output rnic_pkg::host_cpl_hdr_t      host_cpl_hdr_o,
    output logic [511:0]                 host_cpl_data_o,
    output logic                         host_cpl_last_o
);
  // Tags have ten bits.
  localparam int unsigned Depth = 1024;
  localparam int unsigned CountBits = $clog2(Depth) + 2;

  logic order_valid, order_pop, zeros, rsp_valid, rsp_ready, needs_rsp, cpl_valid, cpl_ready;
  rnic_pkg::host_cpl_hdr_t order, cpl;
  logic [63:0] rsp;
  logic [CountBits-1:0] unused_order_count, unused_rsp_count;

  stream_fifo #(
      .Width(1 + rnic_pkg::HostCplHdrBits),
      .Depth(Depth)
  ) u_orders (
      .clk_i,
      .rst_ni,
      .in_valid_i (order_valid_i),
      .in_ready_o (order_ready_o),
      .in_data_i  ({order_zeros_i, order_hdr_i}),
      .out_valid_o(order_valid),
      .out_ready_i(order_pop),
      .out_data_o ({zeros, order}),
      .count_o    (unused_order_count)
  );

  stream_fifo #(
      .Width(64),
      .Depth(Depth)
  ) u_responses (
      .clk_i,
      .rst_ni,
      .in_valid_i (reg_rsp_valid_i),
      .in_ready_o (rsp_ready),
      .in_data_i  (reg_rsp_data_i),
      .out_valid_o(rsp_valid),
      .out_ready_i(cpl_valid && cpl_ready && needs_rsp),
      .out_data_o (rsp),
      .count_o    (unused_rsp_count)
  );

  // A long read of zeros: what is left of it after the completions already sent.
  logic has_data, split, part_q, last, second_q;
  logic [12:0] left, left_q;
  logic [10:0] dwords, dwords_q;
  logic [6:0] lower;
  logic [5:0] room, part_dwords;

  assign has_data    = order.status == rnic_pkg::CplStatusSuccess;
  assign needs_rsp   = has_data && !zeros;
  assign left        = part_q ? left_q : order.byte_count;
  assign dwords      = part_q ? dwords_q : order.length_dw;
  assign lower       = part_q ? '0 : order.lower_addr;
  assign room        = 6'd32 - {1'b0, lower[6:2]};
  assign split       = dwords > {5'd0, room};
  assign part_dwords = split ? room : dwords[5:0];
  assign last        = second_q || {2'd0, lower[5:2]} + part_dwords <= 6'd16;
  assign cpl_valid   = order_valid && (rsp_valid || !needs_rsp) && (second_q || !hold_i);
  assign order_pop   = cpl_valid && cpl_ready && last && !split;

  always_comb begin
    cpl            = order;
    cpl.byte_count = left;
    cpl.lower_addr = lower;
    cpl.length_dw  = {5'd0, part_dwords};
  end

  always_ff @(posedge clk_i) begin
    if (cpl_valid && cpl_ready) second_q <= !last;
    if (cpl_valid && cpl_ready && last) begin
      part_q   <= split;
      left_q   <= left - {5'd0, room, 2'b00} + {11'd0, lower[1:0]};
      dwords_q <= dwords - {5'd0, room};
    end
    if (!rst_ni) {part_q, second_q} <= 2'b00;
  end

  // A register is eight bytes: repeating them puts it into its lane, wherever that is.
  logic [63:0] cpl_word, host_cpl_word;
  assign cpl_word = needs_rsp ? rsp : '0;

  skid_buffer #(
      .Width(65 + rnic_pkg::HostCplHdrBits)
  ) u_out (
      .clk_i,
      .rst_ni,
      .in_valid_i (cpl_valid),
      .in_ready_o (cpl_ready),
      .in_data_i  ({last, cpl_word, cpl}),
      .out_valid_o(host_cpl_valid_o),
      .out_ready_i(host_cpl_ready_i),
      .out_data_o ({host_cpl_last_o, host_cpl_word, host_cpl_hdr_o})
  );
  assign host_cpl_data_o = {8{host_cpl_word}};

  `ASSERT(ResponseHasRoom, !reg_rsp_valid_i || rsp_ready)
  `ASSERT(ResponseWasAsked, !rsp_valid || order_valid)
endmodule

`default_nettype wire
