`default_nettype none

/// The send queue gives up what it is sending and goes on at WQE index_i: nothing of the message
/// before is left in the context, neither its place nor what was fetched of the queue.
/// Combinational. Whoever moves exec_idx past a message that was not sent whole does it here; on UC
/// and UD the next message uses the same context (InfiniBand specification 10.3.1.6).
module sq_restart (
    input  wire rnic_pkg::send_ctx_t ctx_i,
    input  wire logic [15:0]         index_i,
    output rnic_pkg::send_ctx_t      ctx_o
);
  always_comb begin
    ctx_o            = ctx_i;
    ctx_o.exec_idx   = index_i;
    ctx_o.msg_active = 1'b0;
    ctx_o.msg_off    = '0;
    ctx_o.resume     = 1'b0;
    ctx_o.sge_idx    = '0;
    ctx_o.sge_off    = '0;
    ctx_o.buf_count  = '0;
    ctx_o.ahead      = '0;
  end
endmodule

`default_nettype wire
