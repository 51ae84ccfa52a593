`default_nettype none
`include "assert.svh"

/// Makes of a datagram to a multicast group a datagram for each QP that is attached to the group
/// (InfiniBand specification 10.5.2): the same packet, with the QPN of that QP and its own copy of
/// the payload.
///
/// Stands between rx_front and rx_park. What is not for a group passes in the cycle in which it
/// comes, and so does a datagram for a group to which nobody is attached: its QPN names no QP, so
/// the check stage drops and counts it. Copies leave one behind the other, by rising index of the
/// QP, before the packet behind them, at most one a cycle; each is judged for itself, so one that
/// its QP does not take hinders no other. Descriptors may be far ahead of payload: the payload of
/// the first copy passes and is kept, that of the others comes from what was kept.
///
/// op_*: attach, detach, look (multicast_groups); an operation waits until the datagram that is
/// being copied has left. any_o: there is a group. copied_o: a copy has left, a pulse. busy_o: work
/// that the ports do not show.
module rx_multicast (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    output logic                         busy_o,
    output logic                         copied_o,
    input  wire logic                    op_valid_i,
    input  wire rnic_pkg::multicast_op_t op_i,
    output logic                         op_done_o,
    output logic [1:0]                   op_status_o,
    output logic                         any_o,
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
    output rnic_pkg::payload_beat_t      payload_data_o
);
  /// Packets whose payload has not passed yet: as many as rx_park lets in.
  localparam int unsigned Moves = 64;
  /// Lines of the longest datagram: 4096 bytes and its GRH.
  localparam int unsigned Lines = 128;
  localparam int unsigned LineBits = $clog2(Lines);
  localparam int unsigned BeatBits = rnic_pkg::PayloadBeatBits;
  localparam int unsigned GroupBits = $clog2(rnic_pkg::MulticastGroups);

  // Pass   what is not for a group; asks the table about what is
  // Whole  nobody is attached: it passes as it is
  // Word   reads the next word of members
  // First  reads the tag of the first of them
  // Offer  offers a copy
  typedef enum logic [2:0] {Pass, Whole, Word, First, Offer} state_e;
  state_e state_q, state_d;

  // ---- The table ----
  logic found, found_hit, copy_taken, last, first_q;
  logic [GroupBits-1:0] found_group, group_q;
  logic [15:0] found_words, words_q, word, left, left_q, tag;
  logic [3:0] word_index, word_index_q, member;
  logic [7:0] qp_q;

  multicast_groups u_groups (
      .clk_i,
      .rst_ni,
      .op_valid_i,
      .op_i,
      .op_done_o,
      .op_status_o,
      .find_valid_i (state_q == Pass && desc_valid_i && desc_data_i.multicast),
      .find_mgid_i  (desc_data_i.dest_ip),
      .found_o      (found),
      .found_hit_o  (found_hit),
      .found_group_o(found_group),
      .found_words_o(found_words),
      .in_use_i     (state_q != Pass),
      .word_en_i    (state_q == Word),
      .word_group_i (group_q),
      .word_index_i (word_index),
      .word_o       (word),
      .tag_en_i     (state_q == First || (copy_taken && left_q != '0)),
      .tag_qp_i     ({word_index_q, member}),
      .tag_o        (tag),
      .any_o
  );

  // The lowest bits of what is left of the words, and of the members of the word in hand.
  assign left = (state_q == First) ? word : left_q;
  always_comb begin : lowest
    word_index = '0;
    member     = '0;
    for (int unsigned i = 16; i > 0; i--) begin
      if (words_q[i-1]) word_index = 4'(i - 1);
      if (left[i-1]) member = 4'(i - 1);
    end
  end

  // ---- Descriptors ----
  logic plain, offering, accepted, moves_ready;
  assign plain        = state_q == Whole || (state_q == Pass && !desc_data_i.multicast);
  assign offering     = state_q == Offer || (plain && desc_valid_i);
  assign desc_valid_o = offering && moves_ready;
  assign accepted     = desc_valid_o && desc_ready_i;
  assign copy_taken   = accepted && state_q == Offer;
  assign last         = left_q == '0 && words_q == '0;
  assign desc_ready_o = moves_ready && desc_ready_i && (plain || (state_q == Offer && last));
  always_comb begin : copy
    desc_data_o = desc_data_i;
    if (state_q == Offer) desc_data_o.dest_qpn = {tag, qp_q};
  end

  always_comb begin : control
    state_d = state_q;
    unique case (state_q)
      Pass:  if (found) state_d = found_hit ? Word : Whole;
      Whole: if (accepted) state_d = Pass;
      Word:  state_d = First;
      First: state_d = Offer;
      Offer: begin
        if (accepted && left_q == '0) state_d = last ? Pass : Word;
      end
      default: state_d = Pass;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (found) begin
      group_q <= found_group;
      words_q <= found_words;
      first_q <= 1'b1;
    end
    if (state_q == Word) begin
      word_index_q <= word_index;
      words_q      <= words_q & (words_q - 1'b1);
    end
    if (state_q == First || copy_taken) begin
      left_q <= left & (left - 1'b1);
      qp_q   <= {word_index_q, member};
    end
    if (copy_taken) first_q <= 1'b0;
    if (!rst_ni) state_q <= Pass;
  end

  // ---- Payload: of each packet that has left and has some, in their order ----
  logic move_valid, move_done, move_keep, move_again;
  logic [$clog2(Moves)+1:0] moves;
  stream_fifo #(
      .Width(2),
      .Depth(Moves)
  ) u_moves (
      .clk_i,
      .rst_ni,
      .in_valid_i (accepted && desc_data_i.payload_length != '0),
      .in_ready_o (moves_ready),
      .in_data_i  ({state_q == Offer && first_q, state_q == Offer && !first_q}),
      .out_valid_o(move_valid),
      .out_ready_i(move_done),
      .out_data_o ({move_keep, move_again}),
      .count_o    (moves)
  );
  assign copied_o = copy_taken;
  assign busy_o   = moves != '0 || state_q != Pass;

  // kept_q: the line that comes next of what was kept is on the output of the RAM.
  logic kept_q, fetch, beat_taken;
  logic [LineBits-1:0] line_q;
  rnic_pkg::payload_beat_t kept;
  assign payload_valid_o = move_valid && (move_again ? kept_q : payload_valid_i);
  assign payload_ready_o = move_valid && !move_again && payload_ready_i;
  assign payload_data_o  = move_again ? kept : payload_data_i;
  assign beat_taken      = payload_valid_o && payload_ready_i;
  assign move_done       = beat_taken && payload_data_o.last;
  assign fetch           = move_valid && move_again && (!kept_q || (beat_taken && !kept.last));

  always_ff @(posedge clk_i) begin
    kept_q <= fetch || (kept_q && !beat_taken);
    if (move_done) line_q <= '0;
    else if (fetch || (beat_taken && move_keep)) line_q <= line_q + 1'b1;
    if (!rst_ni) begin
      kept_q <= 1'b0;
      line_q <= '0;
    end
  end

  ram_1r1w #(
      .Width(BeatBits),
      .Depth(Lines)
  ) u_kept (
      .clk_i,
      .wr_en_i  (beat_taken && move_keep),
      .wr_addr_i(line_q),
      .wr_data_i(payload_data_i),
      .rd_en_i  (fetch),
      .rd_addr_i(line_q),
      .rd_data_o(kept)
  );

  `ASSERT(MembersLeft, state_q != First || word != '0)
  `ASSERT(DescStays, state_q == Pass || desc_valid_i)
  `ASSERT_HOLD(DescHold, desc_valid_o, desc_ready_i, desc_data_o)
  `ASSERT_HOLD(PayloadHold, payload_valid_o, payload_ready_i, payload_data_o)
endmodule

`default_nettype wire
