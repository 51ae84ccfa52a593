`default_nettype none
`include "assert.svh"

/// Merges the TLPs of the two DMA engines into the request stream, one TLP after the other in turn.
///
/// While open_i is 0 no TLP is begun; one that has been offered stays until it is accepted.
/// A write is done, and a read is on its way, when its TLP has been accepted here: reads and writes
/// keep this order.
///
/// While np_hold_i is 1 (no credits for non-posted requests) no read is begun, and writes go on
/// (PCI Express base specification 2.4.1, A3). At most the one read that had been offered by then
/// is still accepted; those that stood behind it are set aside, where writes pass them, and leave
/// before any other once np_hold_i is 0. A read never passes a write.
module dma_req_mux #(
    parameter int unsigned WrClients = 2
) (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic                    open_i,
    input  wire logic                    np_hold_i,
    input  wire logic                    wr_valid_i,
    output logic                         wr_ready_o,
    input  wire rnic_pkg::dma_req_hdr_t  wr_hdr_i,
    input  wire logic [511:0]            wr_data_i,
    input  wire logic                    wr_last_i,
    input  wire logic [WrClients-1:0]    wr_done_i,    // Beat ends a request of this client
    input  wire logic                    rd_valid_i,
    output logic                         rd_ready_o,
    input  wire rnic_pkg::dma_req_hdr_t  rd_hdr_i,
    output logic                         dma_req_valid_o,
    input  wire logic                    dma_req_ready_i,
    output rnic_pkg::dma_req_hdr_t       dma_req_hdr_o,
    output logic [511:0]                 dma_req_data_o,
    output logic                         dma_req_last_o,
    output logic [WrClients-1:0]         wr_done_o,
    output logic                         wr_sent_o,
    output logic                         rd_sent_o,
    output logic [9:0]                   rd_sent_tag_o
);
  localparam int unsigned Width = WrClients + 512 + rnic_pkg::DmaReqHdrBits;
  // Reads that may stand in the arbiter when np_hold_i comes: two in its buffer, and one that it
  // has been offered.
  localparam int unsigned AsideDepth = 4;
  localparam int unsigned CountBits = $clog2(AsideDepth) + 2;

  logic rd_valid, rd_promised_q, merged_valid, merged_ready, merged_last, source, open, locked_q;
  logic sent, put_aside, aside_ready, aside_valid, from_aside, from_aside_q;
  logic [WrClients-1:0] done, done_q;
  logic [511:0] merged_data;
  logic [CountBits-1:0] aside_count;
  rnic_pkg::dma_req_hdr_t merged_hdr, aside_hdr;

  // What the arbiter has been offered it keeps.
  assign rd_valid = rd_valid_i && (rd_promised_q || !(np_hold_i || aside_count != '0));

  // Input 0 writes, input 1 reads.
  stream_arbiter #(
      .N    (2),
      .Width(Width)
  ) u_merge (
      .clk_i,
      .rst_ni,
      .in_valid_i  ({rd_valid, wr_valid_i}),
      .in_ready_o  ({rd_ready_o, wr_ready_o}),
      .in_last_i   ({1'b1, wr_last_i}),
      .in_data_i   ({{WrClients{1'b0}}, 512'd0, rd_hdr_i, wr_done_i, wr_data_i, wr_hdr_i}),
      .out_valid_o (merged_valid),
      .out_ready_i (merged_ready),
      .out_last_o  (merged_last),
      .out_data_o  ({done, merged_data, merged_hdr}),
      .out_source_o(source)
  );

  // Reads set aside: one that comes to the front while there may be none, or behind others.
  assign put_aside = merged_valid && source && (np_hold_i || aside_count != '0) && !locked_q;

  stream_fifo #(
      .Width(rnic_pkg::DmaReqHdrBits),
      .Depth(AsideDepth)
  ) u_aside (
      .clk_i,
      .rst_ni,
      .in_valid_i (put_aside),
      .in_ready_o (aside_ready),
      .in_data_i  (merged_hdr),
      .out_valid_o(aside_valid),
      .out_ready_i(from_aside && open && dma_req_ready_i),
      .out_data_o (aside_hdr),
      .count_o    (aside_count)
  );

  // locked_q: a TLP has been offered, and has not been accepted to its end.
  assign from_aside      = locked_q ? from_aside_q : aside_valid && !np_hold_i;
  assign open            = open_i || locked_q;
  assign merged_ready    = put_aside || (dma_req_ready_i && open && !from_aside);
  assign dma_req_valid_o = open && (from_aside || (merged_valid && !put_aside));
  assign dma_req_hdr_o   = from_aside ? aside_hdr : merged_hdr;
  assign dma_req_data_o  = merged_data & {512{!from_aside}};
  assign dma_req_last_o  = from_aside || merged_last;
  assign sent            = dma_req_valid_o && dma_req_ready_i && dma_req_last_o;
  assign wr_sent_o       = sent && !from_aside && !source;
  assign rd_sent_o       = sent && (from_aside || source);
  assign rd_sent_tag_o   = dma_req_hdr_o.tag;
  assign wr_done_o       = done_q;

  always_ff @(posedge clk_i) begin
    rd_promised_q <= rd_valid && !rd_ready_o;
    if (dma_req_valid_o) begin
      locked_q     <= !sent;
      from_aside_q <= from_aside;
    end
    done_q <= sent && !from_aside ? done : '0;
    if (!rst_ni) begin
      rd_promised_q <= 1'b0;
      locked_q      <= 1'b0;
      done_q        <= '0;
    end
  end

  `ASSERT_HOLD(DmaReqHold, dma_req_valid_o, dma_req_ready_i,
               {dma_req_hdr_o, dma_req_data_o, dma_req_last_o})
  `ASSERT(ThreeAside, aside_count < CountBits'(AsideDepth))
  `ASSERT(AsideHasRoom, !put_aside || aside_ready)
  `ASSERT(NoReadBegins, !(np_hold_i && dma_req_valid_o && !locked_q) ||
          dma_req_hdr_o.tlp_type == rnic_pkg::TlpTypeMemWrite)
endmodule

`default_nettype wire
