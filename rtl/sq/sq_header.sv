`default_nettype none

/// Where the data segments of a send WQE (or its inline bytes) start: after one segment for a Send,
/// two for a Write or Read, three for an atomic or a memory operation, four for a Send of a UD
/// queue pair. Combinational.
module sq_header (
    input  wire logic [7:0] opcode_i,
    input  wire logic       is_ud_i,
    output logic [2:0]      segments_o
);
  logic is_send, is_atomic, is_memory;
  logic [4:0] unused_decode;
  sq_decode u_decode (
      .opcode_i,
      .known_o     (unused_decode[0]),
      .is_send_o   (is_send),
      .is_write_o  (unused_decode[1]),
      .is_read_o   (unused_decode[2]),
      .is_atomic_o (is_atomic),
      .is_memory_o (is_memory),
      .immediate_o (unused_decode[3]),
      .invalidate_o(unused_decode[4])
  );
  always_comb begin
    segments_o = 3'd2;
    if (is_atomic || is_memory) segments_o = 3'd3;
    if (is_send || opcode_i == rnic_pkg::WqeOpcodeLocalInvalidate) segments_o = 3'd1;
    if (is_ud_i) segments_o = 3'd4;
  end
endmodule

`default_nettype wire
