`default_nettype none
`include "assert.svh"

/// The page of a checked request: TLB, lines under way, prefetch. Three stages without stalls:
///   c  a request, else a probe of the prefetcher: read the tags
///   d  compare with the tags and with the lines under way; read the line of a hit, allocate a miss
///   e  the answer, or what it waits for
module xlate_lookup #(
    parameter int unsigned GenBits = 8,
    parameter int unsigned PageBits = 37,
    parameter int unsigned Prefetches = 4,
    parameter int unsigned Entries = 16,
    localparam int unsigned LineShift = GenBits + rnic_pkg::MptIndexBits,
    localparam int unsigned KeyBits = PageBits - 3 + LineShift,
    localparam int unsigned IdBits = $clog2(Entries)
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic                  flush_i,
    input  wire logic                  c_valid_i,
    input  wire logic                  c_port_i,
    input  wire logic                  c_epoch_i,
    input  wire logic [3:0]            c_status_i,
    input  wire logic [KeyBits-1:0]    c_key_i,
    input  wire logic [2:0]            c_word_i,
    input  wire logic [30:0]           c_offset_i,
    input  wire logic [31:0]           c_contiguous_i,
    input  wire logic                  c_more_i,
    input  wire logic [58:0]           c_list_i,      // As in xlate_check
    output logic                       e_valid_o,
    output logic                       e_port_o,
    output logic                       e_wait_o,      // The line is under way; addr is the offset
    output logic [IdBits-1:0]          e_id_o,
    output logic [2:0]                 e_word_o,
    output rnic_pkg::xlate_rsp_t       e_rsp_o,
    output logic [1:0]                 settled_o,     // A request needs no line of its own
    output logic [1:0]                 freed_o,       // A line of this port has been given up
    // Waiting answers
    output logic [Entries-1:0]         done_o,
    input  wire logic [1:0]            want_i,
    input  wire logic [2*IdBits-1:0]   want_id_i,
    output logic [1:0]                 take_o,
    output logic [511:0]               line_o,
    output logic                       line_err_o,
    // Prefetches that begin and end, for the drain
    output logic                       begin_o,
    output logic                       begin_epoch_o,
    output logic [2:0]                 end_o,
    output logic [2:0]                 end_epoch_o,
    output logic                       event_miss_o,      // Of the host's lines
    output logic                       event_prefetch_o,
    input  wire logic                  list_wr_valid_i,
    input  wire logic [9:0]            list_wr_line_i,
    input  wire logic [511:0]          list_wr_data_i,
    output logic                       rd_req_valid_o,
    input  wire logic                  rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t      rd_req_data_o,
    input  wire logic                  rd_rsp_valid_i,
    output logic                       rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t rd_rsp_data_i
);
  localparam int unsigned PrefetchBits = $clog2(Prefetches + 1);

  // ---- Stage d: compare -------------------------------------------------------------------------
  logic d_valid_q, d_probe_q, d_port_q, d_epoch_q, d_more_q;
  logic [3:0] d_status_q;
  logic [KeyBits-1:0] d_key_q, c_key;
  logic [2:0] d_word_q;
  logic [30:0] d_offset_q;
  logic [31:0] d_contiguous_q;
  logic [58:0] d_list_q;
  logic [57:0] d_line;
  logic hit, match, alloc, d_request, d_ok, d_wait, probe_drop, prefetch_room;
  logic probe_valid, probe_take, probe_epoch, probe_end, arrived, arrived_epoch;
  logic [KeyBits-1:0] probe_key;
  logic [58:0] probe_list;
  logic [PrefetchBits-1:0] prefetches_q;
  logic [IdBits-1:0] id;
  logic [2:0] freed;

  assign probe_take = probe_valid && !c_valid_i;
  assign c_key      = c_valid_i ? c_key_i : probe_key;

  always_ff @(posedge clk_i) begin
    d_valid_q      <= c_valid_i || probe_take;
    d_probe_q      <= !c_valid_i;
    d_port_q       <= c_port_i;
    d_epoch_q      <= c_valid_i ? c_epoch_i : probe_epoch;
    d_key_q        <= c_key;
    d_list_q       <= c_valid_i ? c_list_i : probe_list;
    d_status_q     <= c_status_i;
    d_word_q       <= c_word_i;
    d_offset_q     <= c_offset_i;
    d_contiguous_q <= c_contiguous_i;
    d_more_q       <= c_more_i;
    prefetches_q   <= prefetches_q + {{PrefetchBits - 1{1'b0}}, alloc && d_probe_q} -
        {{PrefetchBits - 1{1'b0}}, freed[2]};
    if (!rst_ni) begin
      d_valid_q    <= 1'b0;
      prefetches_q <= '0;
    end
  end

  assign d_request     = d_valid_q && !d_probe_q;
  assign d_ok          = d_request && d_status_q == rnic_pkg::XlateStatusOk;
  assign d_wait        = d_ok && !hit;
  assign d_line        = d_list_q[57:0] + {{61 - PageBits{1'b0}}, d_key_q[KeyBits-1:LineShift]};
  assign prefetch_room = prefetches_q != PrefetchBits'(Prefetches);
  assign alloc         = !hit && !match && (d_ok || (d_valid_q && d_probe_q && prefetch_room));
  assign probe_drop    = d_valid_q && d_probe_q && !alloc;

  assign settled_o        = {d_request && d_port_q && !alloc, d_request && !d_port_q && !alloc};
  assign freed_o          = freed[1:0];
  assign event_miss_o     = alloc && !d_probe_q && !d_list_q[58];
  assign event_prefetch_o = alloc && d_probe_q && !d_list_q[58];
  assign begin_epoch_o    = d_epoch_q;
  assign end_o            = {probe_end, probe_drop, arrived};
  assign end_epoch_o      = {probe_epoch, d_epoch_q, arrived_epoch};

  xlate_prefetch #(
      .KeyBits  (KeyBits),
      .LineShift(LineShift)
  ) u_prefetch (
      .clk_i,
      .rst_ni,
      .use_i        (d_ok && d_more_q),
      .use_port_i   (d_port_q),
      .use_epoch_i  (d_epoch_q),
      .use_key_i    (d_key_q),
      .use_list_i   (d_list_q),
      .begin_o,
      .dropped_o    (probe_end),
      .flush_i,
      .probe_valid_o(probe_valid),
      .probe_ready_i(probe_take),
      .probe_key_o  (probe_key),
      .probe_list_o (probe_list),
      .probe_epoch_o(probe_epoch)
  );

  logic fill;
  logic [KeyBits-1:0] fill_key;
  logic [511:0] fill_line, hit_line;

  xlate_tlb #(
      .KeyBits  (KeyBits),
      .IndexBits(rnic_pkg::MptIndexBits),
      .GenBits  (GenBits)
  ) u_tlb (
      .clk_i,
      .rst_ni,
      .key_i      (c_key),
      .hit_o      (hit),
      .line_o     (hit_line),
      .fill_i     (fill),
      .fill_key_i (fill_key),
      .fill_line_i(fill_line),
      .flush_i
  );

  xlate_miss #(
      .KeyBits(KeyBits),
      .Entries(Entries)
  ) u_miss (
      .clk_i,
      .rst_ni,
      .lookup_i       (d_valid_q),
      .key_i          (d_key_q),
      .match_o        (match),
      .id_o           (id),
      .alloc_i        (alloc),
      .alloc_owner_i  (d_probe_q ? 2'd2 : {1'b0, d_port_q}),
      .alloc_epoch_i  (d_epoch_q),
      .alloc_line_i   (d_line),
      .alloc_on_chip_i(d_list_q[58]),
      .reference_i    (d_wait),
      .freed_o        (freed),
      .arrived_o      (arrived),
      .arrived_epoch_o(arrived_epoch),
      .done_o,
      .want_i,
      .want_id_i,
      .grant_o        (take_o),
      .line_o,
      .line_err_o,
      .flush_i,
      .fill_o         (fill),
      .fill_key_o     (fill_key),
      .fill_line_o    (fill_line),
      .list_wr_valid_i,
      .list_wr_line_i,
      .list_wr_data_i,
      .rd_req_valid_o,
      .rd_req_ready_i,
      .rd_req_data_o,
      .rd_rsp_valid_i,
      .rd_rsp_ready_o,
      .rd_rsp_data_i
  );

  // ---- Stage e: answer --------------------------------------------------------------------------
  logic [30:0] e_offset_q;
  rnic_pkg::xlate_rsp_t e_rsp_q;

  always_ff @(posedge clk_i) begin
    e_valid_o          <= d_request;
    e_port_o           <= d_port_q;
    e_wait_o           <= d_wait;
    e_id_o             <= id;
    e_word_o           <= d_word_q;
    e_offset_q         <= d_offset_q;
    e_rsp_q.status     <= d_status_q;
    e_rsp_q.addr       <= '0;
    e_rsp_q.contiguous <= d_contiguous_q;
    e_rsp_q.epoch      <= d_epoch_q;
    if (!rst_ni) e_valid_o <= 1'b0;
  end

  // Pages are aligned to their size: the offset takes the place of zeros.
  always_comb begin
    e_rsp_o      = e_rsp_q;
    e_rsp_o.addr = {33'd0, e_offset_q};
    if (!e_wait_o) e_rsp_o.addr = e_rsp_o.addr | hit_line[{e_word_o, 6'd0}+:64];
  end

  logic unused_addr;
  assign unused_addr = &{1'b0, e_rsp_q.addr};
endmodule

`default_nettype wire
