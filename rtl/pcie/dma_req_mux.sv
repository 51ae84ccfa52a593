`default_nettype none
`include "assert.svh"

/// Merges the TLPs of the two DMA engines into the request stream, one TLP after the other in turn.
///
/// While open_i is 0 no TLP is begun; one that has been offered stays until it is accepted.
/// A write is done, and a read is on its way, when its TLP has been accepted here: reads and writes
/// keep this order.
module dma_req_mux #(
    parameter int unsigned WrClients = 2
) (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic                    open_i,
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

  logic out_valid, open, locked_q, sent, source;
  logic [WrClients-1:0] done, done_q;

  // Input 0 writes, input 1 reads.
  stream_arbiter #(
      .N    (2),
      .Width(Width)
  ) u_merge (
      .clk_i,
      .rst_ni,
      .in_valid_i  ({rd_valid_i, wr_valid_i}),
      .in_ready_o  ({rd_ready_o, wr_ready_o}),
      .in_last_i   ({1'b1, wr_last_i}),
      .in_data_i   ({{WrClients{1'b0}}, 512'd0, rd_hdr_i, wr_done_i, wr_data_i, wr_hdr_i}),
      .out_valid_o (out_valid),
      .out_ready_i (dma_req_ready_i && open),
      .out_last_o  (dma_req_last_o),
      .out_data_o  ({done, dma_req_data_o, dma_req_hdr_o}),
      .out_source_o(source)
  );

  assign open            = open_i || locked_q;
  assign dma_req_valid_o = out_valid && open;
  assign sent            = dma_req_valid_o && dma_req_ready_i && dma_req_last_o;
  assign wr_sent_o       = sent && !source;
  assign rd_sent_o       = sent && source;
  assign rd_sent_tag_o   = dma_req_hdr_o.tag;
  assign wr_done_o       = done_q;

  always_ff @(posedge clk_i) begin
    if (dma_req_valid_o) locked_q <= !sent;
    done_q <= sent ? done : '0;
    if (!rst_ni) begin
      locked_q <= 1'b0;
      done_q   <= '0;
    end
  end

  `ASSERT_HOLD(DmaReqHold, dma_req_valid_o, dma_req_ready_i,
               {dma_req_hdr_o, dma_req_data_o, dma_req_last_o})
endmodule

`default_nettype wire
