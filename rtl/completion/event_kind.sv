`default_nettype none

/// Events have sources: CQs, QPs, SRQs, and of the device two (itself and its port). Each source
/// has a slot (event_gate), and a bit in it for each kind of event that it makes. Combinational,
/// both ways: from an event to its slot and bit, and from a slot and its lowest bit to the type.
///
/// The errors of a QP share a bit, and so do the two events of the port: of those the slot keeps
/// the type of the newest.
module event_kind (
    input  wire logic [7:0] event_type_i,
    input  wire logic [7:0] index_i,
    output logic [9:0]      slot_o,
    output logic [3:0]      bit_o,
    input  wire logic [9:0] of_slot_i,
    input  wire logic [3:0] of_due_i,
    input  wire logic [7:0] of_newest_i,
    output logic [3:0]      of_bit_o,
    output logic [7:0]      of_type_o
);
  localparam logic [1:0] Cq = 2'd0, Qp = 2'd1, Srq = 2'd2, Device = 2'd3;

  always_comb begin
    slot_o = {Qp, index_i};
    bit_o  = 4'b0100;
    unique case (event_type_i)
      rnic_pkg::EqeTypeCompletion: {slot_o[9:8], bit_o} = {Cq, 4'b0001};
      rnic_pkg::EqeTypeCqError: {slot_o[9:8], bit_o} = {Cq, 4'b0010};
      rnic_pkg::EqeTypeCommEstablished: bit_o = 4'b0001;
      rnic_pkg::EqeTypeSqDrained: bit_o = 4'b0010;
      rnic_pkg::EqeTypeLastWqeReached: bit_o = 4'b1000;
      rnic_pkg::EqeTypeSrqLimit: {slot_o[9:8], bit_o} = {Srq, 4'b0001};
      rnic_pkg::EqeTypeSrqError: {slot_o[9:8], bit_o} = {Srq, 4'b0010};
      rnic_pkg::EqeTypeDeviceFatal: {slot_o, bit_o} = {Device, 8'd0, 4'b0100};
      rnic_pkg::EqeTypePortActive, rnic_pkg::EqeTypePortError:
      {slot_o, bit_o} = {Device, 8'd1, 4'b0100};
      default: ;  // errors of a QP
    endcase
  end

  assign of_bit_o = of_due_i & (~of_due_i + 4'd1);
  always_comb begin
    of_type_o = of_newest_i;
    unique case ({of_slot_i[9:8], of_bit_o})
      {Cq, 4'b0001}: of_type_o = rnic_pkg::EqeTypeCompletion;
      {Cq, 4'b0010}: of_type_o = rnic_pkg::EqeTypeCqError;
      {Qp, 4'b0001}: of_type_o = rnic_pkg::EqeTypeCommEstablished;
      {Qp, 4'b0010}: of_type_o = rnic_pkg::EqeTypeSqDrained;
      {Qp, 4'b1000}: of_type_o = rnic_pkg::EqeTypeLastWqeReached;
      {Srq, 4'b0001}: of_type_o = rnic_pkg::EqeTypeSrqLimit;
      {Srq, 4'b0010}: of_type_o = rnic_pkg::EqeTypeSrqError;
      default: ;
    endcase
  end

  logic unused_bits;
  assign unused_bits = ^of_slot_i[7:0];
endmodule

`default_nettype wire
