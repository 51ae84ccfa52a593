`default_nettype none

/// What CreateQp and ModifyQp may ask for: fields and state transitions. Combinational.
///
/// Transitions are those of the InfiniBand specification 10.3.1 without SQD and SQE, which this NIC
/// does not have: RESET to INIT, INIT to INIT, INIT to RTR, RTR to RTS, RTS to RTS, any to ERR, any
/// to RESET. A transition that is not legal is BadState, whatever the fields say; the fields of a
/// legal one are checked only as far as it takes them.
module admin_qp_check (
    input  wire rnic_pkg::admin_command_t command_i,
    input  wire logic [2:0]               state_i,
    input  wire logic [1:0]               qp_type_i,
    output logic [7:0]                    create_status_o,
    output logic [7:0]                    modify_status_o,
    output logic                          to_err_o,
    output logic                          to_reset_o,
    output logic                          takes_path_o,
    output logic [2:0]                    step_o
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
  logic aligned, sizes_ok, uar_ok, type_ok, srq_ok, general;
  assign aligned  = create.sq_base[11:0] == '0 && (create.use_srq || create.rq_base[11:0] == '0) &&
      create.retired_address[2:0] == '0;
  assign sizes_ok = create.sq_log_depth <= MaxDepth &&
      create.sq_log_stride >= MinSendStride && create.sq_log_stride <= MaxStride &&
      (create.use_srq || (create.rq_log_depth <= MaxDepth &&
      create.rq_log_stride >= MinReceiveStride && create.rq_log_stride <= MaxStride));
  assign uar_ok   = create.uar != '0 && !create.uar[7];
  assign type_ok  = create.qp_type == {6'd0, rnic_pkg::QpTypeRc} ||
      create.qp_type == {6'd0, rnic_pkg::QpTypeUc} || create.qp_type == {6'd0, rnic_pkg::QpTypeUd};
  // An unreliable service gives receive WQEs back, an SRQ takes none.
  assign srq_ok   = !create.use_srq || create.qp_type == {6'd0, rnic_pkg::QpTypeRc};
  // The general service interface belongs to the kernel driver (InfiniBand specification 10.2.4.1).
  assign general  = command_i.number != 32'd1 || (create.uar == rnic_pkg::KernelUar[7:0] &&
      create.qp_type == {6'd0, rnic_pkg::QpTypeUd});
  assign create_status_o = (aligned && sizes_ok && uar_ok && type_ok && srq_ok && general) ?
      rnic_pkg::AdminStatusSuccess : rnic_pkg::AdminStatusBadParameter;

  // ---- ModifyQp -------------------------------------------------------------------------------
  logic legal, is_ud, fields_ok, rtr_ok, rts_ok, mtu_ok, ip_ok, timer_ok;
  assign mtu_ok   = modify.path_mtu != '0 && modify.path_mtu <= MaxMtu;
  assign is_ud    = qp_type_i == rnic_pkg::QpTypeUd;
  assign ip_ok    = modify.ipv6 || is_ud ||
      (modify.source_ip[95:0] == Ipv4Prefix && modify.dest_ip[95:0] == Ipv4Prefix);
  assign timer_ok = modify.min_rnr_timer[7:5] == '0;
  assign rtr_ok   = mtu_ok && ip_ok && timer_ok && modify.max_dest_rd_atomic <= MaxReads;
  assign rts_ok   = modify.max_rd_atomic <= MaxReads && modify.ack_timeout[7:5] == '0 &&
      !modify.retry_count[3] && !modify.rnr_retry[3];

  always_comb begin
    legal        = 1'b0;
    fields_ok    = 1'b1;
    to_err_o     = 1'b0;
    to_reset_o   = 1'b0;
    takes_path_o = 1'b0;
    step_o       = rnic_pkg::QpStepInit;
    unique case (modify.next_state)
      {5'd0, rnic_pkg::QpStateReset}: begin
        legal      = 1'b1;
        to_reset_o = 1'b1;
      end
      {5'd0, rnic_pkg::QpStateErr}: begin
        legal    = 1'b1;
        to_err_o = 1'b1;
      end
      {5'd0, rnic_pkg::QpStateInit}: begin
        legal        = state_i == rnic_pkg::QpStateReset || state_i == rnic_pkg::QpStateInit;
        takes_path_o = 1'b1;
      end
      {5'd0, rnic_pkg::QpStateRtr}: begin
        legal        = state_i == rnic_pkg::QpStateInit;
        fields_ok    = rtr_ok;
        takes_path_o = 1'b1;
        step_o       = rnic_pkg::QpStepRtr;
      end
      {5'd0, rnic_pkg::QpStateRts}: begin
        legal     = state_i == rnic_pkg::QpStateRtr || state_i == rnic_pkg::QpStateRts;
        step_o    = rnic_pkg::QpStepRights;
        fields_ok = timer_ok;
        if (state_i == rnic_pkg::QpStateRtr) begin
          step_o    = rnic_pkg::QpStepRts;
          fields_ok = rts_ok;
        end
      end
      default: ;
    endcase
    modify_status_o = rnic_pkg::AdminStatusSuccess;
    if (!fields_ok) modify_status_o = rnic_pkg::AdminStatusBadParameter;
    if (!legal) modify_status_o = rnic_pkg::AdminStatusBadState;
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, command_i, create, modify};
endmodule

`default_nettype wire
