`default_nettype none

/// What CreateQp and ModifyQp may ask for: fields, state transitions, attributes. Combinational.
///
/// A transition that is not legal (admin_qp_attrs), an attribute that it does not take and a wrong
/// cur_state are BadState, and so is SQE to RTS while the send queue is being flushed; a missing
/// attribute and one that is out of range are BadParameter.
/// Fields of attributes that are not given are not looked at.
module admin_qp_check (
    input  wire rnic_pkg::admin_command_t command_i,
    input  wire logic [2:0]               state_i,
    input  wire logic [1:0]               qp_type_i,
    // Nothing of the send queue waits for its flush
    input  wire logic                     flushed_i,
    output logic [7:0]                    create_status_o,
    output logic [7:0]                    modify_status_o,
    output logic                          to_err_o,
    output logic                          to_reset_o,
    output logic                          takes_path_o
);
  localparam logic [7:0] MaxReads = rnic_pkg::MaxReadsOutstanding[7:0];
  localparam logic [7:0] MaxDepth = rnic_pkg::MaxLogQueueDepth[7:0];
  localparam logic [7:0] MaxStride = rnic_pkg::MaxLogStride[7:0];
  localparam logic [7:0] MinSendStride = rnic_pkg::MinLogSendStride[7:0];
  localparam logic [7:0] MinReceiveStride = rnic_pkg::MinLogReceiveStride[7:0];
  localparam logic [7:0] MaxMtu = 8'd5;
  // An IPv4 address is ::ffff:a.b.c.d (RFC 4291 2.5.5.2), its first byte in the low byte here.
  localparam logic [95:0] Ipv4Prefix = {16'hFFFF, 80'd0};

  rnic_pkg::admin_create_qp_t create;
  rnic_pkg::admin_modify_qp_t modify;
  assign create = command_i.body;
  assign modify = command_i.body;

  // ---- CreateQp -------------------------------------------------------------------------------
  logic aligned, sizes_ok, uar_ok, is_raw, type_ok, srq_ok, general, qpn_ok;
  assign aligned  = create.sq_base[11:0] == '0 && (create.use_srq || create.rq_base[11:0] == '0) &&
      create.retired_address[2:0] == '0;
  assign sizes_ok = create.sq_log_depth <= MaxDepth &&
      create.sq_log_stride >= MinSendStride && create.sq_log_stride <= MaxStride &&
      (create.use_srq || (create.rq_log_depth <= MaxDepth &&
      create.rq_log_stride >= MinReceiveStride && create.rq_log_stride <= MaxStride));
  assign uar_ok   = create.uar != '0 && !create.uar[7];
  // Raw frames are the network stack's.
  assign is_raw   = create.qp_type == {6'd0, rnic_pkg::QpTypeRawPacket};
  assign type_ok  = create.qp_type[7:2] == '0 &&
      (!is_raw || create.uar == rnic_pkg::KernelUar[7:0]);
  // UC gives receive WQEs back, an SRQ takes none.
  assign srq_ok   = !create.use_srq ||
      (create.qp_type != {6'd0, rnic_pkg::QpTypeUc} && !is_raw);
  // The general service interface belongs to the kernel driver (InfiniBand specification 10.2.4.1).
  assign general  = command_i.number != 32'd1 || (create.uar == rnic_pkg::KernelUar[7:0] &&
      create.qp_type == {6'd0, rnic_pkg::QpTypeUd});
  // A multicast datagram has that QPN (10.5.2); QPN 0 is that of subnet management, which RoCE has
  // not (annex A16).
  assign qpn_ok   = command_i.number != rnic_pkg::MulticastQpn && command_i.number != '0;
  assign create_status_o = (qpn_ok && aligned && sizes_ok && uar_ok && type_ok && srq_ok && general)
      ? rnic_pkg::AdminStatusSuccess : rnic_pkg::AdminStatusBadParameter;

  // ---- ModifyQp -------------------------------------------------------------------------------
  logic legal, taken, complete, fields_ok, mtu_ok, ip_ok, vlan_ok, cur_state_ok;
  logic is_ud;
  logic [20:0] given, required, optional;

  admin_qp_attrs u_attrs (
      .from_i    (state_i),
      .to_i      (modify.next_state),
      .qp_type_i (qp_type_i),
      .legal_o   (legal),
      .required_o(required),
      .optional_o(optional)
  );
  assign given        = modify.attr_mask & ~rnic_pkg::QpAttrState;
  assign taken        = (given & ~(required | optional)) == '0;
  assign complete     = (required & ~given) == '0;
  assign cur_state_ok = (given & rnic_pkg::QpAttrCurState) == '0 ||
      modify.cur_state == {5'd0, state_i};

  assign mtu_ok = modify.path_mtu != '0 && modify.path_mtu <= MaxMtu;
  assign is_ud  = qp_type_i == rnic_pkg::QpTypeUd;
  assign ip_ok  = modify.ipv6 || is_ud ||
      (modify.source_ip[95:0] == Ipv4Prefix && modify.dest_ip[95:0] == Ipv4Prefix);
  // The reserved VID is never sent (IEEE 802.1Q 9.6); a UD QP has its tags in its WQEs.
  assign vlan_ok = !modify.vlan || is_ud || modify.vlan_id != rnic_pkg::ReservedVid[11:0];
  always_comb begin
    fields_ok = 1'b1;
    if ((given & rnic_pkg::QpAttrAv) != '0 && !(ip_ok && vlan_ok)) fields_ok = 1'b0;
    if ((given & rnic_pkg::QpAttrPathMtu) != '0 && !mtu_ok) fields_ok = 1'b0;
    if ((given & rnic_pkg::QpAttrMinRnrTimer) != '0 && modify.min_rnr_timer[7:5] != '0) begin
      fields_ok = 1'b0;
    end
    if ((given & rnic_pkg::QpAttrTimeout) != '0 && modify.ack_timeout[7:5] != '0) begin
      fields_ok = 1'b0;
    end
    if ((given & rnic_pkg::QpAttrRetryCnt) != '0 && modify.retry_count[3]) fields_ok = 1'b0;
    if ((given & rnic_pkg::QpAttrRnrRetry) != '0 && modify.rnr_retry[3]) fields_ok = 1'b0;
    if ((given & rnic_pkg::QpAttrMaxRdAtomic) != '0 && modify.max_rd_atomic > MaxReads) begin
      fields_ok = 1'b0;
    end
    if ((given & rnic_pkg::QpAttrMaxDestRdAtomic) != '0 &&
        modify.max_dest_rd_atomic > MaxReads) begin
      fields_ok = 1'b0;
    end
  end

  assign to_err_o     = modify.next_state == {5'd0, rnic_pkg::QpStateErr};
  assign to_reset_o   = modify.next_state == {5'd0, rnic_pkg::QpStateReset};
  assign takes_path_o = (given & (rnic_pkg::QpAttrPkeyIndex | rnic_pkg::QpAttrAv |
      rnic_pkg::QpAttrDestQpn)) != '0;
  always_comb begin
    modify_status_o = rnic_pkg::AdminStatusSuccess;
    if (!complete || !fields_ok) modify_status_o = rnic_pkg::AdminStatusBadParameter;
    if (!legal || !taken || !cur_state_ok) modify_status_o = rnic_pkg::AdminStatusBadState;
    if (state_i == rnic_pkg::QpStateSqe && !flushed_i && !to_err_o && !to_reset_o) begin
      modify_status_o = rnic_pkg::AdminStatusBadState;
    end
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, command_i, create, modify};
endmodule

`default_nettype wire
