`default_nettype none

/// New contexts of a QP for each step of the admin queue, from the old ones and the command; and
/// the path that ModifyQp names. Combinational.
///
/// uar_i is the UAR that a reset QP gets. `state` is kept in both contexts. What a step does not
/// name stays as it is: doorbells and engines may have moved the dynamic part since the last step.
module admin_qp_next (
    input  wire rnic_pkg::admin_command_t command_i,
    input  wire logic [2:0]               step_i,
    input  wire logic [7:0]               uar_i,
    input  wire rnic_pkg::send_ctx_t      send_i,
    input  wire rnic_pkg::recv_ctx_t      recv_i,
    output rnic_pkg::send_ctx_t           send_o,
    output rnic_pkg::recv_ctx_t           recv_o,
    output rnic_pkg::path_t               path_o
);
  rnic_pkg::admin_create_qp_t create;
  rnic_pkg::admin_modify_qp_t modify;
  assign create = command_i.body;
  assign modify = command_i.body;

  logic [20:0] given;
  assign given = modify.attr_mask;

  rnic_pkg::send_ctx_t restarted;
  sq_restart u_restart (
      .ctx_i  (send_i),
      .index_i(send_i.retire_idx),
      .ctx_o  (restarted)
  );

  always_comb begin
    send_o = send_i;
    recv_o = recv_i;
    unique case (step_i)
      rnic_pkg::QpStepCreate: begin
        send_o                 = '0;
        send_o.in_use          = 1'b1;
        send_o.qp_type         = create.qp_type[1:0];
        send_o.state           = rnic_pkg::QpStateReset;
        send_o.qpn             = command_i.number[23:0];
        send_o.pd              = create.pd;
        send_o.uar             = create.uar;
        send_o.cqn             = create.send_cqn[7:0];
        send_o.sq_base         = create.sq_base;
        send_o.log_depth       = create.sq_log_depth[3:0];
        send_o.log_stride      = create.sq_log_stride[3:0];
        send_o.retired_address = create.retired_address;
        send_o.fast_register   = create.fast_register;
        recv_o                 = '0;
        recv_o.in_use          = 1'b1;
        recv_o.qp_type         = create.qp_type[1:0];
        recv_o.state           = rnic_pkg::QpStateReset;
        recv_o.qpn             = command_i.number[23:0];
        recv_o.pd              = create.pd;
        recv_o.uar             = create.uar;
        recv_o.cqn             = create.receive_cqn[7:0];
        recv_o.rq_base         = create.rq_base;
        recv_o.log_depth       = create.rq_log_depth[3:0];
        recv_o.log_stride      = create.rq_log_stride[3:0];
        recv_o.srq             = create.use_srq;
        recv_o.srqn            = create.srqn[7:0];
      end
      rnic_pkg::QpStepModify: begin
        // What had failed is flushed; the queue begins anew where it stands.
        if (send_i.state == rnic_pkg::QpStateSqe) begin
          send_o           = restarted;
          send_o.fault     = 1'b0;
          send_o.turned    = 1'b1;
          send_o.fetch_gen = send_i.fetch_gen + 1'b1;
          send_o.una_psn   = send_i.next_psn;
          send_o.max_psn   = send_i.next_psn;
        end
        send_o.state      = modify.next_state[2:0];
        recv_o.state      = modify.next_state[2:0];
        send_o.sqd_notify = (given & rnic_pkg::QpAttrSqdNotify) != '0 && modify.sqd_notify;
        if ((given & rnic_pkg::QpAttrAccessFlags) != '0) begin
          recv_o.remote_write  = modify.remote_write;
          recv_o.remote_read   = modify.remote_read;
          recv_o.remote_atomic = modify.remote_atomic;
        end
        if ((given & rnic_pkg::QpAttrPathMtu) != '0) begin
          send_o.mtu = modify.path_mtu[2:0];
          recv_o.mtu = modify.path_mtu[2:0];
        end
        if ((given & rnic_pkg::QpAttrMaxDestRdAtomic) != '0) begin
          recv_o.max_dest_rd = modify.max_dest_rd_atomic[4:0];
        end
        if ((given & rnic_pkg::QpAttrMinRnrTimer) != '0) begin
          recv_o.min_rnr_timer = modify.min_rnr_timer[4:0];
        end
        if ((given & rnic_pkg::QpAttrRqPsn) != '0) recv_o.epsn = modify.rq_psn;
        if ((given & rnic_pkg::QpAttrMaxRdAtomic) != '0) send_o.max_rd = modify.max_rd_atomic[4:0];
        if ((given & rnic_pkg::QpAttrTimeout) != '0) send_o.ack_timeout = modify.ack_timeout[4:0];
        if ((given & rnic_pkg::QpAttrQkey) != '0) begin
          send_o.qkey = modify.qkey;
          recv_o.qkey = modify.qkey;
        end
        if ((given & rnic_pkg::QpAttrRetryCnt) != '0) begin
          send_o.retry_count = modify.retry_count[2:0];
          send_o.retry_left  = modify.retry_count[2:0];
        end
        if ((given & rnic_pkg::QpAttrRnrRetry) != '0) begin
          send_o.rnr_retry = modify.rnr_retry[2:0];
          send_o.rnr_left  = modify.rnr_retry[2:0];
        end
        if ((given & rnic_pkg::QpAttrSqPsn) != '0) begin
          send_o.next_psn = modify.sq_psn;
          send_o.una_psn  = modify.sq_psn;
          send_o.max_psn  = modify.sq_psn;
        end
      end
      rnic_pkg::QpStepQuiet: begin
        send_o.uar = '0;
        recv_o.uar = '0;
      end
      rnic_pkg::QpStepReset: begin
        send_o                 = '0;
        send_o.in_use          = 1'b1;
        send_o.qp_type         = send_i.qp_type;
        send_o.state           = rnic_pkg::QpStateReset;
        send_o.qpn             = send_i.qpn;
        send_o.pd              = send_i.pd;
        send_o.uar             = uar_i;
        send_o.cqn             = send_i.cqn;
        send_o.sq_base         = send_i.sq_base;
        send_o.log_depth       = send_i.log_depth;
        send_o.log_stride      = send_i.log_stride;
        send_o.retired_address = send_i.retired_address;
        send_o.fast_register   = send_i.fast_register;
        recv_o                 = '0;
        recv_o.in_use          = 1'b1;
        recv_o.qp_type         = recv_i.qp_type;
        recv_o.state           = rnic_pkg::QpStateReset;
        recv_o.qpn             = recv_i.qpn;
        recv_o.pd              = recv_i.pd;
        recv_o.uar             = uar_i;
        recv_o.cqn             = recv_i.cqn;
        recv_o.rq_base         = recv_i.rq_base;
        recv_o.log_depth       = recv_i.log_depth;
        recv_o.log_stride      = recv_i.log_stride;
        recv_o.srq             = recv_i.srq;
        recv_o.srqn            = recv_i.srqn;
      end
      default: begin
        send_o = '0;
        recv_o = '0;
      end
    endcase
  end

  always_comb begin
    path_o.ipv6            = modify.ipv6;
    path_o.dest_qpn        = modify.dest_qpn;
    path_o.pkey            = modify.pkey;
    path_o.traffic_class   = modify.traffic_class;
    path_o.hop_limit       = modify.hop_limit;
    path_o.udp_source_port = modify.udp_source_port;
    path_o.flow_label      = modify.flow_label[19:0];
    path_o.dest_mac        = modify.dest_mac;
    path_o.vlan            = modify.vlan;
    path_o.vlan_id         = modify.vlan_id;
    path_o.pcp             = modify.pcp;
    path_o.source_ip       = modify.source_ip;
    path_o.dest_ip         = modify.dest_ip;
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, command_i, create, modify};
endmodule

`default_nettype wire
