`default_nettype none
`include "assert.svh"

/// Sends the writes of the CQ engine and of the EQ engine through one DMA write client, in the
/// order in which they are accepted here, and asks for the MSI-X message of an EQE when its write
/// is done. Because a CQE is accepted here before its event exists, the host sees CQE, EQE and
/// message in that order. A place is kept for the next write of each (cqe_kept_o, eqe_kept_o).
module queue_writes (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    output logic                     cqe_kept_o,
    input  wire logic                cqe_valid_i,
    output logic                     cqe_ready_o,
    input  wire rnic_pkg::dma_wr_t   cqe_data_i,
    output logic                     eqe_kept_o,
    input  wire logic                eqe_valid_i,
    output logic                     eqe_ready_o,
    input  wire rnic_pkg::dma_wr_t   eqe_data_i,
    input  wire logic [7:0]          eqe_vector_i,
    output logic                     wr_valid_o,
    input  wire logic                wr_ready_i,
    output rnic_pkg::dma_wr_t        wr_data_o,
    input  wire logic                wr_done_i,
    output logic                     msix_valid_o,
    input  wire logic                msix_ready_i,
    output logic [7:0]               msix_vector_o,
    // A write was accepted; a write is done and its message, if any, taken
    output logic                     enter_o,
    output logic                     leave_o
);
  localparam int unsigned WrBits = rnic_pkg::DmaWrBits;
  localparam int unsigned EntryBits = WrBits + 9;
  localparam int unsigned Outstanding = 32;

  logic merged_valid, merged_ready, merged_is_eqe;
  logic [EntryBits-1:0] merged_data;
  logic tag_in_ready, tag_valid, tag_ready, tag_is_eqe;
  logic [7:0] tag_vector;
  logic [6:0] unused_count;
  logic [5:0] done_q;

  place_queue #(
      .N    (2),
      .Width(EntryBits),
      .Depth(4)
  ) u_merge (
      .clk_i,
      .rst_ni,
      .kept_o     ({eqe_kept_o, cqe_kept_o}),
      .in_valid_i ({eqe_valid_i, cqe_valid_i}),
      .in_ready_o ({eqe_ready_o, cqe_ready_o}),
      .in_data_i  ({1'b1, eqe_vector_i, eqe_data_i, 1'b0, 8'd0, cqe_data_i}),
      .out_valid_o(merged_valid),
      .out_ready_i(merged_ready),
      .out_data_o (merged_data)
  );
  assign merged_is_eqe = merged_data[EntryBits-1];

  // Every write leaves a tag that says what its completion means.
  assign wr_valid_o   = merged_valid && tag_in_ready;
  assign wr_data_o    = merged_data[WrBits-1:0];
  assign merged_ready = wr_ready_i && tag_in_ready;

  stream_fifo #(
      .Width(9),
      .Depth(Outstanding)
  ) u_tags (
      .clk_i,
      .rst_ni,
      .in_valid_i (wr_valid_o && wr_ready_i),
      .in_ready_o (tag_in_ready),
      .in_data_i  ({merged_is_eqe, merged_data[WrBits+:8]}),
      .out_valid_o(tag_valid),
      .out_ready_i(tag_ready),
      .out_data_o ({tag_is_eqe, tag_vector}),
      .count_o    (unused_count)
  );

  assign msix_valid_o  = tag_valid && done_q != '0 && tag_is_eqe;
  assign msix_vector_o = tag_vector;
  assign tag_ready     = done_q != '0 && (!tag_is_eqe || msix_ready_i);
  assign enter_o       = (cqe_valid_i && cqe_ready_o) || (eqe_valid_i && eqe_ready_o);
  assign leave_o       = tag_valid && tag_ready;

  always_ff @(posedge clk_i) begin
    done_q <= done_q + 6'(wr_done_i) - 6'(leave_o);
    if (!rst_ni) done_q <= '0;
  end

  `ASSERT_HOLD(WriteHold, wr_valid_o, wr_ready_i, wr_data_o)
  `ASSERT_HOLD(MsixHold, msix_valid_o, msix_ready_i, msix_vector_o)
  `ASSERT(DoneWithinTags, done_q <= 6'(Outstanding + 1))
endmodule

`default_nettype wire
