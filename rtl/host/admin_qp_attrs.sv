`default_nettype none

/// Transitions of a QP and the attributes that each takes: InfiniBand specification 10.3.1 and
/// 11.2.5.2, without alternate paths. Combinational.
///
/// required_o: without them the transition is not done; optional_o: may be given too. A transition
/// to ERR or RESET takes none.
module admin_qp_attrs (
    input  wire logic [2:0]  from_i,
    input  wire logic [7:0]  to_i,
    output logic             legal_o,
    output logic [20:0]      required_o,
    output logic [20:0]      optional_o
);
  // What many take: the way to the peer, and what only concerns the peer's requests.
  localparam logic [20:0] Init = rnic_pkg::QpAttrPkeyIndex | rnic_pkg::QpAttrPort |
      rnic_pkg::QpAttrAccessFlags;
  localparam logic [20:0] Running = rnic_pkg::QpAttrCurState | rnic_pkg::QpAttrAccessFlags |
      rnic_pkg::QpAttrMinRnrTimer;

  always_comb begin
    legal_o    = 1'b0;
    required_o = '0;
    optional_o = '0;
    unique case (to_i)
      {5'd0, rnic_pkg::QpStateReset}, {5'd0, rnic_pkg::QpStateErr}: legal_o = 1'b1;
      {5'd0, rnic_pkg::QpStateInit}: begin
        legal_o = from_i == rnic_pkg::QpStateReset || from_i == rnic_pkg::QpStateInit;
        if (from_i == rnic_pkg::QpStateReset) required_o = Init;
        else optional_o = Init;
      end
      {5'd0, rnic_pkg::QpStateRtr}: begin
        legal_o    = from_i == rnic_pkg::QpStateInit;
        required_o = rnic_pkg::QpAttrAv | rnic_pkg::QpAttrPathMtu | rnic_pkg::QpAttrDestQpn |
            rnic_pkg::QpAttrRqPsn | rnic_pkg::QpAttrMaxDestRdAtomic | rnic_pkg::QpAttrMinRnrTimer;
        optional_o = rnic_pkg::QpAttrAccessFlags | rnic_pkg::QpAttrPkeyIndex;
      end
      {5'd0, rnic_pkg::QpStateRts}: begin
        legal_o    = from_i == rnic_pkg::QpStateRtr || from_i == rnic_pkg::QpStateRts ||
            from_i == rnic_pkg::QpStateSqd || from_i == rnic_pkg::QpStateSqe;
        optional_o = Running;
        if (from_i == rnic_pkg::QpStateSqe) begin
          optional_o = rnic_pkg::QpAttrCurState | rnic_pkg::QpAttrAccessFlags;
        end
        if (from_i == rnic_pkg::QpStateRtr) begin
          required_o = rnic_pkg::QpAttrTimeout | rnic_pkg::QpAttrRetryCnt |
              rnic_pkg::QpAttrRnrRetry | rnic_pkg::QpAttrSqPsn | rnic_pkg::QpAttrMaxRdAtomic;
        end
      end
      {5'd0, rnic_pkg::QpStateSqd}: begin
        legal_o    = from_i == rnic_pkg::QpStateRts || from_i == rnic_pkg::QpStateSqd;
        optional_o = rnic_pkg::QpAttrSqdNotify;
        if (from_i == rnic_pkg::QpStateSqd) begin
          optional_o = rnic_pkg::QpAttrPort | rnic_pkg::QpAttrAv | rnic_pkg::QpAttrTimeout |
              rnic_pkg::QpAttrRetryCnt | rnic_pkg::QpAttrRnrRetry | rnic_pkg::QpAttrMaxRdAtomic |
              rnic_pkg::QpAttrMaxDestRdAtomic | rnic_pkg::QpAttrAccessFlags |
              rnic_pkg::QpAttrPkeyIndex | rnic_pkg::QpAttrMinRnrTimer;
        end
      end
      default: ;
    endcase
  end
endmodule

`default_nettype wire
