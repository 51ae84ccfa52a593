`default_nettype none

/// What QueryQp answers of the contexts of a QP. Combinational.
module admin_qp_answer (
    input  wire rnic_pkg::send_ctx_t        send_i,
    input  wire rnic_pkg::recv_ctx_t        recv_i,
    output rnic_pkg::admin_qp_state_t       result_o
);
  logic drained;
  sq_drained u_drained (
      .ctx_i    (send_i),
      .drained_o(drained)
  );

  always_comb begin
    result_o       = '0;
    // On its way to the error state a QP shows it in one context first.
    result_o.state = {5'd0, send_i.state};
    if (recv_i.state == rnic_pkg::QpStateErr) result_o.state = {5'd0, rnic_pkg::QpStateErr};
    result_o.sq_draining       = send_i.state == rnic_pkg::QpStateSqd && !drained;
    result_o.outstanding_reads = send_i.rd_outstanding;
    result_o.sq_producer       = send_i.pi;
    result_o.sq_executed       = send_i.exec_idx;
    result_o.sq_retired        = send_i.retire_idx;
    result_o.rq_producer       = recv_i.rq_pi;
    result_o.rq_head           = recv_i.rq_head;
    result_o.sq_psn            = send_i.next_psn;
    result_o.una_psn           = send_i.una_psn;
    result_o.rq_psn            = recv_i.epsn;
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, send_i, recv_i};
endmodule

`default_nettype wire
