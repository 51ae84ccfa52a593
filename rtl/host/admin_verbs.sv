`default_nettype none

/// The verbs of the admin queue, and what they share: each command goes to the verb module of its
/// opcode's group (upper four bits); one works at a time, so contexts (admin_access) and the table
/// of references (admin_refs) are simply switched.
///
/// exec_valid_i is held with the command until exec_done_o, which comes with status and result. A
/// command of no verb ends at once, with BadOpcode. ready_o: the table of references is cleared.
module admin_verbs (
    input  wire logic                             clk_i,
    input  wire logic                             rst_ni,
    output logic                                  ready_o,
    input  wire logic                             exec_valid_i,
    input  wire rnic_pkg::admin_command_t         command_i,
    output logic                                  exec_done_o,
    output logic [7:0]                            exec_status_o,
    output logic [383:0]                          exec_result_o,
    output logic [4:0]                            acq_valid_o,
    input  wire logic [4:0]                       acq_ready_i,
    output logic [7:0]                            acq_index_o,
    input  wire logic [4:0]                       ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t              send_ctx_i,
    input  wire rnic_pkg::recv_ctx_t              recv_ctx_i,
    input  wire rnic_pkg::cq_ctx_t                cq_ctx_i,
    input  wire rnic_pkg::eq_ctx_t                eq_ctx_i,
    input  wire rnic_pkg::srq_ctx_t               srq_ctx_i,
    output logic [4:0]                            rel_valid_o,
    input  wire logic [4:0]                       rel_ready_i,
    output logic                                  rel_write_o,
    output rnic_pkg::send_ctx_t                   send_ctx_o,
    output rnic_pkg::recv_ctx_t                   recv_ctx_o,
    output rnic_pkg::cq_ctx_t                     cq_ctx_o,
    output rnic_pkg::eq_ctx_t                     eq_ctx_o,
    output rnic_pkg::srq_ctx_t                    srq_ctx_o,
    output logic                                  sq_wake_valid_o,
    output logic [7:0]                            sq_wake_qp_o,
    output logic                                  path_wr_valid_o,
    output logic [7:0]                            path_wr_qp_o,
    output rnic_pkg::path_t                       path_wr_data_o,
    output logic                                  mpt_req_valid_o,
    input  wire logic                             mpt_req_ready_i,
    output logic                                  mpt_req_write_o,
    output logic [rnic_pkg::MptIndexBits-1:0]     mpt_req_index_o,
    output rnic_pkg::mpt_t                        mpt_req_data_o,
    input  wire logic                             mpt_rsp_valid_i,
    input  wire rnic_pkg::mpt_t                   mpt_rsp_data_i,
    output logic                                  mem_op_valid_o,
    input  wire logic                             mem_op_ready_i,
    output rnic_pkg::mem_op_t                     mem_op_data_o,
    input  wire logic                             mem_op_rsp_valid_i,
    input  wire rnic_pkg::mem_op_rsp_t            mem_op_rsp_data_i,
    output logic                                  drain_valid_o,
    input  wire logic                             drain_ready_i,
    output logic                                  qp_reset_valid_o,
    input  wire logic                             qp_reset_ready_i,
    output logic [7:0]                            qp_reset_qp_o,
    // Errors or WQEs to flush of QP qp_reset_qp_o are under way
    input  wire logic                             flushing_i,
    output logic                                  qp_error_valid_o,
    input  wire logic                             qp_error_ready_i,
    output rnic_pkg::qp_error_t                   qp_error_data_o,
    // Table of multicast groups: held until multicast_done_i
    output logic                                  multicast_valid_o,
    output rnic_pkg::multicast_op_t               multicast_data_o,
    input  wire logic                             multicast_done_i,
    input  wire logic [1:0]                       multicast_status_i,
    // Counters of a QP
    output logic                                  query_valid_o,
    output logic [7:0]                            query_qp_o,
    output logic                                  query_upper_o,
    output logic                                  query_clear_o,
    input  wire logic                             query_done_i,
    input  wire rnic_pkg::admin_qp_counters_t     query_counts_i
);
  // Verbs, by the upper half of the opcode.
  localparam int unsigned Capabilities = 0, Object = 1, Mr = 2, Qp = 3, Multicast = 4;

  logic [4:0] verb, verb_valid;
  logic [7:0] object_status, mr_status, qp_status, multicast_status;
  logic [383:0] object_result;
  logic object_done, mr_done, qp_done, qp_counts, destroys_qp, multicast_done, qp_free;
  rnic_pkg::admin_capabilities_t capabilities;
  rnic_pkg::admin_mr_state_t mr_result;
  rnic_pkg::admin_qp_state_t qp_result;

  always_comb begin
    verb = '0;
    unique case (command_i.opcode[7:4])
      rnic_pkg::AdminOpcodeQueryCapabilities[7:4]: begin
        verb[Capabilities] = command_i.opcode == rnic_pkg::AdminOpcodeQueryCapabilities;
      end
      rnic_pkg::AdminOpcodeCreateEq[7:4], rnic_pkg::AdminOpcodeCreateCq[7:4],
      rnic_pkg::AdminOpcodeCreateSrq[7:4]: verb[Object] = 1'b1;
      rnic_pkg::AdminOpcodeCreateMr[7:4]: verb[Mr] = 1'b1;
      rnic_pkg::AdminOpcodeCreateQp[7:4]: verb[Qp] = 1'b1;
      rnic_pkg::AdminOpcodeAttachMulticast[7:4]: verb[Multicast] = 1'b1;
      default: ;
    endcase
  end
  // A QP that is attached to a multicast group is not destroyed.
  assign destroys_qp = exec_valid_i && command_i.opcode == rnic_pkg::AdminOpcodeDestroyQp;
  always_comb begin
    verb_valid = exec_valid_i ? verb : '0;
    if (destroys_qp && !qp_free) verb_valid[Qp] = 1'b0;
  end

  admin_capabilities u_capabilities (.capabilities_o(capabilities));

  // A command of no verb ends at once.
  always_comb begin
    exec_done_o   = 1'b1;
    exec_status_o = rnic_pkg::AdminStatusBadOpcode;
    exec_result_o = '0;
    if (verb[Capabilities]) begin
      exec_status_o = rnic_pkg::AdminStatusSuccess;
      exec_result_o = capabilities;
    end
    if (verb[Object]) begin
      exec_done_o   = object_done;
      exec_status_o = object_status;
      exec_result_o = object_result;
    end
    if (verb[Mr]) begin
      exec_done_o   = mr_done;
      exec_status_o = mr_status;
      exec_result_o = mr_result;
    end
    if (verb[Qp]) begin
      exec_done_o   = qp_done;
      exec_status_o = qp_status;
      exec_result_o = qp_counts ? query_counts_i : qp_result;
    end
    if (verb[Multicast] || multicast_done) begin
      exec_done_o   = multicast_done;
      exec_status_o = multicast_status;
      exec_result_o = '0;
    end
  end

  // ---- What the verbs share -------------------------------------------------------------------
  logic object_access, qp_access, multicast_access, access, access_done;
  logic object_ref, qp_ref, ref_op, ref_done, ref_exists, ref_in_use;
  rnic_pkg::admin_access_t object_access_data, qp_access_data, multicast_access_data, access_data;
  rnic_pkg::admin_ref_t object_ref_data, qp_ref_data, ref_data;
  rnic_pkg::srq_ctx_t view_srq;
  rnic_pkg::send_ctx_t view_send;
  rnic_pkg::recv_ctx_t view_recv;
  rnic_pkg::cq_ctx_t view_cq;
  rnic_pkg::eq_ctx_t view_eq;
  logic mr_mem_op, qp_mem_op;
  rnic_pkg::mem_op_t mr_mem_op_data, qp_mem_op_data;

  always_comb begin
    {access, access_data, ref_op, ref_data} = {
      object_access, object_access_data, object_ref, object_ref_data
    };
    if (verb[Qp]) {access, access_data, ref_op, ref_data} = {
      qp_access, qp_access_data, qp_ref, qp_ref_data
    };
    if (verb[Multicast]) {access, access_data, ref_op} = {
      multicast_access, multicast_access_data, 1'b0
    };
  end

  admin_access u_access (
      .clk_i, .rst_ni,
      .valid_i(access), .access_i(access_data), .done_o(access_done),
      .view_send_o(view_send), .view_recv_o(view_recv), .view_cq_o(view_cq), .view_eq_o(view_eq),
      .view_srq_o(view_srq),
      .acq_valid_o, .acq_ready_i, .acq_index_o,
      .ctx_valid_i, .send_ctx_i, .recv_ctx_i, .cq_ctx_i, .eq_ctx_i, .srq_ctx_i,
      .rel_valid_o, .rel_ready_i, .rel_write_o
  );

  admin_refs u_refs (
      .clk_i, .rst_ni, .ready_o,
      .op_valid_i(ref_op), .op_i(ref_data), .op_done_o(ref_done),
      .exists_o(ref_exists), .in_use_o(ref_in_use)
  );

  assign mem_op_valid_o = verb[Qp] ? qp_mem_op : mr_mem_op;
  assign mem_op_data_o  = verb[Qp] ? qp_mem_op_data : mr_mem_op_data;
  assign path_wr_qp_o   = command_i.number[7:0];
  assign sq_wake_qp_o   = command_i.number[7:0];
  assign qp_reset_qp_o  = command_i.number[7:0];
  assign query_qp_o     = command_i.number[7:0];

  // ---- Verbs ----------------------------------------------------------------------------------
  admin_object u_object (
      .clk_i,
      .rst_ni,
      .exec_valid_i  (verb_valid[Object]),
      .command_i,
      .exec_done_o   (object_done),
      .status_o      (object_status),
      .result_o      (object_result),
      .access_valid_o(object_access),
      .access_o      (object_access_data),
      .access_done_i (access_done),
      .view_cq_i     (view_cq),
      .view_eq_i     (view_eq),
      .view_srq_i    (view_srq),
      .cq_ctx_o,
      .eq_ctx_o,
      .srq_ctx_o,
      .ref_valid_o   (object_ref),
      .ref_o         (object_ref_data),
      .ref_done_i    (ref_done),
      .ref_exists_i  (ref_exists),
      .ref_in_use_i  (ref_in_use)
  );

  admin_mr u_mr (
      .clk_i,
      .rst_ni,
      .exec_valid_i  (verb_valid[Mr]),
      .command_i,
      .exec_done_o   (mr_done),
      .status_o      (mr_status),
      .result_o      (mr_result),
      .mpt_req_valid_o,
      .mpt_req_ready_i,
      .mpt_req_write_o,
      .mpt_req_index_o,
      .mpt_req_data_o,
      .mpt_rsp_valid_i,
      .mpt_rsp_data_i,
      .mem_op_valid_o(mr_mem_op),
      .mem_op_ready_i,
      .mem_op_data_o (mr_mem_op_data),
      .mem_op_rsp_valid_i,
      .mem_op_rsp_data_i
  );

  admin_qp u_qp (
      .clk_i,
      .rst_ni,
      .exec_valid_i  (verb_valid[Qp]),
      .command_i,
      .exec_done_o   (qp_done),
      .status_o      (qp_status),
      .result_o      (qp_result),
      .access_valid_o(qp_access),
      .access_o      (qp_access_data),
      .access_done_i (access_done),
      .view_send_i   (view_send),
      .view_recv_i   (view_recv),
      .send_ctx_o,
      .recv_ctx_o,
      .ref_valid_o   (qp_ref),
      .ref_o         (qp_ref_data),
      .ref_done_i    (ref_done),
      .ref_exists_i  (ref_exists),
      .sq_wake_o     (sq_wake_valid_o),
      .path_wr_valid_o,
      .path_wr_data_o,
      .drain_valid_o,
      .drain_ready_i,
      .qp_reset_valid_o,
      .qp_reset_ready_i,
      .flushing_i,
      .qp_error_valid_o,
      .qp_error_ready_i,
      .qp_error_data_o,
      .mem_op_valid_o(qp_mem_op),
      .mem_op_ready_i,
      .mem_op_data_o (qp_mem_op_data),
      .mem_op_rsp_valid_i,
      .query_valid_o,
      .query_upper_o,
      .query_clear_o,
      .query_done_i,
      .result_is_counts_o(qp_counts)
  );

  admin_multicast u_multicast (
      .clk_i,
      .rst_ni,
      .exec_valid_i  (verb_valid[Multicast]),
      .destroy_i     (destroys_qp),
      .command_i,
      .free_o        (qp_free),
      .exec_done_o(multicast_done), .status_o(multicast_status),
      .access_valid_o(multicast_access),
      .access_o      (multicast_access_data),
      .access_done_i (access_done),
      .view_send_i   (view_send),
      .op_valid_o    (multicast_valid_o),
      .op_o          (multicast_data_o),
      .op_done_i     (multicast_done_i),
      .op_status_i   (multicast_status_i)
  );

  logic unused_valid;
  assign unused_valid = verb_valid[Capabilities];
endmodule

`default_nettype wire
