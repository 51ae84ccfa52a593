`default_nettype none
`include "assert.svh"

/// DMA read engine: requests of several clients in, read TLPs out, completions in, data out in the
/// order of each client's requests.
///
/// The reorder buffer is a RAM of Lines 64-byte lines; each client has a ring in it, client Payload
/// the largest. A request's lines are reserved when its TLPs leave and given back as its data is
/// delivered. A request is delivered when all of it is there, since an error must show on its first
/// beat.
module dma_read #(
    parameter int unsigned Clients = 5,
    parameter int unsigned Payload = Clients - 1,
    parameter int unsigned Lines = 1024
) (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic [6:0]             max_lines_i,
    input  wire logic [63:0]            cycles_i,
    input  wire logic [29:0]            timeout_i,    // In cycles
    input  wire logic                   timeout_disable_i,
    input  wire logic                   ext_tag_i,
    input  wire logic [Clients-1:0]     rd_req_valid_i,
    output logic [Clients-1:0]          rd_req_ready_o,
    input  wire logic [Clients*rnic_pkg::DmaRdReqBits-1:0] rd_req_data_i,
    output logic [Clients-1:0]          rd_rsp_valid_o,
    input  wire logic [Clients-1:0]     rd_rsp_ready_i,
    output logic [Clients*rnic_pkg::DmaRdRspBits-1:0] rd_rsp_data_o,
    output logic                        tlp_valid_o,
    input  wire logic                   tlp_ready_i,
    output rnic_pkg::dma_req_hdr_t      tlp_hdr_o,
    input  wire logic                   sent_i,       // The read with this tag has left
    input  wire logic [5:0]             sent_slot_i,
    input  wire logic                   dma_cpl_valid_i,
    output logic                        dma_cpl_ready_o,
    input  wire rnic_pkg::dma_cpl_hdr_t dma_cpl_hdr_i,
    input  wire logic [511:0]           dma_cpl_data_i,
    input  wire logic                   dma_cpl_last_i,
    // A read has left and is not answered
    output logic                        pending_o,
    // Time-outs; busy: tags move by themselves
    output rnic_pkg::rest_t             rest_o,
    output logic                        event_error_o,
    output logic                        event_timeout_o
);
  localparam int unsigned ClientBits = Clients > 1 ? $clog2(Clients) : 1;
  localparam int unsigned LineBits = $clog2(Lines);
  localparam int unsigned Requests = 32;
  localparam int unsigned RidBits = $clog2(Requests);
  // The longest request is 65 lines; with a slot of 8 lines to spare its last TLP never waits for
  // its own data to leave.
  localparam int unsigned SmallRing = 80;
  localparam int unsigned LargeRing = Lines - SmallRing * (Clients - 1);

  if (4 * Clients > 32) begin : gen_bad_clients
    $fatal(1, "dma_read: fewer than 4 tags for each client, when only 32 may be used");
  end
  if (LargeRing < SmallRing || LargeRing > Lines) begin : gen_bad_lines
    $fatal(1, "dma_read: too few lines for so many clients");
  end

  // Rings in the order of the clients.
  function automatic logic [Clients*LineBits-1:0] ring_edges(input logic upper);
    int unsigned at;
    at         = 0;
    ring_edges = '0;
    for (int unsigned i = 0; i < Clients; i++) begin
      if (!upper) ring_edges[i*LineBits+:LineBits] = LineBits'(at);
      at = at + (i == Payload ? LargeRing : SmallRing);
      if (upper) ring_edges[i*LineBits+:LineBits] = LineBits'(at - 1);
    end
  endfunction
  localparam logic [Clients*LineBits-1:0] RingBase = ring_edges(1'b0);
  localparam logic [Clients*LineBits-1:0] RingLast = ring_edges(1'b1);

  logic tag_valid, tag_ready, issue_first, issue_last;
  logic [7:0] tag, issue_tag, finish_tag, late_tag;
  logic [6:0] parked;
  logic [Clients-1:0] can_begin, issue, finish, want, grant;
  logic [ClientBits-1:0] issue_client;
  logic [RidBits-1:0] issue_rid, finish_rid;
  logic [LineBits-1:0] issue_line, wr_line, rd_line;
  logic [63:0] outstanding;
  logic [6:0] issue_lower;
  logic [12:0] issue_left;
  logic [9:0] issue_bytes;
  logic finish_tag_valid, finish_dirty, finish_err, late, expire_valid, expire_ready, line_wr;
  logic [5:0] expire_slot;
  logic [511:0] wr_data, rd_data;
  logic [Clients*LineBits-1:0] lines;
  logic [Clients*7-1:0] freed;
  logic [6:0] freed_lines;

  dma_read_issue #(
      .Clients (Clients),
      .Requests(Requests),
      .LineBits(LineBits),
      .RingBase(RingBase),
      .RingLast(RingLast)
  ) u_issue (
      .clk_i,
      .rst_ni,
      .max_lines_i,
      .rd_req_valid_i,
      .rd_req_ready_o,
      .rd_req_data_i,
      .tag_valid_i   (tag_valid),
      .tag_ready_o   (tag_ready),
      .tag_i         (tag),
      .ext_tag_i,
      .parked_i      (parked),
      .can_begin_i   (can_begin),
      .issue_o       (issue),
      .issue_first_o (issue_first),
      .issue_last_o  (issue_last),
      .issue_tag_o   (issue_tag),
      .issue_client_o(issue_client),
      .issue_rid_o   (issue_rid),
      .issue_line_o  (issue_line),
      .issue_lower_o (issue_lower),
      .issue_left_o  (issue_left),
      .issue_bytes_o (issue_bytes),
      .finish_i      (finish),
      .freed_i       (grant),
      .freed_lines_i (freed_lines),
      .tlp_valid_o,
      .tlp_ready_i,
      .tlp_hdr_o
  );

  dma_read_tags u_tags (
      .clk_i,
      .rst_ni,
      .cycles_i,
      .timeout_i,
      .timeout_disable_i,
      .ext_tag_i,
      .tag_valid_o   (tag_valid),
      .tag_ready_i   (tag_ready),
      .tag_o         (tag),
      .sent_i,
      .sent_slot_i,
      .rest_o,
      .outstanding_o (outstanding),
      .finish_i      (finish_tag_valid),
      .finish_tag_i  (finish_tag),
      .finish_dirty_i(finish_dirty),
      .late_i        (late),
      .late_tag_i    (late_tag),
      .expire_valid_o(expire_valid),
      .expire_ready_i(expire_ready),
      .expire_slot_o (expire_slot),
      .parked_o      (parked)
  );

  assign pending_o = outstanding != '0;

  dma_read_complete #(
      .Clients (Clients),
      .Requests(Requests),
      .LineBits(LineBits),
      .RingBase(RingBase),
      .RingLast(RingLast)
  ) u_complete (
      .clk_i,
      .rst_ni,
      .dma_cpl_valid_i,
      .dma_cpl_ready_o,
      .dma_cpl_hdr_i,
      .dma_cpl_data_i,
      .dma_cpl_last_i,
      .issue_i           (issue != '0),
      .issue_tag_i       (issue_tag),
      .issue_client_i    (issue_client),
      .issue_rid_i       (issue_rid),
      .issue_line_i      (issue_line),
      .issue_lower_i     (issue_lower),
      .issue_bytes_i     (issue_bytes),
      .outstanding_i     (outstanding),
      .finish_tag_valid_o(finish_tag_valid),
      .finish_tag_o      (finish_tag),
      .finish_dirty_o    (finish_dirty),
      .late_o            (late),
      .late_tag_o        (late_tag),
      .expire_valid_i    (expire_valid),
      .expire_ready_o    (expire_ready),
      .expire_slot_i     (expire_slot),
      .line_wr_o         (line_wr),
      .line_addr_o       (wr_line),
      .line_data_o       (wr_data),
      .finish_o          (finish),
      .finish_rid_o      (finish_rid),
      .finish_err_o      (finish_err),
      .event_error_o,
      .event_timeout_o
  );

  // ---- Reorder buffer: one line in, one line out in a cycle -------------------------------------
  ram_1r1w #(
      .Width(512),
      .Depth(Lines)
  ) u_lines (
      .clk_i,
      .wr_en_i  (line_wr),
      .wr_addr_i(wr_line),
      .wr_data_i(wr_data),
      .rd_en_i  (grant != '0),
      .rd_addr_i(rd_line),
      .rd_data_o(rd_data)
  );

  rr_arbiter #(
      .N(Clients)
  ) u_deliver (
      .clk_i,
      .rst_ni,
      .request_i(want),
      .advance_i(1'b1),
      .grant_o  (grant)
  );

  always_comb begin
    rd_line     = '0;
    freed_lines = '0;
    for (int unsigned i = 0; i < Clients; i++) begin
      if (grant[i]) begin
        rd_line     = rd_line | lines[i*LineBits+:LineBits];
        freed_lines = freed_lines | freed[i*7+:7];
      end
    end
  end

  for (genvar i = 0; i < Clients; i++) begin : gen_client
    dma_read_queue #(
        .Requests(Requests),
        .LineBits(LineBits),
        .RingBase(RingBase[i*LineBits+:LineBits]),
        .RingLast(RingLast[i*LineBits+:LineBits])
    ) u_queue (
        .clk_i,
        .rst_ni,
        .can_begin_o   (can_begin[i]),
        .issue_i       (issue[i]),
        .issue_first_i (issue_first),
        .issue_last_i  (issue_last),
        .issue_rid_i   (issue_rid),
        .issue_offset_i(issue_lower[5:0]),
        .issue_length_i(issue_left),
        .finish_i      (finish[i]),
        .finish_rid_i  (finish_rid),
        .finish_err_i  (finish_err),
        .want_o        (want[i]),
        .grant_i       (grant[i]),
        .line_o        (lines[i*LineBits+:LineBits]),
        .freed_lines_o (freed[i*7+:7]),
        .line_data_i   (rd_data),
        .rd_rsp_valid_o(rd_rsp_valid_o[i]),
        .rd_rsp_ready_i(rd_rsp_ready_i[i]),
        .rd_rsp_data_o (rd_rsp_data_o[i*rnic_pkg::DmaRdRspBits+:rnic_pkg::DmaRdRspBits])
    );
  end
endmodule

`default_nettype wire
