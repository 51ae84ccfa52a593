`default_nettype none
`include "assert.svh"

/// Where requests wait that must not be executed yet, so that nobody but their own QP waits for
/// them: a SEND or WRITE behind an atomic that has not been executed (InfiniBand specification 9.5,
/// C9-28) or behind a SEND with invalidate whose key has not been invalidated (9.9.3.1), and
/// whatever of that QP comes behind it.
///
/// Passes packets from the front end on to the receive engine. Its check stage, which has the
/// context, judges each of them, in the order in which they were offered (judged_valid_i). One that
/// must wait (held_i) goes into the lot with its payload, and leaves no trace in the engine but the
/// count `parked` of its QP. The oldest of the lot is offered again, marked `parked`, when an
/// atomic has been answered or a key invalidated (retry_i), and every RetryCycles, because its QP
/// may have failed meanwhile: then it is dropped as any packet of such a QP. The lot is a queue:
/// QPs that wait, wait for each other; atomics and invalidations are done one after the other in
/// any case.
///
/// A packet is taken only when the lot has room for it, so a held one always finds its place. A
/// full lot holds up everybody, until its oldest packet may go. clear_valid_i: the packets of QP
/// clear_qp_i that wait belong to a life that is over; they are thrown away.
///
/// desc_o is offered before its payload: the payload of a packet follows when it has been judged.
/// busy_o: the lot is not empty.
module rx_park #(
    /// Packets and lines of payload (64 bytes) that the lot has room for
    parameter int unsigned Packets = 128,
    parameter int unsigned Lines = 1024,
    parameter int unsigned RetryCycles = 128
) (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    output logic                         busy_o,
    input  wire logic                    desc_valid_i,
    output logic                         desc_ready_o,
    input  wire rnic_pkg::rx_desc_t      desc_data_i,
    input  wire logic                    payload_valid_i,
    output logic                         payload_ready_o,
    input  wire rnic_pkg::payload_beat_t payload_data_i,
    output logic                         desc_valid_o,
    input  wire logic                    desc_ready_i,
    output rnic_pkg::rx_desc_t           desc_data_o,
    output logic                         payload_valid_o,
    input  wire logic                    payload_ready_i,
    output rnic_pkg::payload_beat_t      payload_data_o,
    input  wire logic                    judged_valid_i,
    input  wire logic                    held_i,
    input  wire logic                    retry_i,
    input  wire logic                    clear_valid_i,
    input  wire logic [7:0]              clear_qp_i
);
  /// Packets that are offered and not judged; packets whose payload is still to be moved.
  localparam int unsigned Offered = 8;
  localparam int unsigned Moves = 64;
  localparam int unsigned IndexBits = $clog2(Packets);
  localparam int unsigned LineBits = $clog2(Lines);
  localparam int unsigned MoveBits = $clog2(Moves) + 1;
  localparam int unsigned BeatBits = rnic_pkg::PayloadBeatBits;

  // ---- Offer: the oldest of the lot before the next from the wire ----
  logic offer_valid, offer_ready, offer_lot, offer_wire, offered, room, again;
  logic lot_valid, lot_pop, lot_dead, discard, waits_q, asked_q;
  logic offered_in_ready, judged_lot, moves_free;
  rnic_pkg::rx_desc_t offer_desc, lot_desc, judged_desc;
  assign busy_o      = lot_valid || waits_q;
  assign again       = lot_valid && !lot_dead && !asked_q && !waits_q;
  assign offer_lot   = again && offered_in_ready && moves_free;
  assign offer_wire  = !again && desc_valid_i && room && offered_in_ready && moves_free;
  assign offer_valid = offer_lot || offer_wire;
  assign offered     = offer_valid && offer_ready;
  always_comb begin : offer
    offer_desc        = offer_lot ? lot_desc : desc_data_i;
    offer_desc.parked = offer_lot;
  end
  assign desc_ready_o = !again && room && offered_in_ready && moves_free && offer_ready;

  skid_buffer #(
      .Width(rnic_pkg::RxDescBits)
  ) u_offer (
      .clk_i,
      .rst_ni,
      .in_valid_i (offered),
      .in_ready_o (offer_ready),
      .in_data_i  (offer_desc),
      .out_valid_o(desc_valid_o),
      .out_ready_i(desc_ready_i),
      .out_data_o (desc_data_o)
  );

  // ---- Judged: those that were offered, in order ----
  logic judged_valid, to_lot;
  logic [$clog2(Offered)+1:0] unused_offered;
  stream_fifo #(
      .Width(rnic_pkg::RxDescBits),
      .Depth(Offered)
  ) u_offered (
      .clk_i,
      .rst_ni,
      .in_valid_i (offered),
      .in_ready_o (offered_in_ready),
      .in_data_i  (offer_desc),
      .out_valid_o(judged_valid),
      .out_ready_i(judged_valid_i),
      .out_data_o (judged_desc),
      .count_o    (unused_offered)
  );
  assign judged_lot = judged_desc.parked;
  assign to_lot     = judged_valid_i && held_i && !judged_lot;
  assign lot_pop    = (judged_valid_i && !held_i && judged_lot) || discard;

  // ---- Lot: packets, and which of them belong to a life that is over ----
  logic lot_ready;
  logic [IndexBits+1:0] unused_packets;
  stream_fifo #(
      .Width(rnic_pkg::RxDescBits),
      .Depth(Packets)
  ) u_packets (
      .clk_i,
      .rst_ni,
      .in_valid_i (to_lot),
      .in_ready_o (lot_ready),
      .in_data_i  (judged_desc),
      .out_valid_o(lot_valid),
      .out_ready_i(lot_pop),
      .out_data_o (lot_desc),
      .count_o    (unused_packets)
  );
  logic [IndexBits-1:0] in_q, out_q;
  logic [8*Packets-1:0] qp_q;
  logic [Packets-1:0] dead_q;
  assign lot_dead = dead_q[out_q];
  assign discard  = lot_valid && lot_dead && !asked_q && !judged_valid_i && moves_free;

  always_ff @(posedge clk_i) begin
    if (to_lot) begin
      in_q                   <= in_q + 1'b1;
      qp_q[{in_q, 3'd0}+:8] <= judged_desc.dest_qpn[7:0];
    end
    if (lot_pop) out_q <= out_q + 1'b1;
    for (int unsigned i = 0; i < Packets; i++) begin
      if (clear_valid_i && qp_q[8*i+:8] == clear_qp_i) dead_q[i] <= 1'b1;
    end
    if (to_lot) dead_q[in_q] <= 1'b0;
    if (!rst_ni) begin
      in_q  <= '0;
      out_q <= '0;
    end
  end

  // ---- When the oldest of the lot is asked for again ----
  logic [$clog2(RetryCycles)-1:0] pause_q;
  logic retry_q;
  always_ff @(posedge clk_i) begin
    pause_q <= waits_q ? pause_q + 1'b1 : '0;
    if (offered && offer_lot) asked_q <= 1'b1;
    // What was done while the packet was being judged may be what it waits for.
    retry_q <= asked_q && (retry_q || retry_i);
    if (judged_valid_i && judged_lot) begin
      asked_q <= 1'b0;
      waits_q <= held_i && !retry_q && !retry_i;
    end else if (retry_i || discard || pause_q == '1) begin
      waits_q <= 1'b0;
    end
    if (!rst_ni) begin
      asked_q <= 1'b0;
      waits_q <= 1'b0;
      retry_q <= 1'b0;
    end
  end

  // ---- Room: what is offered from the wire counts as if it were held ----
  logic [IndexBits:0] places_q;
  logic [LineBits:0] lines_q, lines_in, lines_judged, free;
  logic [6:0] lines_of_in, lines_of_judged;
  logic back, beat_out;
  assign lines_of_in     = 7'((desc_data_i.payload_length + 13'd63) >> 6);
  assign lines_of_judged = 7'((judged_desc.payload_length + 13'd63) >> 6);
  assign back            = judged_valid_i && !held_i && !judged_lot;
  assign lines_in        = (offered && offer_wire) ? (LineBits + 1)'(lines_of_in) : '0;
  assign lines_judged    = back ? (LineBits + 1)'(lines_of_judged) : '0;
  assign free            = (LineBits + 1)'(Lines) - lines_q;
  assign room            = !places_q[IndexBits] && (LineBits + 1)'(lines_of_in) <= free;
  always_ff @(posedge clk_i) begin
    places_q <= places_q + (IndexBits + 1)'(offered && offer_wire) - (IndexBits + 1)'(back)
                - (IndexBits + 1)'(lot_pop);
    lines_q  <= lines_q + lines_in - lines_judged - (LineBits + 1)'(beat_out);
    if (!rst_ni) begin
      places_q <= '0;
      lines_q  <= '0;
    end
  end

  // ---- Payload: from the wire to the engine or into the lot, and out of the lot ----
  // Both in the order of the judgements, and side by side: while a packet comes out of the lot the
  // next one from the wire goes in. A place in both queues is kept for each packet that is offered.
  logic wire_in, wire_valid, wire_done, wire_held, wire_ready;
  logic on_in, on_valid, on_done, on_lot, on_away, on_ready, has_payload;
  logic [MoveBits:0] unused_wire, unused_on;
  logic [MoveBits-1:0] wire_q, on_q;
  assign has_payload = discard ? lot_desc.payload_length != '0
                               : judged_desc.payload_length != '0;
  assign wire_in     = judged_valid_i && !judged_lot && has_payload;
  assign on_in       = ((judged_valid_i && !held_i) || discard) && has_payload;
  assign moves_free  = wire_q < MoveBits'(Moves) - 1'b1 && on_q < MoveBits'(Moves) - 1'b1;
  // Where the payload of a packet from the wire goes.
  stream_fifo #(
      .Width(1),
      .Depth(Moves)
  ) u_from_wire (
      .clk_i,
      .rst_ni,
      .in_valid_i (wire_in),
      .in_ready_o (wire_ready),
      .in_data_i  (held_i),
      .out_valid_o(wire_valid),
      .out_ready_i(wire_done),
      .out_data_o (wire_held),
      .count_o    (unused_wire)
  );
  // Where that of a packet which goes on comes from; away: it is thrown away.
  stream_fifo #(
      .Width(2),
      .Depth(Moves)
  ) u_on (
      .clk_i,
      .rst_ni,
      .in_valid_i (on_in),
      .in_ready_o (on_ready),
      .in_data_i  ({discard || judged_lot, discard}),
      .out_valid_o(on_valid),
      .out_ready_i(on_done),
      .out_data_o ({on_lot, on_away}),
      .count_o    (unused_on)
  );
  always_ff @(posedge clk_i) begin
    wire_q <= wire_q + MoveBits'(offered && offer_wire)
              - MoveBits'(judged_valid_i && !judged_lot && !wire_in) - MoveBits'(wire_done);
    on_q   <= on_q + MoveBits'(offered) + MoveBits'(discard && has_payload)
              - MoveBits'(judged_valid_i && !on_in) - MoveBits'(on_done);
    if (!rst_ni) {wire_q, on_q} <= '0;
  end

  logic line_in_valid, line_in_ready, line_valid, line_ready, out_valid, out_ready, from_wire;
  logic [LineBits+1:0] unused_lines;
  rnic_pkg::payload_beat_t line;
  stream_fifo #(
      .Width(BeatBits),
      .Depth(Lines)
  ) u_lines (
      .clk_i,
      .rst_ni,
      .in_valid_i (line_in_valid),
      .in_ready_o (line_in_ready),
      .in_data_i  (payload_data_i),
      .out_valid_o(line_valid),
      .out_ready_i(line_ready),
      .out_data_o (line),
      .count_o    (unused_lines)
  );
  assign from_wire       = on_valid && !on_lot && wire_valid && !wire_held;
  assign line_in_valid   = wire_valid && wire_held && payload_valid_i;
  assign line_ready      = on_valid && on_lot && (on_away || out_ready);
  assign beat_out        = line_valid && line_ready;
  assign payload_ready_o = wire_valid && (wire_held || (from_wire && out_ready));
  assign out_valid       = (on_valid && on_lot) ? line_valid && !on_away
                                                : from_wire && payload_valid_i;
  assign wire_done       = payload_valid_i && payload_ready_o && payload_data_i.last;
  assign on_done         = on_lot ? beat_out && line.last : wire_done && !wire_held;

  skid_buffer #(
      .Width(BeatBits)
  ) u_out (
      .clk_i,
      .rst_ni,
      .in_valid_i (out_valid),
      .in_ready_o (out_ready),
      .in_data_i  (on_lot ? line : payload_data_i),
      .out_valid_o(payload_valid_o),
      .out_ready_i(payload_ready_i),
      .out_data_o (payload_data_o)
  );

  logic unused_line_ready;
  assign unused_line_ready = line_in_ready || lot_ready || judged_valid;

  `ASSERT(JudgedOffered, !judged_valid_i || judged_valid)
  `ASSERT(LotHasPlace, lot_ready)
  `ASSERT(LotHasLine, line_in_ready)
  `ASSERT(LotInOrOut, !(to_lot && lot_pop))
  `ASSERT(MovesCounted, wire_q <= MoveBits'(Moves) && on_q <= MoveBits'(Moves))
  `ASSERT(MoveHasPlace, wire_ready && on_ready)
  `ASSERT_HOLD(DescHold, desc_valid_o, desc_ready_i, desc_data_o)
  `ASSERT_HOLD(PayloadHold, payload_valid_o, payload_ready_i, payload_data_o)
endmodule

`default_nettype wire
