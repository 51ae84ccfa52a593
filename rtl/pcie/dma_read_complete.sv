`default_nettype none
`include "assert.svh"

/// Completions of DMA reads: checks each against its read and writes its lines into the reorder
/// buffer.
///
/// One beat a cycle; a beat is one line, because completions break at 64-byte boundaries at least
/// (PCI Express base specification 2.3.1.1). A read ends with its last byte, with an error status,
/// with a completion that does not continue it (byte count, lower address, length or beats wrong),
/// or when it is overdue; a poisoned completion makes it an error, but its other completions are
/// still awaited. Completions that match no read on its way are dropped.
///
/// Whether others follow for its tag (finish_dirty_o) is taken from a completion that is right or
/// has an error status, never from one that does not continue its read: nothing in it is true.
module dma_read_complete #(
    parameter int unsigned Clients = 2,
    parameter int unsigned Requests = 32,
    parameter int unsigned LineBits = 10,
    parameter logic [Clients*LineBits-1:0] RingBase = '0,
    parameter logic [Clients*LineBits-1:0] RingLast = '0,
    localparam int unsigned ClientBits = Clients > 1 ? $clog2(Clients) : 1,
    localparam int unsigned RidBits = $clog2(Requests)
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic                  dma_cpl_valid_i,
    output logic                       dma_cpl_ready_o,
    input  wire rnic_pkg::dma_cpl_hdr_t dma_cpl_hdr_i,
    input  wire logic [511:0]          dma_cpl_data_i,
    input  wire logic                  dma_cpl_last_i,
    // Reads as they are issued
    input  wire logic                  issue_i,
    input  wire logic [7:0]            issue_tag_i,
    input  wire logic [ClientBits-1:0] issue_client_i,
    input  wire logic [RidBits-1:0]    issue_rid_i,
    input  wire logic [LineBits-1:0]   issue_line_i,
    input  wire logic [6:0]            issue_lower_i,
    input  wire logic [9:0]            issue_bytes_i,
    // Tags
    input  wire logic [63:0]           outstanding_i,
    output logic                       finish_tag_valid_o,
    output logic [7:0]                 finish_tag_o,
    output logic                       finish_dirty_o,
    output logic                       late_o,
    output logic [7:0]                 late_tag_o,
    input  wire logic                  expire_valid_i,
    output logic                       expire_ready_o,
    input  wire logic [5:0]            expire_slot_i,
    // Reorder buffer and the clients' queues
    output logic                       line_wr_o,
    output logic [LineBits-1:0]        line_addr_o,
    output logic [511:0]               line_data_o,
    output logic [Clients-1:0]         finish_o,
    output logic [RidBits-1:0]         finish_rid_o,
    output logic                       finish_err_o,
    output logic                       event_error_o,
    output logic                       event_timeout_o
);
  localparam int unsigned RecordBits = 2 + ClientBits + RidBits + LineBits + 7 + 10;

  // Stage A: the beat at the port; its slot's records are looked up. Stage B: the beat and its
  // records.
  // An overdue read takes the place of a beat: settle_q is its stage B.
  logic b_valid_q, b_last_q, b_head_q, settle_q, forward_q, spoilt_q;
  rnic_pkg::dma_cpl_hdr_t b_hdr_q;
  logic [511:0] b_data_q;
  logic [5:0] look_slot, b_slot;
  logic [63:0] fresh_q;

  assign dma_cpl_ready_o = !expire_valid_i;
  assign look_slot       = expire_valid_i ? expire_slot_i : dma_cpl_hdr_i.tag[5:0];
  assign b_slot          = b_hdr_q.tag[5:0];

  logic [RecordBits-1:0] issue_record, record;
  logic [1:0] gen;
  logic [ClientBits-1:0] client;
  logic [RidBits-1:0] rid;
  logic [LineBits-1:0] line;
  logic [6:0] lower;
  logic [9:0] bytes;

  // What a read is: written when it is issued.
  assign issue_record = {
    issue_bytes_i, issue_lower_i, issue_line_i, issue_rid_i, issue_client_i, issue_tag_i[7:6]
  };
  ram_1r1w #(
      .Width(RecordBits),
      .Depth(64)
  ) u_records (
      .clk_i,
      .wr_en_i  (issue_i),
      .wr_addr_i(issue_tag_i[5:0]),
      .wr_data_i(issue_record),
      .rd_en_i  (1'b1),
      .rd_addr_i(look_slot),
      .rd_data_o(record)
  );
  assign {bytes, lower, line, rid, client, gen} = record;

  // How far a read is: bytes received, and whether any were poisoned. Not valid while it is fresh.
  logic [10:0] progress, progress_ram, progress_d, forwarded_q;
  logic progress_wr;
  ram_1r1w #(
      .Width(11),
      .Depth(64)
  ) u_progress (
      .clk_i,
      .wr_en_i  (progress_wr),
      .wr_addr_i(b_slot),
      .wr_data_i(progress_d),
      .rd_en_i  (1'b1),
      .rd_addr_i(look_slot),
      .rd_data_o(progress_ram)
  );
  always_comb begin
    progress = progress_ram;
    if (forward_q) progress = forwarded_q;
    if (fresh_q[b_slot]) progress = '0;
  end

  // Header against what is left of the read.
  logic [9:0] received, left, tlp_bytes, tlp_left, tlp_left_q, beat_bytes, room;
  logic [6:0] lane;
  logic [5:0] tlp_end;
  logic [12:0] span, own_span;
  logic [11:0] dwords;
  logic ends_read, ends_itself, header_ok, refused, beat_is_last;
  logic match, bad, complete, poison, finish_beat, expired;

  assign received  = progress[9:0];
  assign left      = bytes - received;
  assign lane      = lower + received[6:0];
  assign span      = {b_hdr_q.length_dw, 2'b00} - {11'd0, lane[1:0]};
  assign ends_read = span >= {3'd0, left};
  assign dwords    = {2'd0, left} + {10'd0, lane[1:0]} + 12'd3;
  assign tlp_end   = lane[5:0] + span[5:0];
  assign header_ok = b_hdr_q.byte_count == {3'd0, left} && b_hdr_q.lower_addr[6:0] == lane &&
      b_hdr_q.length_dw != '0 &&
      (ends_read ? b_hdr_q.length_dw == {1'b0, dwords[11:2]} : tlp_end == '0);

  // Beats of the TLP.
  assign tlp_bytes    = ends_read ? left : span[9:0];
  assign tlp_left     = b_head_q ? tlp_bytes : tlp_left_q;
  assign room         = 10'd64 - {4'd0, lane[5:0]};
  assign beat_is_last = tlp_left <= room;
  assign beat_bytes   = beat_is_last ? tlp_left : room;

  // A completion that ends its read by its own account: no more will come for its tag.
  assign refused     = b_hdr_q.status != rnic_pkg::CplStatusSuccess;
  assign own_span    = {b_hdr_q.length_dw, 2'b00} - {11'd0, b_hdr_q.lower_addr[1:0]};
  assign ends_itself = b_last_q && (refused || b_hdr_q.byte_count <= own_span);

  assign match       = b_valid_q && outstanding_i[b_slot] && b_hdr_q.tag[9:6] == {2'b00, gen};
  assign poison      = progress[10] || b_hdr_q.poisoned;
  assign bad         = match && !refused && ((b_head_q && !header_ok) || b_last_q != beat_is_last);
  assign complete    = match && !refused && !bad && b_last_q && beat_bytes == left;
  assign finish_beat = match && (refused || bad || complete);
  assign expired     = settle_q && outstanding_i[expire_slot_i];

  assign progress_wr = match && !finish_beat;
  assign progress_d  = {poison, received + beat_bytes};

  // Line of the beat, in the client's ring.
  logic [LineBits-1:0] ring_base, ring_last, offset, to_end;
  logic [9:0] distance;
  always_comb begin
    ring_base = '0;
    ring_last = '0;
    finish_o  = '0;
    for (int unsigned i = 0; i < Clients; i++) begin
      if (client == ClientBits'(i)) begin
        ring_base   = ring_base | RingBase[i*LineBits+:LineBits];
        ring_last   = ring_last | RingLast[i*LineBits+:LineBits];
        finish_o[i] = finish_beat || expired;
      end
    end
  end
  assign distance    = {4'd0, lower[5:0]} + received;
  assign offset      = {{LineBits - 4{1'b0}}, distance[9:6]};
  assign to_end      = ring_last - line;
  assign line_addr_o = offset > to_end ? ring_base + offset - to_end - LineBits'(1) : line + offset;
  assign line_data_o = b_data_q;
  assign line_wr_o   = match;

  assign finish_rid_o       = rid;
  assign finish_err_o       = expired || !complete || poison;
  assign finish_tag_valid_o = finish_beat || expired;
  assign finish_tag_o       = {gen, expired ? expire_slot_i : b_slot};
  assign finish_dirty_o     = expired || !(complete || (refused && b_last_q));
  assign expire_ready_o     = settle_q;
  assign late_o             = b_valid_q && !match && ends_itself && !spoilt_q &&
      b_hdr_q.tag[9:8] == '0;
  assign late_tag_o         = b_hdr_q.tag[7:0];
  assign event_error_o      = finish_beat && finish_err_o;
  assign event_timeout_o    = expired;

  always_ff @(posedge clk_i) begin
    b_valid_q   <= dma_cpl_valid_i && dma_cpl_ready_o;
    b_hdr_q     <= dma_cpl_hdr_i;
    b_data_q    <= dma_cpl_data_i;
    b_last_q    <= dma_cpl_last_i;
    settle_q    <= expire_valid_i && !settle_q;
    forward_q   <= progress_wr && look_slot == b_slot;
    forwarded_q <= progress_d;
    if (b_valid_q) begin
      // The other beats of a completion that was wrong.
      spoilt_q   <= (spoilt_q || bad) && !b_last_q;
      b_head_q   <= b_last_q;
      tlp_left_q <= tlp_left - beat_bytes;
    end
    if (match) fresh_q[b_slot] <= 1'b0;
    if (issue_i) fresh_q[issue_tag_i[5:0]] <= 1'b1;
    if (!rst_ni) begin
      b_valid_q <= 1'b0;
      b_head_q  <= 1'b1;
      spoilt_q  <= 1'b0;
      settle_q  <= 1'b0;
    end
  end

  logic [12:0] unused_bits;
  assign unused_bits = {b_hdr_q.lower_addr[11:7], dwords[1:0], distance[5:0]};

  `ASSERT(BeatOrSettle, !(b_valid_q && settle_q))
  `ASSERT_HOLD(CompletionHold, dma_cpl_valid_i, dma_cpl_ready_o,
               {dma_cpl_hdr_i, dma_cpl_data_i, dma_cpl_last_i})
endmodule

`default_nettype wire
