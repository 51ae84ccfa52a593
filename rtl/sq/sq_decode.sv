`default_nettype none

/// What the opcode of a send WQE asks for. Combinational.
module sq_decode (
    input  wire logic [7:0] opcode_i,
    output logic            known_o,
    output logic            is_send_o,
    output logic            is_write_o,
    // RDMA READ or atomic: the peer answers with data
    output logic            is_read_o,
    output logic            is_atomic_o,
    // Bind, LocalInvalidate, FastRegister: nothing is sent
    output logic            is_memory_o,
    output logic            immediate_o,
    output logic            invalidate_o
);
  always_comb begin
    {known_o, is_send_o, is_write_o, is_read_o, is_atomic_o, is_memory_o} = 6'b100000;
    {immediate_o, invalidate_o} = 2'b00;
    unique case (opcode_i)
      rnic_pkg::WqeOpcodeSend:           is_send_o = 1'b1;
      rnic_pkg::WqeOpcodeSendImmediate:  {is_send_o, immediate_o} = 2'b11;
      rnic_pkg::WqeOpcodeSendInvalidate: {is_send_o, invalidate_o} = 2'b11;
      rnic_pkg::WqeOpcodeWrite:          is_write_o = 1'b1;
      rnic_pkg::WqeOpcodeWriteImmediate: {is_write_o, immediate_o} = 2'b11;
      rnic_pkg::WqeOpcodeRead:           is_read_o = 1'b1;
      rnic_pkg::WqeOpcodeCompareSwap,
      rnic_pkg::WqeOpcodeFetchAdd:       {is_read_o, is_atomic_o} = 2'b11;
      rnic_pkg::WqeOpcodeBindWindow1,
      rnic_pkg::WqeOpcodeBindWindow2,
      rnic_pkg::WqeOpcodeLocalInvalidate,
      rnic_pkg::WqeOpcodeFastRegister:   is_memory_o = 1'b1;
      default:                           known_o = 1'b0;
    endcase
  end
endmodule

`default_nettype wire
