`default_nettype none

/// The context as a turn gives it back: with the place in the scatter list that its packets have
/// reached, and with the fetch that is to start now (sq_fetch_plan). Combinational.
module sq_release (
    input  wire logic [7:0]             qp_i,
    input  wire rnic_pkg::send_ctx_t    ctx_i,
    // A packet was made; it did not end its message
    input  wire logic                   sent_i,
    input  wire logic                   partial_i,
    input  wire logic [4:0]             sge_index_i,
    input  wire logic [31:0]            sge_offset_i,
    output rnic_pkg::send_ctx_t         ctx_o,
    output logic                        fetch_o,
    output rnic_pkg::wqe_fetch_req_t    fetch_data_o
);
  sq_fetch_plan u_fetch_plan (
      .qp_i,
      .ctx_i,
      .fetch_o,
      .req_o(fetch_data_o)
  );
  always_comb begin
    ctx_o = ctx_i;
    if (sent_i) begin
      ctx_o.sge_idx = partial_i ? sge_index_i : '0;
      ctx_o.sge_off = partial_i ? sge_offset_i : '0;
    end
    if (fetch_o) begin
      ctx_o.fetching = ctx_i.fetching + 1'b1;
      ctx_o.ahead    = ctx_i.ahead + fetch_data_o.count;
    end
  end
endmodule

`default_nettype wire
