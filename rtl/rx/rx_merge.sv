`default_nettype none
`include "assert.svh"

/// Merges two sources of received packets into one, a descriptor in turn from each that has one:
/// RoCEv2 packets (source 0) and Ethernet frames (source 1). The payload follows in the order of
/// the descriptors, which may be up to Moves packets ahead of it.
module rx_merge #(
    parameter int unsigned Moves = 64
) (
    input  wire logic                               clk_i,
    input  wire logic                               rst_ni,
    output logic                                    busy_o,
    input  wire logic [1:0]                         desc_valid_i,
    output logic [1:0]                              desc_ready_o,
    input  wire logic [2*rnic_pkg::RxDescBits-1:0]  desc_data_i,
    input  wire logic [1:0]                         payload_valid_i,
    output logic [1:0]                              payload_ready_o,
    input  wire logic [2*rnic_pkg::PayloadBeatBits-1:0] payload_data_i,
    output logic                                    desc_valid_o,
    input  wire logic                               desc_ready_i,
    output rnic_pkg::rx_desc_t                      desc_data_o,
    output logic                                    payload_valid_o,
    input  wire logic                               payload_ready_i,
    output rnic_pkg::payload_beat_t                 payload_data_o
);
  localparam int unsigned DescBits = rnic_pkg::RxDescBits;
  localparam int unsigned BeatBits = rnic_pkg::PayloadBeatBits;

  // ---- Descriptors: who has been offered stays until it is taken ----
  logic [1:0] turn, grant, grant_q;
  logic offered_q, accepted, moves_ready, move_valid, move_done, source;
  logic [$clog2(Moves)+1:0] moves;

  rr_arbiter #(
      .N(2)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .request_i(desc_valid_i),
      .advance_i(accepted),
      .grant_o  (turn)
  );

  assign grant        = offered_q ? grant_q : turn;
  assign desc_valid_o = grant != '0 && moves_ready;
  assign desc_data_o  = grant[1] ? desc_data_i[DescBits+:DescBits] : desc_data_i[0+:DescBits];
  assign accepted     = desc_valid_o && desc_ready_i;
  assign desc_ready_o = accepted ? grant : '0;

  always_ff @(posedge clk_i) begin
    grant_q   <= grant;
    offered_q <= desc_valid_o && !accepted;
    if (!rst_ni) offered_q <= 1'b0;
  end

  // ---- Payload, of those that have left and have some, in their order ----
  stream_fifo #(
      .Width(1),
      .Depth(Moves)
  ) u_moves (
      .clk_i,
      .rst_ni,
      .in_valid_i (accepted && desc_data_o.payload_length != '0),
      .in_ready_o (moves_ready),
      .in_data_i  (grant[1]),
      .out_valid_o(move_valid),
      .out_ready_i(move_done),
      .out_data_o (source),
      .count_o    (moves)
  );

  assign payload_valid_o = move_valid && payload_valid_i[source];
  assign payload_data_o  = source ? payload_data_i[BeatBits+:BeatBits]
                                  : payload_data_i[0+:BeatBits];
  assign payload_ready_o = (move_valid && payload_ready_i) ? {source, !source} : '0;
  assign move_done       = payload_valid_o && payload_ready_i && payload_data_o.last;
  assign busy_o          = moves != '0;

  `ASSERT_HOLD(DescHold, desc_valid_o, desc_ready_i, desc_data_o)
  `ASSERT_HOLD(PayloadHold, payload_valid_o, payload_ready_i, payload_data_o)
endmodule

`default_nettype wire
