`default_nettype none

/// What the counters of a QP are told (QpCounter), from signals that stand beside the global
/// counters. Combinational.
///
/// Sources: 0 the protocol checks of received packets, 1 their placing, 2 the responder's packets
/// that go to transmission, 3 faults of the send path, 4 recovery (its bits of event_i, of
/// recovery_qp_i). Source i is bits i*QpCounters and i*8 upward.
module qp_event_taps (
    input  wire logic [rnic_pkg::QpCounters-1:0]  rx_event_i,
    input  wire logic [7:0]                       rx_qp_i,
    input  wire logic                             place_fault_i,
    input  wire logic [7:0]                       place_qp_i,
    // Pulses: a packet, a fault, is handed over
    input  wire logic                             rsp_desc_i,
    input  wire rnic_pkg::tx_desc_t               rsp_desc_data_i,
    input  wire logic                             tx_fault_i,
    input  wire rnic_pkg::tx_fault_t              tx_fault_data_i,
    input  wire logic [rnic_pkg::NumCounters-1:0] event_i,
    input  wire logic [7:0]                       recovery_qp_i,
    output logic [5*rnic_pkg::QpCounters-1:0]     qp_event_o,
    output logic [5*8-1:0]                        qp_event_qp_o
);
  logic [rnic_pkg::QpCounters-1:0] place, respond, fault, recover;
  logic [2:0] kind;
  assign kind = rsp_desc_data_i.syndrome[7:5];

  always_comb begin
    {place, respond, fault, recover} = '0;
    place[rnic_pkg::QpCounterPlaceFaults] = place_fault_i;
    if (rsp_desc_i && rsp_desc_data_i.opcode == rnic_pkg::RcOpcodeAcknowledge) begin
      respond[rnic_pkg::QpCounterNaksSent]    = kind == rnic_pkg::AethSyndromeNakPsn[7:5] &&
                                                !rsp_desc_data_i.quiet;
      respond[rnic_pkg::QpCounterRnrNaksSent] = kind == rnic_pkg::AethSyndromeRnrNak[7:5];
    end
    fault[rnic_pkg::QpCounterSendFaults]         = tx_fault_i && !tx_fault_data_i.sent;
    recover[rnic_pkg::QpCounterSequenceRetries]  = event_i[rnic_pkg::CounterSequenceRetries];
    recover[rnic_pkg::QpCounterAckTimeouts]      = event_i[rnic_pkg::CounterAckTimeouts];
    recover[rnic_pkg::QpCounterRetriesExhausted] = event_i[rnic_pkg::CounterRetriesExhausted];
  end
  assign qp_event_o    = {recover, fault, respond, place, rx_event_i};
  assign qp_event_qp_o = {
    recovery_qp_i, tx_fault_data_i.qp, rsp_desc_data_i.qp, place_qp_i, rx_qp_i
  };

  logic unused_bits;
  assign unused_bits = &{1'b0, rsp_desc_data_i, tx_fault_data_i, event_i};
endmodule

`default_nettype wire
