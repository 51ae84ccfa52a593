`default_nettype none

/// Extended headers of a BTH opcode (InfiniBand specification 9.2.1, table 38): known_o for those
/// of RC, UC and UD, and for a congestion notification (congestion_o; annex A17.9.3: 16 reserved
/// bytes and no payload). Reserved ones of RC count as known, without headers: the responder has an
/// answer for them (9.7.4.1.3). ext_words_o: 32-bit words between BTH and payload. The RETH, AETH
/// or DETH, where there is one, comes first; immediate_o: an ImmDt or IETH comes then. An
/// AtomicAckETH (original_o) counts as payload: its 8 bytes go where a Read response's data goes.
/// empty_o: no payload follows, by what the packet is: an acknowledge packet (decisions 48), a
/// congestion notification. (A request that has some is another's to judge: it has an answer.)
module rx_parse_opcode (
    input  wire logic [7:0] opcode_i,
    output logic            known_o,
    output logic [2:0]      ext_words_o,
    output logic            reth_o,
    output logic            aeth_o,
    output logic            atomic_o,
    output logic            deth_o,
    output logic            immediate_o,
    output logic            original_o,
    output logic            empty_o,
    output logic            congestion_o
);
  // Words: RETH 4, AETH 1, AtomicETH 7, DETH 2, ImmDt 1, IETH 1.
  always_comb begin
    known_o     = 1'b1;
    ext_words_o = 3'd0;
    reth_o      = 1'b0;
    aeth_o      = 1'b0;
    atomic_o    = 1'b0;
    deth_o      = 1'b0;
    immediate_o = 1'b0;
    original_o  = 1'b0;
    empty_o     = 1'b0;
    congestion_o = 1'b0;
    unique case (opcode_i)
      // SEND and WRITE first, middle, last, only: RC, UC
      8'h00, 8'h01, 8'h02, 8'h04, 8'h20, 8'h21, 8'h22, 8'h24: ext_words_o = 3'd0;
      8'h07, 8'h08, 8'h27, 8'h28: ext_words_o = 3'd0;
      // ... with immediate data
      8'h03, 8'h05, 8'h09, 8'h23, 8'h25, 8'h29: begin
        ext_words_o = 3'd1;
        immediate_o = 1'b1;
      end
      8'h06, 8'h0a, 8'h26, 8'h2a: begin
        ext_words_o = 3'd4;
        reth_o      = 1'b1;
      end
      8'h0b, 8'h2b: begin
        ext_words_o = 3'd5;
        reth_o      = 1'b1;
        immediate_o = 1'b1;
      end
      // RC: READ request; responses and ACK; ATOMIC ACK; ATOMIC requests; SEND with invalidate
      8'h0c: begin
        ext_words_o = 3'd4;
        reth_o      = 1'b1;
      end
      8'h0e: ext_words_o = 3'd0;
      8'h15, 8'h18, 8'h19, 8'h1a, 8'h1b, 8'h1c, 8'h1d, 8'h1e, 8'h1f: ext_words_o = 3'd0;
      8'h0d, 8'h0f, 8'h10, 8'h11, 8'h12: begin
        ext_words_o = 3'd1;
        aeth_o      = 1'b1;
        empty_o     = opcode_i == rnic_pkg::RcOpcodeAcknowledge;
        original_o  = opcode_i == rnic_pkg::RcOpcodeAtomicAcknowledge;
      end
      8'h13, 8'h14: begin
        ext_words_o = 3'd7;
        atomic_o    = 1'b1;
      end
      8'h16, 8'h17: begin
        ext_words_o = 3'd1;
        immediate_o = 1'b1;
      end
      // UD: SEND only, without and with immediate data
      8'h64: begin
        ext_words_o = 3'd2;
        deth_o      = 1'b1;
      end
      8'h65: begin
        ext_words_o = 3'd3;
        deth_o      = 1'b1;
        immediate_o = 1'b1;
      end
      8'h81: begin
        ext_words_o  = 3'd4;
        empty_o      = 1'b1;
        congestion_o = 1'b1;
      end
      default: known_o = 1'b0;
    endcase
  end
endmodule

`default_nettype wire
