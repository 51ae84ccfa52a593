`default_nettype none

/// Takes the commands of the receive side into the state of their queue pairs.
///
/// Keeps, per QP, a rsp_queue word: how many Reads have been queued, and what follows the last of
/// them: an ACK or a NAK. A Read clears what precedes it, because its response acknowledges that
/// (InfiniBand specification 9.7.5.1.3), and so does a NAK. A repeated Read (msg_last 0) clears
/// nothing: its responses are older than what is due; neither does an ACK of what precedes a NAK
/// that has not left yet (due_waits_i), which says the same and more. Once that has left, an ACK
/// takes its place, so that no NAK leaves twice (9.7.5.2.8). Atomics are queued like Reads. Only
/// this block writes these words and the Read ring; the engine reads them. Two cycles a command.
///
/// A repeated Read ends the answers to the Reads in front of it that have PSNs of it (ended, a bit
/// a slot): their requester has gone back, and what is left of them would be thrown away there. The
/// ring has twice the room that Reads may be outstanding, so that all of them can be asked for
/// again while the old ones are in it. A repeated Read takes 13 cycles.
module rsp_intake (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic                   cmd_valid_i,
    output logic                        cmd_ready_o,
    input  wire rnic_pkg::rsp_cmd_t     cmd_data_i,
    input  wire logic                   clear_valid_i,
    output logic                        clear_ready_o,
    input  wire logic [7:0]             clear_qp_i,
    // The engine should look: a Read was queued; an ACK or NAK is due
    output logic                        wake_valid_o,
    output logic                        due_valid_o,
    output logic [7:0]                  wake_qp_o,
    // Of wake_qp_o: what was due before has not left
    input  wire logic                   due_waits_i,
    // Engine's read ports, data in the next cycle: queue word of a QP, a slot of its Read ring
    input  wire logic                   queue_en_i,
    input  wire logic [7:0]             queue_qp_i,
    output logic [5:0]                  queue_tail_o,
    output logic [31:0]                 queue_ended_o,
    output logic [31:0]                 queue_repeated_o,
    output logic                        queue_is_nak_o,
    output logic                        queue_is_ack_o,
    output logic [23:0]                 queue_psn_o,
    output logic [7:0]                  queue_syndrome_o,
    output logic [23:0]                 queue_msn_o,
    input  wire logic                   slot_en_i,
    input  wire logic [12:0]            slot_addr_i,
    output logic [63:0]                 slot_va_o,
    output logic [31:0]                 slot_key_o,
    output logic [31:0]                 slot_length_o,
    output logic [23:0]                 slot_psn_o,
    output logic [23:0]                 slot_msn_o,
    // Of an atomic
    output logic                        slot_atomic_o,
    output logic                        slot_repeated_o,
    output logic                        slot_fetch_add_o,
    output logic [63:0]                 slot_swap_add_o,
    output logic [63:0]                 slot_compare_o
);
  localparam int unsigned QueueBits = 6 + 1 + 1 + 24 + 8 + 24 + 32 + 32;
  localparam int unsigned SlotBits = 64 + 32 + 32 + 24 + 24 + 3 + 64 + 64;

  // StIdle    the queue word of the next command is being read
  // StStart   it is here; a repeated Read looks for those that it ends
  // StOverlap waits for them
  // StUpdate  writing the word back
  typedef enum logic [1:0] {
    StIdle,
    StStart,
    StOverlap,
    StUpdate
  } state_e;
  state_e state_q, state_d;

  logic [QueueBits-1:0] word, new_word, engine_word;
  logic [5:0] tail, new_tail;
  logic [31:0] ended, new_ended, repeated, new_repeated, overlap;
  logic is_nak, is_ack, new_is_nak, new_is_ack;
  logic [23:0] psn, new_psn, msn, new_msn;
  logic [7:0] syndrome, new_syndrome;
  logic start, update, is_read, is_atomic, is_repeated, dead, implied, search, search_done, push;
  logic wr_en;
  logic [7:0] wr_qp;

  assign start         = state_q == StIdle && cmd_valid_i && !clear_valid_i;
  assign update        = state_q == StUpdate;
  assign clear_ready_o = state_q == StIdle;
  assign cmd_ready_o   = update;

  assign {repeated, ended, msn, syndrome, psn, is_ack, is_nak, tail} = word;
  assign new_word = {new_repeated, new_ended, new_msn, new_syndrome, new_psn, new_is_ack,
                     new_is_nak, new_tail};
  assign is_atomic = cmd_data_i.command == rnic_pkg::RspCommandAtomic;
  assign is_read   = cmd_data_i.command == rnic_pkg::RspCommandRead || is_atomic;
  assign is_repeated = is_read && !cmd_data_i.msg_last;
  assign search    = state_q == StStart;
  assign push      = update && !dead && is_read;

  // After a fatal NAK (0x61 to 0x63) nothing may follow.
  assign dead = is_nak && syndrome >= rnic_pkg::AethSyndromeNakInvalidRequest &&
                syndrome <= rnic_pkg::AethSyndromeNakRemoteOperational;

  logic older;
  logic [22:0] unused_distance;
  assign {older, unused_distance} = cmd_data_i.psn - psn;
  assign implied = is_nak && due_waits_i && older;

  always_comb begin
    new_tail     = tail;
    new_is_nak   = is_nak;
    new_is_ack   = is_ack;
    new_psn      = psn;
    new_syndrome = syndrome;
    new_msn      = msn;
    new_ended    = ended;
    new_repeated = repeated;
    if (is_repeated && !is_atomic) new_ended = ended | overlap;
    if (is_read) begin
      new_ended[tail[4:0]]    = 1'b0;
      new_repeated[tail[4:0]] = is_repeated;
    end
    unique case (cmd_data_i.command)
      rnic_pkg::RspCommandRead, rnic_pkg::RspCommandAtomic: begin
        new_tail   = tail + 1'b1;
        new_msn    = msn + 24'(cmd_data_i.msg_last);
        new_is_ack = is_ack && !cmd_data_i.msg_last;
        new_is_nak = is_nak && !cmd_data_i.msg_last;
      end
      rnic_pkg::RspCommandNak: begin
        new_is_nak   = 1'b1;
        new_is_ack   = 1'b0;
        new_psn      = cmd_data_i.psn;
        new_syndrome = cmd_data_i.syndrome;
      end
      default: begin
        new_msn = msn + 24'(cmd_data_i.msg_last);
        if (cmd_data_i.ack_req && !implied) begin
          new_is_ack = 1'b1;
          new_is_nak = 1'b0;
        end
        if ((cmd_data_i.ack_req && !implied) || !is_nak) new_psn = cmd_data_i.psn;
      end
    endcase
  end

  assign wake_qp_o    = cmd_data_i.qp;
  assign due_valid_o  = update && !dead && (cmd_data_i.command == rnic_pkg::RspCommandNak ||
                                           (!is_read && cmd_data_i.ack_req && !implied));
  assign wake_valid_o = due_valid_o || (update && !dead && is_read);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:    if (start) state_d = (is_repeated && !is_atomic) ? StStart : StUpdate;
      StStart:   state_d = StOverlap;
      StOverlap: if (search_done) state_d = StUpdate;
      StUpdate:  state_d = StIdle;
      default:   state_d = StIdle;
    endcase
  end
  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (!rst_ni) state_q <= StIdle;
  end

  // Two copies of the words, one for each reader.
  assign wr_en = (update && !dead) || (clear_valid_i && clear_ready_o);
  assign wr_qp = update ? cmd_data_i.qp : clear_qp_i;
  ram_1r1w #(
      .Width(QueueBits),
      .Depth(256)
  ) u_own (
      .clk_i,
      .wr_en_i  (wr_en),
      .wr_addr_i(wr_qp),
      .wr_data_i(update ? new_word : '0),
      .rd_en_i  (start),
      .rd_addr_i(cmd_data_i.qp),
      .rd_data_o(word)
  );
  ram_1r1w #(
      .Width(QueueBits),
      .Depth(256)
  ) u_engine (
      .clk_i,
      .wr_en_i  (wr_en),
      .wr_addr_i(wr_qp),
      .wr_data_i(update ? new_word : '0),
      .rd_en_i  (queue_en_i),
      .rd_addr_i(queue_qp_i),
      .rd_data_o(engine_word)
  );
  assign {queue_repeated_o, queue_ended_o, queue_msn_o, queue_syndrome_o, queue_psn_o,
          queue_is_ack_o, queue_is_nak_o, queue_tail_o} = engine_word;

  rsp_overlap u_overlap (
      .clk_i,
      .rst_ni,
      .wr_en_i    (push),
      .wr_qp_i    (cmd_data_i.qp),
      .wr_slot_i  (tail[4:0]),
      .wr_atomic_i(is_atomic),
      .wr_first_i (cmd_data_i.psn),
      .wr_last_i  (cmd_data_i.last_psn),
      .start_i    (search),
      .qp_i       (cmd_data_i.qp),
      .first_i    (cmd_data_i.psn),
      .last_i     (cmd_data_i.last_psn),
      .done_o     (search_done),
      .mask_o     (overlap)
  );

  ram_1r1w #(
      .Width(SlotBits),
      .Depth(256 * 2 * rnic_pkg::MaxReadsOutstanding)
  ) u_ring (
      .clk_i,
      .wr_en_i  (push),
      .wr_addr_i({cmd_data_i.qp, tail[4:0]}),
      .wr_data_i({cmd_data_i.compare, cmd_data_i.swap_add, cmd_data_i.fetch_add,
                  is_repeated, is_atomic, new_msn, cmd_data_i.psn, cmd_data_i.length,
                  cmd_data_i.key, cmd_data_i.va}),
      .rd_en_i  (slot_en_i),
      .rd_addr_i(slot_addr_i),
      .rd_data_o({slot_compare_o, slot_swap_add_o, slot_fetch_add_o, slot_repeated_o,
                  slot_atomic_o, slot_msn_o, slot_psn_o, slot_length_o, slot_key_o, slot_va_o})
  );
endmodule

`default_nettype wire
