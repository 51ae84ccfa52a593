`default_nettype none

/// Transitions of a QP and the attributes that each takes: InfiniBand specification 10.3.1 and
/// 11.2.5.2, without alternate paths. Combinational.
///
/// required_o: without them the transition is not done; optional_o: may be given too. A transition
/// to ERR or RESET takes none. UC has what RC has but for Reads, retries and time-outs; UD has a
/// Q_Key, and of the rest only its P_Key, port, first PSN, MTU and own addresses (Av). RawPacket
/// has its port.
module admin_qp_attrs (
    input  wire logic [2:0]  from_i,
    input  wire logic [7:0]  to_i,
    input  wire logic [1:0]  qp_type_i,
    output logic             legal_o,
    output logic [20:0]      required_o,
    output logic [20:0]      optional_o
);
  // What many take: the way to the peer, and what only concerns the peer's requests.
  localparam logic [20:0] Init = rnic_pkg::QpAttrPkeyIndex | rnic_pkg::QpAttrPort |
      rnic_pkg::QpAttrAccessFlags;
  localparam logic [20:0] Running = rnic_pkg::QpAttrCurState | rnic_pkg::QpAttrAccessFlags |
      rnic_pkg::QpAttrMinRnrTimer;

  // What only RC has, and what UD has not either.
  localparam logic [20:0] Reliable = rnic_pkg::QpAttrTimeout | rnic_pkg::QpAttrRetryCnt |
      rnic_pkg::QpAttrRnrRetry | rnic_pkg::QpAttrMaxRdAtomic | rnic_pkg::QpAttrMaxDestRdAtomic |
      rnic_pkg::QpAttrMinRnrTimer;
  localparam logic [20:0] Connected = Reliable | rnic_pkg::QpAttrAccessFlags |
      rnic_pkg::QpAttrDestQpn | rnic_pkg::QpAttrRqPsn;

  // All that RawPacket has.
  localparam logic [20:0] Raw = rnic_pkg::QpAttrPort | rnic_pkg::QpAttrCurState |
      rnic_pkg::QpAttrSqdNotify;

  logic [20:0] required, optional;
  logic to_sqd, from_sqd, is_ud;
  assign to_sqd   = to_i == {5'd0, rnic_pkg::QpStateSqd};
  assign from_sqd = from_i == rnic_pkg::QpStateSqd;
  assign is_ud    = qp_type_i == rnic_pkg::QpTypeUd;
  always_comb begin
    required_o = required;
    optional_o = optional;
    if (qp_type_i != rnic_pkg::QpTypeRc) begin
      required_o = required & ~(is_ud ? Connected : Reliable);
      optional_o = optional & ~(is_ud ? Connected : Reliable);
    end
    if (qp_type_i == rnic_pkg::QpTypeRawPacket) begin
      required_o = required & Raw;
      optional_o = optional & Raw & ~(to_sqd ? rnic_pkg::QpAttrPort : '0);
    end
    if (is_ud && to_sqd) optional_o = optional_o & ~(rnic_pkg::QpAttrAv | rnic_pkg::QpAttrPort);
    if (is_ud && legal_o && to_i != {5'd0, rnic_pkg::QpStateReset} &&
        to_i != {5'd0, rnic_pkg::QpStateErr}) begin
      if (from_i == rnic_pkg::QpStateReset) required_o = required_o | rnic_pkg::QpAttrQkey;
      else if (!to_sqd || from_sqd) optional_o = optional_o | rnic_pkg::QpAttrQkey;
    end
  end

  // Of RC.
  always_comb begin
    legal_o  = 1'b0;
    required = '0;
    optional = '0;
    unique case (to_i)
      {5'd0, rnic_pkg::QpStateReset}, {5'd0, rnic_pkg::QpStateErr}: legal_o = 1'b1;
      {5'd0, rnic_pkg::QpStateInit}: begin
        legal_o = from_i == rnic_pkg::QpStateReset || from_i == rnic_pkg::QpStateInit;
        if (from_i == rnic_pkg::QpStateReset) required = Init;
        else optional = Init;
      end
      {5'd0, rnic_pkg::QpStateRtr}: begin
        legal_o    = from_i == rnic_pkg::QpStateInit;
        required = rnic_pkg::QpAttrAv | rnic_pkg::QpAttrPathMtu | rnic_pkg::QpAttrDestQpn |
            rnic_pkg::QpAttrRqPsn | rnic_pkg::QpAttrMaxDestRdAtomic | rnic_pkg::QpAttrMinRnrTimer;
        optional = rnic_pkg::QpAttrAccessFlags | rnic_pkg::QpAttrPkeyIndex;
      end
      {5'd0, rnic_pkg::QpStateRts}: begin
        legal_o    = from_i == rnic_pkg::QpStateRtr || from_i == rnic_pkg::QpStateRts ||
            from_i == rnic_pkg::QpStateSqd || from_i == rnic_pkg::QpStateSqe;
        optional = Running;
        if (from_i == rnic_pkg::QpStateSqe) begin
          optional = rnic_pkg::QpAttrCurState | rnic_pkg::QpAttrAccessFlags;
        end
        if (from_i == rnic_pkg::QpStateRtr) begin
          required = rnic_pkg::QpAttrTimeout | rnic_pkg::QpAttrRetryCnt |
              rnic_pkg::QpAttrRnrRetry | rnic_pkg::QpAttrSqPsn | rnic_pkg::QpAttrMaxRdAtomic;
        end
      end
      {5'd0, rnic_pkg::QpStateSqd}: begin
        legal_o    = from_i == rnic_pkg::QpStateRts || from_i == rnic_pkg::QpStateSqd;
        optional = rnic_pkg::QpAttrSqdNotify;
        if (from_i == rnic_pkg::QpStateSqd) begin
          optional = rnic_pkg::QpAttrPort | rnic_pkg::QpAttrAv | rnic_pkg::QpAttrTimeout |
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
