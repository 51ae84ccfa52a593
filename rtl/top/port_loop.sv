`default_nettype none
`include "assert.svh"

/// The way of a frame back into the NIC that sends it: no switch sends a frame out of the port
/// through which it came.
///
/// A frame for our own MAC goes to our receive side and not to the wire. One for a group goes to
/// the wire, and to our receive side too as long as queue pairs are attached to groups (groups_i;
/// InfiniBand specification 10.5.2). All others go to the wire, in the cycle in which they are
/// offered; and what the wire brings passes at once unless a frame of ours is on its way in.
///
/// A frame of ours goes in between two frames of the wire, when all of it is here. What the wire
/// brings meanwhile waits behind it in a FIFO and finds its way back when the wire has had as many
/// free cycles. A frame for our own MAC waits for room here, and what is behind it too; the copy of
/// one for a group is lost then (lost_o, a pulse), so that no other QP's frames wait for it.
/// busy_o: frames are inside.
module port_loop (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    output logic                       busy_o,
    input  wire logic [47:0]           port_mac_i,
    input  wire logic                  groups_i,
    input  wire logic                  tx_valid_i,
    output logic                       tx_ready_o,
    input  wire rnic_pkg::frame_beat_t tx_data_i,
    output logic                       eth_tx_valid_o,
    input  wire logic                  eth_tx_ready_i,
    output rnic_pkg::frame_beat_t      eth_tx_data_o,
    input  wire logic                  eth_rx_valid_i,
    input  wire rnic_pkg::frame_beat_t eth_rx_data_i,
    output logic                       rx_valid_o,
    output rnic_pkg::frame_beat_t      rx_data_o,
    output logic                       lost_o
);
  /// Beats of our frames that wait, and of those of the wire; the longest frame has 67.
  localparam int unsigned Words = 128;
  localparam int unsigned LongestFrame = 67;
  localparam int unsigned CountBits = $clog2(Words) + 1;

  // ---- Where a frame goes: decided when it is offered first, and kept ----
  // offered_q: the frame has been offered before. begun_q: a part of it has been taken.
  logic offered_q, begun_q, own, own_q, group, copy, copy_q, room, to_wire, to_loop, tx_taken;
  logic [47:0] dest;
  logic [CountBits-1:0] words_free;
  always_comb begin : address
    for (int unsigned i = 0; i < 6; i++) dest[8*i+:8] = tx_data_i.data[8*(5-i)+:8];
  end
  assign own     = offered_q ? own_q : dest == port_mac_i;
  assign group   = dest[40] && groups_i && !own;
  assign room    = words_free >= CountBits'(LongestFrame);
  assign copy    = offered_q ? copy_q : group && room;
  assign lost_o  = tx_valid_i && !offered_q && group && !room;
  assign to_wire = !own;
  assign to_loop = own || copy;

  assign eth_tx_valid_o = tx_valid_i && to_wire;
  assign eth_tx_data_o  = tx_data_i;
  assign tx_ready_o     = to_wire ? eth_tx_ready_i : begun_q || room;
  assign tx_taken       = tx_valid_i && tx_ready_o;

  always_ff @(posedge clk_i) begin
    if (tx_valid_i) begin
      offered_q <= !(tx_taken && tx_data_i.last);
      own_q     <= own;
      copy_q    <= copy;
    end
    if (tx_taken) begun_q <= !tx_data_i.last;
    if (!rst_ni) begin
      offered_q <= 1'b0;
      begun_q   <= 1'b0;
    end
  end

  // ---- Our frames, whole ----
  logic loop_valid, loop_take, loop_in_ready, loop_last;
  logic [6:0] loop_bytes;
  logic [511:0] loop_data;
  packet_buffer #(
      .Width(520),
      .Depth(Words)
  ) u_frames (
      .clk_i,
      .rst_ni,
      .in_valid_i (tx_taken && to_loop),
      .in_ready_o (loop_in_ready),
      .in_data_i  ({tx_data_i.last, tx_data_i.bytes, tx_data_i.data}),
      .commit_i   (tx_taken && to_loop && tx_data_i.last),
      .drop_i     (1'b0),
      .room_o     (words_free),
      .out_valid_o(loop_valid),
      .out_ready_i(loop_take),
      .out_data_o ({loop_last, loop_bytes, loop_data})
  );

  // ---- What the wire brings while a frame of ours goes in ----
  // rx_inside_q: a frame of the wire has begun. loop_inside_q: one of ours has, on its way in.
  logic rx_inside_q, loop_inside_q, late_valid, late_in, late_in_ready, begin_loop;
  logic [CountBits:0] late;
  rnic_pkg::frame_beat_t late_data;
  assign begin_loop = loop_valid && !rx_inside_q && !eth_rx_valid_i && late == '0;
  assign loop_take  = begin_loop || loop_inside_q;
  assign late_in    = eth_rx_valid_i && (loop_inside_q || late != '0);

  stream_fifo #(
      .Width(rnic_pkg::FrameBeatBits),
      .Depth(Words)
  ) u_late (
      .clk_i,
      .rst_ni,
      .in_valid_i (late_in),
      .in_ready_o (late_in_ready),
      .in_data_i  (eth_rx_data_i),
      .out_valid_o(late_valid),
      .out_ready_i(!loop_inside_q),
      .out_data_o (late_data),
      .count_o    (late)
  );

  always_ff @(posedge clk_i) begin
    if (eth_rx_valid_i) rx_inside_q <= !eth_rx_data_i.last;
    if (loop_take && loop_valid) loop_inside_q <= !loop_last;
    if (!rst_ni) begin
      rx_inside_q   <= 1'b0;
      loop_inside_q <= 1'b0;
    end
  end

  always_comb begin : merge
    rx_valid_o = eth_rx_valid_i && late == '0;
    rx_data_o  = eth_rx_data_i;
    if (late != '0) begin
      rx_valid_o = late_valid;
      rx_data_o  = late_data;
    end
    if (loop_take) begin
      rx_valid_o      = loop_valid;
      rx_data_o.data  = loop_data;
      rx_data_o.bytes = loop_bytes;
      rx_data_o.last  = loop_last;
      rx_data_o.err   = 1'b0;
    end
  end
  assign busy_o = words_free != CountBits'(Words) || loop_valid || late != '0;

  `ASSERT(LoopHasRoom, !(tx_taken && to_loop) || loop_in_ready)
  `ASSERT(LateHasRoom, late_in_ready)
  `ASSERT(LateIsShort, late <= (CountBits + 1)'(LongestFrame))
  `ASSERT_HOLD(EthTxHold, eth_tx_valid_o, eth_tx_ready_i, eth_tx_data_o)
endmodule

`default_nettype wire
