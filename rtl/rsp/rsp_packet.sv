`default_nettype none

/// The next response packet of a Read: opcode, PSN, AETH and the piece of memory, from the Read and
/// how much of it has been sent. Or, for atomic_i, the answer to an atomic. Combinational.
module rsp_packet (
    input  wire logic [7:0]          qp_i,
    input  wire logic [2:0]          mtu_i,
    input  wire logic [23:0]         pd_i,
    input  wire logic [63:0]         va_i,
    input  wire logic [31:0]         key_i,
    input  wire logic [31:0]         length_i,
    input  wire logic [23:0]         psn_i,
    input  wire logic [23:0]         msn_i,
    // ACK with its credits
    input  wire logic [7:0]          syndrome_i,
    input  wire logic [31:0]         sent_i,
    input  wire logic                atomic_i,
    input  wire logic [63:0]         answer_i,
    output logic                     last_o,
    output logic [31:0]              sent_o,
    output rnic_pkg::tx_desc_t       desc_o,
    output rnic_pkg::sg_piece_t      piece_o
);
  logic first;
  logic [3:0] log_mtu;
  logic [12:0] mtu, payload;
  logic [31:0] rest;

  assign log_mtu = 4'd7 + 4'(mtu_i);
  assign mtu     = 13'd1 << log_mtu;
  assign rest    = length_i - sent_i;
  assign first   = sent_i == '0;
  assign last_o  = rest <= 32'(mtu);
  assign payload = last_o ? rest[12:0] : mtu;
  assign sent_o  = last_o ? '0 : sent_i + 32'(mtu);

  always_comb begin
    desc_o                = '0;
    desc_o.qp             = qp_i;
    desc_o.responder      = 1'b1;
    desc_o.psn            = psn_i + 24'(sent_i >> log_mtu);
    desc_o.payload_length = payload;
    desc_o.opcode         = rnic_pkg::RcOpcodeReadResponseMiddle;
    if (first && last_o) desc_o.opcode = rnic_pkg::RcOpcodeReadResponseOnly;
    else if (first) desc_o.opcode = rnic_pkg::RcOpcodeReadResponseFirst;
    else if (last_o) desc_o.opcode = rnic_pkg::RcOpcodeReadResponseLast;
    // A Middle has no AETH (InfiniBand specification 9.4.4).
    if (first || last_o) begin
      desc_o.syndrome = syndrome_i;
      desc_o.msn      = msn_i;
    end
    if (atomic_i) begin
      desc_o.psn            = psn_i;
      desc_o.payload_length = 13'd8;
      desc_o.opcode         = rnic_pkg::RcOpcodeAtomicAcknowledge;
      desc_o.syndrome       = syndrome_i;
      desc_o.msn            = msn_i;
    end
  end

  always_comb begin
    piece_o        = '0;
    piece_o.last   = 1'b1;
    piece_o.key    = key_i;
    piece_o.va     = va_i + 64'(sent_i);
    piece_o.length = payload;
    piece_o.pd     = pd_i;
    piece_o.access = rnic_pkg::AccessRemoteRead;
    // AtomicAckETH: most significant byte first.
    if (atomic_i) begin
      piece_o             = '0;
      piece_o.inline_data = 1'b1;
      piece_o.last        = 1'b1;
      piece_o.length      = 13'd8;
      for (int unsigned i = 0; i < 8; i++) piece_o.data[8*i+:8] = answer_i[8*(7-i)+:8];
    end
  end
endmodule

`default_nettype wire
