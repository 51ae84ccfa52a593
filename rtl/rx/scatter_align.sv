`default_nettype none
`include "assert.svh"

/// Spreads packed payload over its destinations: every piece becomes one DMA write of address-
/// aligned lines, a line a cycle.
///
/// The lengths of a packet's pieces add up to its payload. A line takes its bytes from the beat in
/// hand and, if that is not enough, from the next one. Byte i of the pair {next, current} that has
/// not been used comes from `current` when i >= position, else from `next`, so one select and one
/// 64-byte rotation place every line.
module scatter_align (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic                      piece_valid_i,
    output logic                           piece_ready_o,
    input  wire rnic_pkg::scatter_piece_t  piece_data_i,
    input  wire logic                      payload_valid_i,
    output logic                           payload_ready_o,
    input  wire rnic_pkg::payload_beat_t   payload_data_i,
    output logic                           wr_valid_o,
    input  wire logic                      wr_ready_i,
    output rnic_pkg::dma_wr_t              wr_data_o
);
  // ---- Piece in hand: what is left of it, and the lane of its next byte (0 after the first line)
  // ----
  logic piece_q, piece_last_q;
  logic [63:0] addr_q;
  logic [12:0] length_q, left_q;
  logic [5:0] lane_q;
  // ---- Beat in hand: bytes before position_q are used ----
  logic beat_q;
  logic [511:0] current_q;
  logic [5:0] position_q;

  logic [6:0] room, bytes, end_position;
  logic piece_ends, packet_ends, needs_next, uses_up, fire, stage_ready, load;
  assign room         = 7'd64 - {1'b0, lane_q};
  assign bytes        = (left_q < 13'(room)) ? left_q[6:0] : room;
  assign end_position = {1'b0, position_q} + bytes;
  assign piece_ends   = left_q <= 13'(room);
  assign packet_ends  = piece_ends && piece_last_q;
  assign needs_next   = end_position > 7'd64;
  assign uses_up      = end_position[6];
  assign fire         = piece_q && beat_q && stage_ready && (!needs_next || payload_valid_i);

  // The next beat is taken with the line that uses up this one, unless the packet ends exactly
  // here.
  assign load            = payload_valid_i && payload_ready_o;
  assign payload_ready_o = !beat_q
      || (piece_q && stage_ready && uses_up && (needs_next || !packet_ends));
  assign piece_ready_o   = !piece_q || (fire && piece_ends);

  always_ff @(posedge clk_i) begin
    if (piece_ready_o) begin
      piece_q      <= piece_valid_i;
      piece_last_q <= piece_data_i.last;
      addr_q       <= piece_data_i.addr;
      length_q     <= piece_data_i.length;
      left_q       <= piece_data_i.length;
      lane_q       <= piece_data_i.addr[5:0];
    end else if (fire) begin
      left_q <= left_q - 13'(bytes);
      lane_q <= 6'd0;
    end
    if (load) current_q <= payload_data_i.data;
    if (fire) position_q <= packet_ends ? 6'd0 : end_position[5:0];
    // A packet that ends within the beat just loaded leaves nothing of it.
    if (fire && packet_ends) beat_q <= 1'b0;
    else if (load) beat_q <= 1'b1;
    else if (fire && uses_up) beat_q <= 1'b0;
    if (!rst_ni) begin
      piece_q    <= 1'b0;
      beat_q     <= 1'b0;
      position_q <= 6'd0;
    end
  end

  // ---- Select, then rotate, each behind a register ----
  logic merged_valid_q;
  logic [511:0] merged_q, rotated;
  logic [5:0] rotate_q;
  logic [63:0] merged_addr_q;
  logic [12:0] merged_length_q;
  logic merged_last_q, skid_ready;
  assign stage_ready = !merged_valid_q || skid_ready;

  always_ff @(posedge clk_i) begin
    if (stage_ready) begin
      merged_valid_q  <= fire;
      rotate_q        <= position_q - lane_q;
      merged_addr_q   <= addr_q;
      merged_length_q <= length_q;
      merged_last_q   <= piece_ends;
      for (int unsigned i = 0; i < 64; i++) begin
        merged_q[i*8+:8] <= (6'(i) >= position_q) ? current_q[i*8+:8] : payload_data_i.data[i*8+:8];
      end
    end
    if (!rst_ni) merged_valid_q <= 1'b0;
  end

  byte_rotate u_rotate (
      .data_i  (merged_q),
      .amount_i(rotate_q),
      .data_o  (rotated)
  );

  skid_buffer #(
      .Width(rnic_pkg::DmaWrBits)
  ) u_out (
      .clk_i,
      .rst_ni,
      .in_valid_i (merged_valid_q),
      .in_ready_o (skid_ready),
      .in_data_i  ({merged_last_q, rotated, merged_length_q, merged_addr_q}),
      .out_valid_o(wr_valid_o),
      .out_ready_i(wr_ready_i),
      .out_data_o (wr_data_o)
  );

  logic unused_bits;
  assign unused_bits = &{1'b0, piece_data_i.epoch, payload_data_i.bytes, payload_data_i.last,
      payload_data_i.err};
  `ASSERT_HOLD(WrHold, wr_valid_o, wr_ready_i, wr_data_o)
endmodule

`default_nettype wire
