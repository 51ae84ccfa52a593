`default_nettype none

/// What a turn of qp_error finds and takes: which sides of the QP are in the error state behind it,
/// and up to Chunk WQEs of each that are given up now (more_o: not all of them). Combinational.
///
/// is_error_i: the turn puts the QP in the error state; quiet_i: because the host asked, so also a
/// QP in RESET. gone_i: no packet of the QP is left in the receive engine. open_i: it has a WQE of
/// its SRQ, the only one that it can give up.
module qp_error_sides (
    input  wire rnic_pkg::send_ctx_t send_i,
    input  wire rnic_pkg::recv_ctx_t recv_i,
    input  wire logic                is_error_i,
    input  wire logic                quiet_i,
    input  wire logic                gone_i,
    input  wire logic                open_i,
    output logic                     send_err_o,
    output logic                     recv_err_o,
    output logic [4:0]               send_count_o,
    output logic [4:0]               recv_count_o,
    output logic                     more_o
);
  localparam logic [15:0] Chunk = 16'd16;

  logic [15:0] send_left, recv_left;
  logic send_flush;

  assign send_err_o = send_i.in_use && (send_i.state == rnic_pkg::QpStateErr ||
                      send_i.state == rnic_pkg::QpStateSqe ||
                      (is_error_i && (quiet_i || send_i.state != rnic_pkg::QpStateReset)));
  assign recv_err_o = recv_i.in_use && (recv_i.state == rnic_pkg::QpStateErr ||
                      (is_error_i && (quiet_i || recv_i.state != rnic_pkg::QpStateReset)));
  assign send_left  = send_i.pi - send_i.retire_idx;
  assign recv_left  = recv_i.rq_pi - recv_i.rq_done;
  assign send_flush = send_err_o && !send_i.mem_busy && !send_i.mem_done;
  assign send_count_o = !send_flush ? '0 : (send_left > Chunk) ? Chunk[4:0] : send_left[4:0];
  always_comb begin
    recv_count_o = (recv_left > Chunk) ? Chunk[4:0] : recv_left[4:0];
    if (recv_i.srq) recv_count_o = {4'd0, open_i && !recv_i.rx_gone};
    if (!recv_err_o || !gone_i) recv_count_o = '0;
  end
  assign more_o = (send_flush && send_left > Chunk) ||
                  (recv_err_o && (!gone_i || (!recv_i.srq && recv_left > Chunk)));

  logic unused_bits;
  assign unused_bits = ^{send_i, recv_i};
endmodule

`default_nettype wire
