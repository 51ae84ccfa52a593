`default_nettype none
`include "assert.svh"

/// DMA write engine: merges the clients' requests, round robin, and cuts each into TLPs.
///
/// A TLP ends at the maximum payload or a 4 KiB boundary, always after a whole line, so no beat is
/// split and a line leaves in every cycle. `tlp_done_o` on the last beat of a request names its
/// client.
module dma_write #(
    parameter int unsigned Clients = 2,
    localparam int unsigned SourceBits = Clients > 1 ? $clog2(Clients) : 1
) (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic [6:0]              max_lines_i,
    input  wire logic [Clients-1:0]      wr_valid_i,
    output logic [Clients-1:0]           wr_ready_o,
    input  wire logic [Clients*rnic_pkg::DmaWrBits-1:0] wr_data_i,
    output logic                         tlp_valid_o,
    input  wire logic                    tlp_ready_i,
    output rnic_pkg::dma_req_hdr_t       tlp_hdr_o,
    output logic [511:0]                 tlp_data_o,
    output logic                         tlp_last_o,
    output logic [Clients-1:0]           tlp_done_o
);
  logic [Clients-1:0] last;
  logic wr_last, accept, unused_last;
  logic [SourceBits-1:0] source;
  rnic_pkg::dma_wr_t wr;

  always_comb begin
    for (int unsigned i = 0; i < Clients; i++) last[i] = wr_data_i[(i+1)*rnic_pkg::DmaWrBits-1];
  end

  stream_arbiter #(
      .N    (Clients),
      .Width(rnic_pkg::DmaWrBits)
  ) u_clients (
      .clk_i,
      .rst_ni,
      .in_valid_i  (wr_valid_i),
      .in_ready_o  (wr_ready_o),
      .in_last_i   (last),
      .in_data_i   (wr_data_i),
      .out_valid_o (tlp_valid_o),
      .out_ready_i (tlp_ready_i),
      .out_last_o  (wr_last),
      .out_data_o  (wr),
      .out_source_o(source)
  );
  assign accept      = tlp_valid_o && tlp_ready_i;
  assign unused_last = wr.last;

  // head_q: this beat begins a request. rest_q: lines of the current TLP still to come; 0: this
  // beat begins a TLP.
  logic head_q;
  logic [6:0] rest_q, lines, max_lines_q;
  logic [63:0] addr, next_q;
  logic [12:0] left, left_q, bytes;
  logic cut_last;
  rnic_pkg::dma_req_hdr_t hdr, hdr_q;

  assign addr = head_q ? wr.addr : next_q;
  assign left = head_q ? wr.length : left_q;

  dma_cut u_cut (
      .addr_i     (addr[11:0]),
      .left_i     (left),
      .max_lines_i(max_lines_q),
      .bytes_o    (bytes),
      .lines_o    (lines),
      .length_dw_o(hdr.length_dw),
      .first_be_o (hdr.first_be),
      .last_be_o  (hdr.last_be),
      .last_o     (cut_last)
  );
  assign hdr.tlp_type = rnic_pkg::TlpTypeMemWrite;
  assign hdr.addr     = {addr[63:2], 2'b00};
  assign hdr.tag      = '0;

  assign tlp_hdr_o  = rest_q == '0 ? hdr : hdr_q;
  assign tlp_data_o = wr.data;
  assign tlp_last_o = rest_q == '0 ? lines == 7'd1 : rest_q == 7'd1;
  always_comb begin
    tlp_done_o = '0;
    for (int unsigned i = 0; i < Clients; i++) tlp_done_o[i] = wr_last && source == SourceBits'(i);
  end

  always_ff @(posedge clk_i) begin
    if (accept) begin
      head_q <= wr_last;
      rest_q <= (rest_q == '0 ? lines : rest_q) - 7'd1;
      if (rest_q == '0) begin
        hdr_q  <= hdr;
        next_q <= {addr[63:6], 6'd0} + {51'd0, lines, 6'd0};
        left_q <= left - bytes;
      end
    end
    // The limit changes between requests only.
    if (!tlp_valid_o || (accept && wr_last)) max_lines_q <= max_lines_i;
    if (!rst_ni) begin
      head_q      <= 1'b1;
      rest_q      <= '0;
      max_lines_q <= 7'd2;
    end
  end

  logic cut_last_q;
  always_ff @(posedge clk_i) if (accept && rest_q == '0) cut_last_q <= cut_last;

  `ASSERT(LengthInRange, !tlp_valid_o || (wr.length != '0 && wr.length <= 13'd4096))
  `ASSERT(LastMatchesLength, !tlp_valid_o ||
          wr_last == (tlp_last_o && (rest_q == '0 ? cut_last : cut_last_q)))
endmodule

`default_nettype wire
