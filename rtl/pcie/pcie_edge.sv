`default_nettype none
`include "assert.svh"

/// PCIe edge: TLP streams outside, register accesses, doorbell writes, DMA clients inside.
///
/// Host requests: 4- and 8-byte reads and writes of page 0 (dword byte enables) become reg_req;
/// 8-byte aligned 8-byte writes to a UAR page, and naturally aligned writes of 16, 32 and 64 bytes
/// to its WQE window, become uar_req; reads of a UAR page give zero. Anything else: a non-posted
/// request is completed as Unsupported Request, a posted one is dropped; both are counted. Poisoned
/// writes are dropped and counted likewise. Each completion has traffic class and attributes of its
/// request.
///
/// DMA reads: client i asks with rd_req (dma_rd_req_t) and gets its data in the order of its
/// requests; clients are independent (data of one that does not take it never holds up another:
/// each has its own output, its own ring in the reorder buffer and a reserve of tags). Client
/// RdPayload has the largest ring.
/// 64 reads at once, one tag and one TLP each, of at most min(cfg maximum read request, 512 bytes),
/// never across 4 KiB. Completions of different tags may come in any order, those of one tag in
/// order, split anywhere at the read completion boundary. An error status, a poisoned completion, a
/// wrong length or a time-out (completion_timeout_i) makes the whole request err; a tag whose
/// read timed out is not used again until its late completions can be told apart (dma_read_tags;
/// tags are 8 bits: extended tags). Without cfg_ext_tag_i: tags of 5 bits, 32 reads at once. While
/// cfg_cpl_timeout_disable_i is 1 no read times out.
///
/// DMA writes: client i sends dma_wr_t beats; wr_done_o[i] pulses when the last TLP of a request
/// has been accepted by dma_req.
/// Writes are cut at the maximum payload and at 4 KiB. Reads and writes leave in one stream; a read
/// that a client asks for after wr_done of a write leaves behind that write.
/// While dma_req_np_hold_i is 1 no read begins on dma_req, and writes pass those that wait (2.4.1);
/// at most the one read that had been offered by then is still to be accepted. A read that waits
/// here does not time out.
/// Nothing begins on dma_req while cfg_bus_master_i or enable_i is 0. While enable_i is 0, no
/// completion passes what had begun: when the write that switched us off has been read back,
/// nothing of ours touches memory. pending_o: a read waits for its completions.
/// reads_busy: or its tag is not free yet.
module pcie_edge #(
    parameter int unsigned RdClients = 5,
    parameter int unsigned WrClients = 5,
    parameter int unsigned RdPayload = RdClients - 1
) (
    input  wire logic                     clk_i,
    input  wire logic                     rst_ni,
    input  wire logic                     clk_open_i,
    input  wire logic                     moved_i,
    output logic                          awake_o,
    input  wire logic [63:0]              cycles_i,
    output rnic_pkg::rest_t               rest_o,
    // Limits, as the root complex configured them: 128 << value bytes.
    input  wire logic [2:0]               cfg_max_payload_i,
    input  wire logic [2:0]               cfg_max_read_req_i,
    input  wire logic                     cfg_bus_master_i,
    // Extended Tag Field Enable
    input  wire logic                     cfg_ext_tag_i,
    // The link has no credits for non-posted requests
    input  wire logic                     dma_req_np_hold_i,
    // Completion Timeout Disable
    input  wire logic                     cfg_cpl_timeout_disable_i,
    // The driver has switched us on
    input  wire logic                     enable_i,
    // Cycles that a read may stay without its completion
    input  wire logic [29:0]              completion_timeout_i,
    // TLPs
    input  wire logic                     host_req_valid_i,
    output logic                          host_req_ready_o,
    input  wire rnic_pkg::host_req_hdr_t  host_req_hdr_i,
    input  wire logic [511:0]             host_req_data_i,
    input  wire logic                     host_req_last_i,
    output logic                          host_cpl_valid_o,
    input  wire logic                     host_cpl_ready_i,
    output rnic_pkg::host_cpl_hdr_t       host_cpl_hdr_o,
    output logic [511:0]                  host_cpl_data_o,
    output logic                          host_cpl_last_o,
    output logic                          dma_req_valid_o,
    input  wire logic                     dma_req_ready_i,
    output rnic_pkg::dma_req_hdr_t        dma_req_hdr_o,
    output logic [511:0]                  dma_req_data_o,
    output logic                          dma_req_last_o,
    input  wire logic                     dma_cpl_valid_i,
    output logic                          dma_cpl_ready_o,
    input  wire rnic_pkg::dma_cpl_hdr_t   dma_cpl_hdr_i,
    input  wire logic [511:0]             dma_cpl_data_i,
    input  wire logic                     dma_cpl_last_i,
    // Register page; reg_rsp_valid_i answers each read, in order, at any time after it was
    // accepted.
    output logic                          reg_req_valid_o,
    input  wire logic                     reg_req_ready_i,
    output rnic_pkg::reg_req_t            reg_req_data_o,
    input  wire logic                     reg_rsp_valid_i,
    input  wire logic [63:0]              reg_rsp_data_i,
    // UAR writes
    output logic                          uar_req_valid_o,
    input  wire logic                     uar_req_ready_i,
    output rnic_pkg::uar_req_t            uar_req_data_o,
    // DMA read clients (dma_rd_req_t, dma_rd_rsp_t)
    input  wire logic [RdClients-1:0]     rd_req_valid_i,
    output logic [RdClients-1:0]          rd_req_ready_o,
    input  wire logic [RdClients*rnic_pkg::DmaRdReqBits-1:0] rd_req_data_i,
    output logic [RdClients-1:0]          rd_rsp_valid_o,
    input  wire logic [RdClients-1:0]     rd_rsp_ready_i,
    output logic [RdClients*rnic_pkg::DmaRdRspBits-1:0] rd_rsp_data_o,
    // DMA write clients (dma_wr_t)
    input  wire logic [WrClients-1:0]     wr_valid_i,
    output logic [WrClients-1:0]          wr_ready_o,
    input  wire logic [WrClients*rnic_pkg::DmaWrBits-1:0] wr_data_i,
    output logic [WrClients-1:0]          wr_done_o,
    output logic                          pending_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  // ---- Limits: 128 << value bytes, values above 5 are reserved and taken as 0 -------------------
  logic [6:0] wr_lines_q, rd_lines_q;
  always_ff @(posedge clk_i) begin
    wr_lines_q <= 7'd2;
    rd_lines_q <= 7'd2;
    if (cfg_max_payload_i <= 3'd5) wr_lines_q <= 7'd2 << cfg_max_payload_i;
    if (cfg_max_read_req_i <= 3'd2) rd_lines_q <= 7'd2 << cfg_max_read_req_i;
    if (cfg_max_read_req_i > 3'd2 && cfg_max_read_req_i <= 3'd5) rd_lines_q <= 7'd8;
    if (!rst_ni) begin
      wr_lines_q <= 7'd2;
      rd_lines_q <= 7'd2;
    end
  end

  logic order_valid, order_ready, order_zeros, unsupported, hold;
  assign hold = !enable_i && dma_req_valid_o;
  logic wr_tlp_valid, wr_tlp_ready, wr_tlp_last, rd_tlp_valid, rd_tlp_ready;
  logic wr_sent, rd_sent, read_error, read_timeout;
  // ---- Rooms: reads, writes and what merges both, host requests ---------------------------------
  logic read_awake, write_awake, host_awake;
  assign awake_o = read_awake || write_awake || host_awake;
  logic read_clk;
  room_clock u_read_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(read_clk), .awake_o(read_awake),
      .stir_i(|{rd_req_valid_i, rd_rsp_valid_o, rd_tlp_valid, rd_sent, dma_cpl_valid_i, rest_o.busy,
          read_error, read_timeout, moved_i})
  );

  logic write_clk;
  room_clock u_write_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(write_clk), .awake_o(write_awake),
      .stir_i(|{wr_valid_i, wr_tlp_valid, rd_tlp_valid, dma_req_valid_o, wr_done_o, moved_i})
  );

  logic host_clk;
  room_clock u_host_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(host_clk), .awake_o(host_awake),
      .stir_i(|{host_req_valid_i, order_valid, hold, reg_req_valid_o, uar_req_valid_o,
          reg_rsp_valid_i, host_cpl_valid_o, unsupported, moved_i})
  );

  // ---- Host requests ----------------------------------------------------------------------------
  rnic_pkg::host_cpl_hdr_t order_hdr;

  pcie_rx u_rx (
      .clk_i(host_clk),
      .rst_ni,
      .host_req_valid_i,
      .host_req_ready_o,
      .host_req_hdr_i,
      .host_req_data_i,
      .host_req_last_i,
      .reg_req_valid_o,
      .reg_req_ready_i,
      .reg_req_data_o,
      .uar_req_valid_o,
      .uar_req_ready_i,
      .uar_req_data_o,
      .order_valid_o(order_valid),
      .order_ready_i(order_ready),
      .order_zeros_o(order_zeros),
      .order_hdr_o  (order_hdr),
      .unsupported_o(unsupported)
  );

  pcie_completer u_completer (
      .clk_i(host_clk),
      .rst_ni,
      .order_valid_i(order_valid),
      .order_ready_o(order_ready),
      .order_zeros_i(order_zeros),
      .order_hdr_i  (order_hdr),
      .reg_rsp_valid_i,
      .reg_rsp_data_i,
      .hold_i       (hold),
      .host_cpl_valid_o,
      .host_cpl_ready_i,
      .host_cpl_hdr_o,
      .host_cpl_data_o,
      .host_cpl_last_o
  );

  // ---- DMA --------------------------------------------------------------------------------------
  rnic_pkg::dma_req_hdr_t wr_tlp_hdr, rd_tlp_hdr;
  logic [511:0] wr_tlp_data;
  logic [WrClients-1:0] wr_tlp_done;
  logic [9:0] rd_sent_tag;

  dma_write #(
      .Clients(WrClients)
  ) u_write (
      .clk_i(write_clk),
      .rst_ni,
      .max_lines_i(wr_lines_q),
      .wr_valid_i,
      .wr_ready_o,
      .wr_data_i,
      .tlp_valid_o(wr_tlp_valid),
      .tlp_ready_i(wr_tlp_ready),
      .tlp_hdr_o  (wr_tlp_hdr),
      .tlp_data_o (wr_tlp_data),
      .tlp_last_o (wr_tlp_last),
      .tlp_done_o (wr_tlp_done)
  );

  dma_read #(
      .Clients      (RdClients),
      .Payload      (RdPayload)
  ) u_read (
      .clk_i(read_clk),
      .rst_ni,
      .max_lines_i    (rd_lines_q),
      .cycles_i,
      .timeout_i      (completion_timeout_i),
      .timeout_disable_i(cfg_cpl_timeout_disable_i),
      .ext_tag_i      (cfg_ext_tag_i),
      .rd_req_valid_i,
      .rd_req_ready_o,
      .rd_req_data_i,
      .rd_rsp_valid_o,
      .rd_rsp_ready_i,
      .rd_rsp_data_o,
      .tlp_valid_o    (rd_tlp_valid),
      .tlp_ready_i    (rd_tlp_ready),
      .tlp_hdr_o      (rd_tlp_hdr),
      .sent_i         (rd_sent),
      .sent_slot_i    (rd_sent_tag[5:0]),
      .dma_cpl_valid_i,
      .dma_cpl_ready_o,
      .dma_cpl_hdr_i,
      .dma_cpl_data_i,
      .dma_cpl_last_i,
      .pending_o,
      .rest_o,
      .event_error_o  (read_error),
      .event_timeout_o(read_timeout)
  );

  dma_req_mux #(
      .WrClients(WrClients)
  ) u_mux (
      .clk_i(write_clk),
      .rst_ni,
      .open_i       (cfg_bus_master_i && enable_i),
      .np_hold_i    (dma_req_np_hold_i),
      .wr_valid_i   (wr_tlp_valid),
      .wr_ready_o   (wr_tlp_ready),
      .wr_hdr_i     (wr_tlp_hdr),
      .wr_data_i    (wr_tlp_data),
      .wr_last_i    (wr_tlp_last),
      .wr_done_i    (wr_tlp_done),
      .rd_valid_i   (rd_tlp_valid),
      .rd_ready_o   (rd_tlp_ready),
      .rd_hdr_i     (rd_tlp_hdr),
      .dma_req_valid_o,
      .dma_req_ready_i,
      .dma_req_hdr_o,
      .dma_req_data_o,
      .dma_req_last_o,
      .wr_done_o,
      .wr_sent_o    (wr_sent),
      .rd_sent_o    (rd_sent),
      .rd_sent_tag_o(rd_sent_tag)
  );

  logic [3:0] unused_tag;
  assign unused_tag = rd_sent_tag[9:6];

  always_ff @(posedge clk_i) begin
    event_o                                   <= '0;
    event_o[rnic_pkg::CounterDmaReads]        <= rd_sent;
    event_o[rnic_pkg::CounterDmaWrites]       <= wr_sent;
    event_o[rnic_pkg::CounterDmaReadErrors]   <= read_error;
    event_o[rnic_pkg::CounterDmaReadTimeouts] <= read_timeout;
    event_o[rnic_pkg::CounterHostUnsupported] <= unsupported;
    if (!rst_ni) event_o <= '0;
  end
endmodule

`default_nettype wire
