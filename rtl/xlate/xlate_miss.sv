`default_nettype none
`include "assert.svh"

/// Lines of page lists on their way from host memory, or from the lines on chip: up to Entries,
/// each with the look-ups that wait for it. Those from one do not wait for those from the other.
///
/// An entry is allocated by a miss (owner 0 or 1: the port) or by a prefetch (owner 2). A look-up
/// that waits holds a reference to it; the line is kept here until the last of them has taken it,
/// whatever becomes of it in the TLB. Entries are free again when their line has come and nobody
/// waits. The owners see to it that there is a free entry.
/// A line that fails, or that was asked for before a flush, does not go to the TLB.
module xlate_miss #(
    parameter int unsigned KeyBits = 56,
    parameter int unsigned Entries = 16,
    localparam int unsigned IdBits = $clog2(Entries)
) (
    input  wire logic                 clk_i,
    input  wire logic                 rst_ni,
    // Look-up, allocation and reference in one cycle
    input  wire logic                 lookup_i,
    input  wire logic [KeyBits-1:0]   key_i,
    output logic                      match_o,
    output logic [IdBits-1:0]         id_o,          // Of the match, else of the allocation
    input  wire logic                 alloc_i,
    input  wire logic [1:0]           alloc_owner_i,
    input  wire logic                 alloc_epoch_i,
    input  wire logic [57:0]          alloc_line_i,  // DMA address in lines, or line on chip
    input  wire logic                 alloc_on_chip_i,
    input  wire logic                 reference_i,   // A look-up begins to wait for id_o
    output logic [2:0]                freed_o,       // An entry of this owner is free again
    output logic                      arrived_o,     // The line of a prefetch has come
    output logic                      arrived_epoch_o,
    // Waiting look-ups: the line is there a cycle after the grant
    output logic [Entries-1:0]        done_o,
    input  wire logic [1:0]           want_i,
    input  wire logic [2*IdBits-1:0]  want_id_i,
    output logic [1:0]                grant_o,
    output logic [511:0]              line_o,
    output logic                      line_err_o,
    input  wire logic                 flush_i,
    output logic                      fill_o,
    output logic [KeyBits-1:0]        fill_key_o,
    output logic [511:0]              fill_line_o,
    input  wire logic                 list_wr_valid_i,
    input  wire logic [9:0]           list_wr_line_i,
    input  wire logic [511:0]         list_wr_data_i,
    output logic                      rd_req_valid_o,
    input  wire logic                 rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t     rd_req_data_o,
    input  wire logic                 rd_rsp_valid_i,
    output logic                      rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t rd_rsp_data_i
);
  localparam int unsigned CountBits = IdBits + 2;

  logic [Entries-1:0] valid_q, done_q, err_q, stale_q, epoch_q, hits, empty, free, release_id, idle;
  logic [1:0] owner_q[Entries];
  logic [KeyBits-1:0] key_q[Entries];
  logic [5:0] refs_q[Entries];
  logic [IdBits-1:0] match_id, free_id, release_at, take_id, arrive_id, order_id, list_id;
  logic arrive, read_arrives, order_ready, order_valid, request_ready, list_valid;
  logic [511:0] arrive_data, list_data;
  logic [57:0] request_line;
  logic [CountBits-1:0] request_count, order_count;

  // ---- Match and allocation ---------------------------------------------------------------------
  assign empty = ~valid_q;
  assign free  = empty & (~empty + Entries'(1));
  always_comb begin
    match_id = '0;
    free_id  = '0;
    for (int unsigned i = 0; i < Entries; i++) begin
      hits[i] = lookup_i && valid_q[i] && !stale_q[i] && key_q[i] == key_i;
      if (hits[i]) match_id = match_id | IdBits'(i);
      if (free[i]) free_id = free_id | IdBits'(i);
    end
  end
  assign match_o = hits != '0;
  assign id_o    = match_o ? match_id : free_id;

  // ---- Release: one entry a cycle, not one that is just matched ---------------------------------
  always_comb begin
    release_at = '0;
    for (int unsigned i = 0; i < Entries; i++) begin
      idle[i] = valid_q[i] && done_q[i] && refs_q[i] == '0 && !hits[i];
    end
    release_id = idle & (~idle + Entries'(1));
    for (int unsigned i = 0; i < Entries; i++) begin
      if (release_id[i]) release_at = release_at | IdBits'(i);
    end
    freed_o = '0;
    if (release_id != '0) freed_o[owner_q[release_at]] = 1'b1;
  end

  // ---- Waiting look-ups -------------------------------------------------------------------------
  rr_arbiter #(
      .N(2)
  ) u_take (
      .clk_i,
      .rst_ni,
      .request_i(want_i),
      .advance_i(1'b1),
      .grant_o
  );
  assign take_id = grant_o[1] ? want_id_i[IdBits+:IdBits] : want_id_i[0+:IdBits];
  assign done_o  = done_q;

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Entries; i++) begin
      if (alloc_i && free[i]) begin
        valid_q[i] <= 1'b1;
        done_q[i]  <= 1'b0;
        err_q[i]   <= 1'b0;
        stale_q[i] <= flush_i;
        epoch_q[i] <= alloc_epoch_i;
        owner_q[i] <= alloc_owner_i;
        key_q[i]   <= key_i;
        refs_q[i]  <= {5'd0, reference_i};
      end else begin
        refs_q[i] <= refs_q[i] + {5'd0, reference_i && hits[i]} -
            {5'd0, grant_o != '0 && take_id == IdBits'(i)};
        if (flush_i) stale_q[i] <= 1'b1;
      end
      if (release_id[i]) valid_q[i] <= 1'b0;
      if (arrive && arrive_id == IdBits'(i)) begin
        done_q[i] <= 1'b1;
        err_q[i]  <= read_arrives && rd_rsp_data_i.err;
      end
    end
    line_err_o <= err_q[take_id];
    if (!rst_ni) begin
      valid_q <= '0;
      done_q  <= '0;
    end
  end

  ram_1r1w #(
      .Width(512),
      .Depth(Entries)
  ) u_lines (
      .clk_i,
      .wr_en_i  (arrive),
      .wr_addr_i(arrive_id),
      .wr_data_i(arrive_data),
      .rd_en_i  (grant_o != '0),
      .rd_addr_i(take_id),
      .rd_data_o(line_o)
  );

  // ---- Reads of lines; their data comes in order ------------------------------------------------
  stream_fifo #(
      .Width(58),
      .Depth(Entries)
  ) u_requests (
      .clk_i,
      .rst_ni,
      .in_valid_i (alloc_i && !alloc_on_chip_i),
      .in_ready_o (request_ready),
      .in_data_i  (alloc_line_i),
      .out_valid_o(rd_req_valid_o),
      .out_ready_i(rd_req_ready_i),
      .out_data_o (request_line),
      .count_o    (request_count)
  );
  assign rd_req_data_o.addr   = {request_line, 6'd0};
  assign rd_req_data_o.length = 13'd64;

  stream_fifo #(
      .Width(IdBits),
      .Depth(Entries)
  ) u_order (
      .clk_i,
      .rst_ni,
      .in_valid_i (alloc_i && !alloc_on_chip_i),
      .in_ready_o (order_ready),
      .in_data_i  (free_id),
      .out_valid_o(order_valid),
      .out_ready_i(rd_rsp_valid_i),
      .out_data_o (order_id),
      .count_o    (order_count)
  );

  xlate_list #(
      .Entries(Entries)
  ) u_list (
      .clk_i,
      .rst_ni,
      .wr_valid_i (list_wr_valid_i),
      .wr_line_i  (list_wr_line_i),
      .wr_data_i  (list_wr_data_i),
      .req_valid_i(alloc_i && alloc_on_chip_i),
      .req_id_i   (free_id),
      .req_line_i (alloc_line_i[9:0]),
      .rsp_valid_o(list_valid),
      .rsp_ready_i(!read_arrives),
      .rsp_id_o   (list_id),
      .rsp_data_o (list_data)
  );

  // ---- Arrival: a line a cycle, those of the host first -----------------------------------------
  assign rd_rsp_ready_o  = order_valid;
  assign read_arrives    = rd_rsp_valid_i && order_valid;
  assign arrive          = read_arrives || list_valid;
  assign arrive_id       = read_arrives ? order_id : list_id;
  assign arrive_data     = read_arrives ? rd_rsp_data_i.data : list_data;
  assign arrived_o       = arrive && owner_q[arrive_id] == 2'd2;
  assign arrived_epoch_o = epoch_q[arrive_id];
  assign fill_o          = arrive && !(read_arrives && rd_rsp_data_i.err) && !stale_q[arrive_id] &&
      !flush_i;
  assign fill_key_o      = key_q[arrive_id];
  assign fill_line_o     = arrive_data;

  logic unused_rsp;
  assign unused_rsp = &{1'b0, rd_rsp_data_i.offset, rd_rsp_data_i.bytes, rd_rsp_data_i.last};

  `ASSERT(EntryForEach, request_count <= CountBits'(Entries) && order_count <= CountBits'(Entries))
  `ASSERT(HasFreeEntry, !alloc_i || (empty != '0 && request_ready && order_ready))
  `ASSERT(OneMatch, $onehot0(hits))
  `ASSERT(NoAllocOnMatch, !(alloc_i && match_o))
  `ASSERT(LineIsOneBeat, !rd_rsp_valid_i || rd_rsp_data_i.last)
endmodule

`default_nettype wire
