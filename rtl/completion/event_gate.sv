`default_nettype none
`include "assert.svh"

/// At most one entry of each source of events is in an EQ that the host has not consumed: the next
/// waits here, in the slot of its source (event_kind), until the host has. So a source, whatever it
/// does, fills no EQ: 3 * 256 + 2 entries are enough for all sources together, and the events of
/// one process cannot displace those of another. Events of one kind that wait are one event; those
/// of an earlier object with the index, or of an earlier life of a QP, are dropped for the newer
/// ones.
///
/// An event is taken within a few cycles, whatever happens to the writes of EQEs: an EQE is handed
/// on only while a place for it is kept (wr_kept_i), else the event waits as well. Waiting ones are
/// found by going round the slots, one a cycle; between two events a few slots are always looked
/// at. All slots are looked at when something has happened that one may have waited for: the host
/// has consumed, or a slot has changed; and again while one that is ready has no place. Then all
/// rests here (busy_o 0) until something happens.
///
/// ci_*: the consumer index of an EQ, whenever it moves. ci_renew_i with it: the EQ has been made
/// or destroyed; its entries are gone, and what waits for it with them.
module event_gate (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    output logic                    ready_o,
    output logic                    busy_o,
    input  wire logic               event_valid_i,
    output logic                    event_ready_o,
    input  wire rnic_pkg::eqe_req_t event_data_i,
    input  wire logic               ci_valid_i,
    input  wire logic               ci_renew_i,
    input  wire logic [4:0]         ci_eqn_i,
    input  wire logic [23:0]        ci_index_i,
    input  wire logic               wr_kept_i,
    // To eqe_writer; with its acceptance whether it was written, and as which entry
    output logic                    eqe_valid_o,
    input  wire logic               eqe_ready_i,
    output rnic_pkg::eqe_req_t      eqe_data_o,
    input  wire logic               eqe_written_i,
    input  wire logic [23:0]        eqe_index_i
);
  // Three kinds of queues with 256 of each, the device and its port (event_kind)
  localparam int unsigned Slots = 3 * 256 + 2;
  localparam logic [9:0] LastSlot = 10'(Slots - 1);
  localparam logic [2:0] RoundSteps = 3'd7;

  // Clear  empties the slots
  // Round  goes round the slots, and takes events
  // Read   reads the slot of the event, or the one that was found
  // Look   it is here; its EQ's consumer index is being read
  // Judge  both are here: may something be written?
  // Write  hands an event to eqe_writer
  // Store  writes the slot back
  typedef enum logic [2:0] {
    StClear,
    StRound,
    StRead,
    StLook,
    StJudge,
    StWrite,
    StStore
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::eqe_req_t event_q;
  rnic_pkg::event_slot_t read, slot_q, merged, settled;
  logic with_event_q, taken, found, look1_q, look2_q, consumed, ripe;
  logic [9:0] clear_q, round_q, look1_slot_q, look2_slot_q, index_q, event_slot;
  logic [3:0] event_bit, bit_out;
  logic [2:0] steps_q;
  logic [9:0] to_look_q;
  logic moves, wants;
  logic [7:0] type_out;
  logic [23:0] ci, passed;
  logic [32*4-1:0] gen_q;

  // ---- Consumer indexes of the EQs, and how often each has been renewed -------------------------
  ram_1r1w #(
      .Width(24),
      .Depth(32)
  ) u_consumed (
      .clk_i,
      .wr_en_i  (ci_valid_i),
      .wr_addr_i(ci_eqn_i),
      .wr_data_i(ci_index_i),
      .rd_en_i  (1'b1),
      .rd_addr_i(read.out_eqn),
      .rd_data_o(ci)
  );
  always_ff @(posedge clk_i) begin
    if (ci_valid_i && ci_renew_i) gen_q[{ci_eqn_i, 2'd0}+:4] <= gen_q[{ci_eqn_i, 2'd0}+:4] + 4'd1;
    if (!rst_ni) gen_q <= '0;
  end

  // ---- Slots ------------------------------------------------------------------------------------
  ram_1r1w #(
      .Width(rnic_pkg::EventSlotBits),
      .Depth(Slots)
  ) u_slots (
      .clk_i,
      .wr_en_i  (state_q == StClear || state_q == StStore),
      .wr_addr_i(state_q == StClear ? clear_q : index_q),
      .wr_data_i(state_q == StClear ? '0 : slot_q),
      .rd_en_i  (1'b1),
      .rd_addr_i(state_q == StRead ? index_q : round_q),
      .rd_data_o(read)
  );

  event_kind u_kind (
      .event_type_i(event_data_i.event_type),
      .index_i     (event_data_i.number[7:0]),
      .slot_o      (event_slot),
      .bit_o       (event_bit),
      .of_slot_i   (index_q),
      .of_due_i    (slot_q.due),
      .of_newest_i (slot_q.newest),
      .of_bit_o    (bit_out),
      .of_type_o   (type_out)
  );

  // ---- The slot with the event in it ------------------------------------------------------------
  logic [3:0] event_bit_q;
  logic [3:0] event_gen;
  logic begins;
  assign event_gen = gen_q[{event_q.eqn, 2'd0}+:4];
  // The first packet to a QP in RTR: what waits is of a life before.
  assign begins    = event_q.event_type == rnic_pkg::EqeTypeCommEstablished;
  always_comb begin
    merged = read;
    if (with_event_q) begin
      if (begins || read.number != event_q.number) merged.due = '0;
      merged.due    = merged.due | event_bit_q;
      merged.number = event_q.number;
      merged.eqn    = event_q.eqn;
      merged.gen    = event_gen;
      if (event_bit_q[2]) begin
        merged.newest = event_q.event_type;
        merged.detail = event_q.detail[7:0];
      end
    end
  end

  // What has become of the entry that is out, and of the EQ of what waits. slot_q holds the slot
  // that `ci` belongs to: the one in hand, or in Round the one that went by.
  always_comb begin
    passed   = ci - 24'd1 - slot_q.index;
    consumed = !passed[23] || slot_q.out_gen != gen_q[{slot_q.out_eqn, 2'd0}+:4];
    settled  = slot_q;
    if (consumed) settled.out = 1'b0;
    if (slot_q.gen != gen_q[{slot_q.eqn, 2'd0}+:4]) settled.due = '0;
    wants    = settled.due != '0 && !settled.out;
    ripe     = wants && wr_kept_i;
  end

  // ---- Control ----------------------------------------------------------------------------------
  assign event_ready_o = state_q == StRound && steps_q == '0;
  assign taken         = event_valid_i && event_ready_o;
  assign found         = state_q == StRound && look2_q && (ripe || settled != slot_q);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StClear: if (clear_q == LastSlot) state_d = StRound;
      StRound: if (taken || found) state_d = StRead;
      StRead:  state_d = StLook;
      StLook:  state_d = StJudge;
      StJudge: state_d = ripe ? StWrite : StStore;
      StWrite: if (eqe_ready_i) state_d = StStore;
      StStore: state_d = StRound;
      default: state_d = StClear;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (state_q == StClear) clear_q <= clear_q + 1'b1;

    // The round: a slot is read, its EQ's consumer index, then it is looked at. What an
    // interruption leaves unseen is read again.
    look1_q      <= state_q == StRound && state_d == StRound && moves;
    look1_slot_q <= round_q;
    look2_q      <= look1_q && state_d == StRound;
    look2_slot_q <= look1_slot_q;
    if (state_q == StRound && moves) round_q <= (round_q == LastSlot) ? '0 : round_q + 1'b1;
    if (taken || found) begin
      round_q <= look1_q ? look1_slot_q : round_q;
      if (taken && found) round_q <= look2_slot_q;
    end
    if (state_q == StRound && steps_q != '0) steps_q <= steps_q - 1'b1;
    if (state_q == StStore && with_event_q) steps_q <= RoundSteps;
    if (state_q == StRound && moves) to_look_q <= to_look_q - 1'b1;
    if (ci_valid_i || state_q == StStore || (look2_q && wants && !wr_kept_i))
      to_look_q <= 10'(Slots);

    if (state_q == StRound) begin
      with_event_q <= taken;
      event_q      <= event_data_i;
      event_bit_q  <= event_bit;
      index_q      <= taken ? event_slot : look2_slot_q;
    end

    if (state_q == StRound) slot_q <= read;
    if (state_q == StLook) slot_q <= merged;
    if (state_q == StJudge) slot_q <= settled;
    if (state_q == StWrite && eqe_ready_i) begin
      slot_q.due     <= slot_q.due & ~bit_out;
      slot_q.out     <= eqe_written_i;
      slot_q.out_eqn <= slot_q.eqn;
      slot_q.out_gen <= slot_q.gen;
      slot_q.index   <= eqe_index_i;
    end
    if (!rst_ni) begin
      state_q <= StClear;
      clear_q <= '0;
      round_q <= '0;
      steps_q <= '0;
      to_look_q <= '0;
      look1_q <= 1'b0;
      look2_q <= 1'b0;
    end
  end

  assign moves       = to_look_q != '0;
  assign busy_o      = state_q != StRound || moves || look1_q || look2_q || steps_q != '0;
  assign ready_o     = state_q != StClear;
  assign eqe_valid_o = state_q == StWrite;
  always_comb begin
    eqe_data_o            = '0;
    eqe_data_o.eqn        = slot_q.eqn;
    eqe_data_o.event_type = type_out;
    eqe_data_o.number     = slot_q.number;
    if (bit_out[2]) eqe_data_o.detail = {24'd0, slot_q.detail};
  end

  logic unused_bits;
  assign unused_bits = ^{event_q.detail[31:8], passed[22:0]};

  `ASSERT_HOLD(EqeHold, eqe_valid_o, eqe_ready_i, eqe_data_o)
  `ASSERT(OneOut, state_q != StWrite || !slot_q.out)
endmodule

`default_nettype wire
