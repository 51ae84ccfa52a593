`default_nettype none

/// From the slot and bit of an event its type comes back, whatever else is due there; and sources
/// share no slot.
module prove_event_kind (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic [7:0] event_type_i,
    input wire logic [7:0] index_i,
    input wire logic [7:0] newest_i,
    input wire logic [7:0] other_type_i,
    input wire logic [7:0] other_index_i
);
  logic [9:0] slot, other_slot;
  logic [3:0] kind, other_kind, of_bit, unused_bit;
  logic [7:0] of_type, unused_type;

  event_kind u_dut (
      .event_type_i,
      .index_i,
      .slot_o     (slot),
      .bit_o      (kind),
      .of_slot_i  (slot),
      .of_due_i   (kind),
      .of_newest_i(kind[2] ? event_type_i : newest_i),
      .of_bit_o   (of_bit),
      .of_type_o  (of_type)
  );
  event_kind u_other (
      .event_type_i(other_type_i),
      .index_i     (other_index_i),
      .slot_o      (other_slot),
      .bit_o       (other_kind),
      .of_slot_i   ('0),
      .of_due_i    ('0),
      .of_newest_i ('0),
      .of_bit_o    (unused_bit),
      .of_type_o   (unused_type)
  );

  // Which object an event is about (host interface, EqeType).
  function automatic logic [1:0] source(input logic [7:0] of);
    source = 2'd1;
    if (of == rnic_pkg::EqeTypeCompletion || of == rnic_pkg::EqeTypeCqError) source = 2'd0;
    if (of == rnic_pkg::EqeTypeSrqLimit || of == rnic_pkg::EqeTypeSrqError) source = 2'd2;
    if (of == rnic_pkg::EqeTypeDeviceFatal || of == rnic_pkg::EqeTypePortActive ||
        of == rnic_pkg::EqeTypePortError) begin
      source = 2'd3;
    end
  endfunction
  always_comb begin
    if (rst_ni) begin
      OneBit: assert (kind != '0 && (kind & (kind - 4'd1)) == '0 && of_bit == kind);
      ComesBack: assert (of_type == event_type_i);
      Range: assert (slot < 10'd770);
      Apart: assert (slot != other_slot || source(event_type_i) == source(other_type_i));
      ApartToo: assert (slot != other_slot || source(event_type_i) == 2'd3 ||
                        index_i == other_index_i);
    end
  end
endmodule

`default_nettype wire
