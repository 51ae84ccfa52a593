`default_nettype none

/// What the opcode of a request says (InfiniBand specification, table 38). Combinational. An opcode
/// that is none of them sets nothing. is_read_o: READ and atomics, of which is_atomic_o are the
/// latter. starts_o, ends_o: first and last packet of a message.
module rx_request_opcode (
    input  wire logic [7:0] opcode_i,
    output logic            is_send_o,
    output logic            is_write_o,
    output logic            is_read_o,
    output logic            is_atomic_o,
    output logic            immediate_o,
    output logic            invalidate_o,
    output logic            starts_o,
    output logic            ends_o
);
  always_comb begin : decode
    {is_send_o, is_write_o, is_read_o, starts_o, ends_o} = 5'b00000;
    {is_atomic_o, immediate_o, invalidate_o} = 3'b000;
    unique case (opcode_i)
      rnic_pkg::RcOpcodeSendFirst: {is_send_o, starts_o} = 2'b11;
      rnic_pkg::RcOpcodeSendMiddle: is_send_o = 1'b1;
      rnic_pkg::RcOpcodeSendLast: {is_send_o, ends_o} = 2'b11;
      rnic_pkg::RcOpcodeSendOnly: {is_send_o, starts_o, ends_o} = 3'b111;
      rnic_pkg::RcOpcodeWriteFirst: {is_write_o, starts_o} = 2'b11;
      rnic_pkg::RcOpcodeWriteMiddle: is_write_o = 1'b1;
      rnic_pkg::RcOpcodeWriteLast: {is_write_o, ends_o} = 2'b11;
      rnic_pkg::RcOpcodeWriteOnly: {is_write_o, starts_o, ends_o} = 3'b111;
      rnic_pkg::RcOpcodeReadRequest: {is_read_o, starts_o, ends_o} = 3'b111;
      rnic_pkg::RcOpcodeSendLastImmediate: {is_send_o, ends_o, immediate_o} = 3'b111;
      rnic_pkg::RcOpcodeSendOnlyImmediate: {is_send_o, starts_o, ends_o, immediate_o} = 4'b1111;
      rnic_pkg::RcOpcodeSendLastInvalidate: {is_send_o, ends_o, invalidate_o} = 3'b111;
      rnic_pkg::RcOpcodeSendOnlyInvalidate: {is_send_o, starts_o, ends_o, invalidate_o} = 4'b1111;
      rnic_pkg::RcOpcodeWriteLastImmediate: {is_write_o, ends_o, immediate_o} = 3'b111;
      rnic_pkg::RcOpcodeWriteOnlyImmediate: {is_write_o, starts_o, ends_o, immediate_o} = 4'b1111;
      rnic_pkg::RcOpcodeCompareSwap,
      rnic_pkg::RcOpcodeFetchAdd: {is_read_o, is_atomic_o, starts_o, ends_o} = 4'b1111;
      default: ;
    endcase
  end
endmodule

`default_nettype wire
