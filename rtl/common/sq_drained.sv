`default_nettype none

/// Is the send queue drained: is everything that was started complete? Combinational. Used while
/// the QP is in SQD, when nothing new is started (InfiniBand specification 10.3.1).
///
/// While recovery sends again, what has been started is not behind exec_idx yet, but the newest PSN
/// is ahead. A memory operation under way has been started, and is behind exec_idx when it is over.
module sq_drained (
    input  wire rnic_pkg::send_ctx_t ctx_i,
    output logic                     drained_o
);
  assign drained_o = ctx_i.retire_idx == ctx_i.exec_idx && !ctx_i.msg_active &&
                     !ctx_i.mem_busy && ctx_i.next_psn == ctx_i.max_psn;

  logic unused_bits;
  assign unused_bits = ^ctx_i;
endmodule

`default_nettype wire
