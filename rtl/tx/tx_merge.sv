`default_nettype none
`include "assert.svh"

/// Merges two sources of packets into one, in turn: a descriptor and all pieces of its packet, then
/// the next packet. accepted_o pulses when a descriptor is taken from a source.
module tx_merge (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic [1:0]                desc_valid_i,
    output logic [1:0]                     desc_ready_o,
    input  wire logic [2*rnic_pkg::TxDescBits-1:0] desc_data_i,
    input  wire logic [1:0]                piece_valid_i,
    output logic [1:0]                     piece_ready_o,
    input  wire logic [2*rnic_pkg::SgPieceBits-1:0] piece_data_i,
    output logic                           accepted_o,
    output logic                           desc_valid_o,
    input  wire logic                      desc_ready_i,
    output rnic_pkg::tx_desc_t             desc_data_o,
    output logic                           piece_valid_o,
    input  wire logic                      piece_ready_i,
    output rnic_pkg::sg_piece_t            piece_data_o
);
  // Idle: the next packet comes from whoever has its turn. Pieces: the pieces of the packet of
  // source_q.
  typedef enum logic {
    Idle,
    Pieces
  } state_e;
  state_e state_q, state_d;

  logic [1:0] grant;
  logic source_q, source_d, desc_take, desc_room, piece_take, piece_room;
  rnic_pkg::tx_desc_t desc;
  rnic_pkg::sg_piece_t piece;

  rr_arbiter #(
      .N(2)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .request_i(desc_valid_i),
      .advance_i(desc_take),
      .grant_o  (grant)
  );

  assign desc = grant[1] ? desc_data_i[rnic_pkg::TxDescBits+:rnic_pkg::TxDescBits] :
      desc_data_i[0+:rnic_pkg::TxDescBits];
  assign piece = source_q ? piece_data_i[rnic_pkg::SgPieceBits+:rnic_pkg::SgPieceBits] :
      piece_data_i[0+:rnic_pkg::SgPieceBits];

  always_comb begin
    state_d       = state_q;
    source_d      = source_q;
    desc_take     = 1'b0;
    piece_take    = 1'b0;
    desc_ready_o  = '0;
    piece_ready_o = '0;
    unique case (state_q)
      Idle: begin
        desc_ready_o = desc_room ? grant : '0;
        desc_take    = desc_room && grant != '0;
        source_d     = grant[1];
        if (desc_take && desc.payload_length != '0) state_d = Pieces;
      end
      Pieces: begin
        piece_ready_o[source_q] = piece_room;
        piece_take              = piece_room && piece_valid_i[source_q];
        if (piece_take && piece.last) state_d = Idle;
      end
      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q  <= state_d;
    source_q <= source_d;
    if (!rst_ni) begin
      state_q  <= Idle;
      source_q <= 1'b0;
    end
  end

  assign accepted_o = desc_take;

  skid_buffer #(
      .Width(rnic_pkg::TxDescBits)
  ) u_desc (
      .clk_i,
      .rst_ni,
      .in_valid_i (desc_take),
      .in_ready_o (desc_room),
      .in_data_i  (desc),
      .out_valid_o(desc_valid_o),
      .out_ready_i(desc_ready_i),
      .out_data_o (desc_data_o)
  );

  skid_buffer #(
      .Width(rnic_pkg::SgPieceBits)
  ) u_piece (
      .clk_i,
      .rst_ni,
      .in_valid_i (piece_take),
      .in_ready_o (piece_room),
      .in_data_i  (piece),
      .out_valid_o(piece_valid_o),
      .out_ready_i(piece_ready_i),
      .out_data_o (piece_data_o)
  );
endmodule

`default_nettype wire
