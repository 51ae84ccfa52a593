`default_nettype none
`include "assert.svh"

/// First stage of the send engine: takes a turn, borrows the context of its QP, reads the first
/// line of the WQE that is next, and says whether there is anything to do.
///
/// A turn begins with room for its packet (room_i, take_o), and not while hold_i. The two clients
/// of the context manager are used in turn: out_client_o says whose release it is that gives this
/// context back, which is for the second stage to do. The WQE buffer is read when the second stage
/// does not use it (buf_busy_i). out_ctx_o has the marks cleared that this turn answers: stalled,
/// and sqd_notify when the queue is drained.
module sq_load (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic                run_valid_i,
    output logic                     run_ready_o,
    input  wire logic [7:0]          run_qp_i,
    input  wire logic                room_i,
    input  wire logic                hold_i,
    output logic                     take_o,
    output logic [1:0]               acq_valid_o,
    input  wire logic [1:0]          acq_ready_i,
    output logic [7:0]               acq_index_o,
    input  wire logic [1:0]          ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t ctx_data_i,
    input  wire logic                buf_busy_i,
    output logic                     buf_rd_en_o,
    output logic [10:0]              buf_rd_addr_o,
    input  wire logic [511:0]        buf_rd_data_i,
    output logic                     out_valid_o,
    input  wire logic                out_ready_i,
    output logic [7:0]               out_qp_o,
    output logic                     out_client_o,
    output rnic_pkg::send_ctx_t      out_ctx_o,
    output logic [2:0]               out_first_line_o,
    output logic [511:0]             out_line_o,
    output logic                     out_runnable_o,
    output logic                     out_drained_o
);
  // StIdle     waiting for a turn; its context is asked for at once
  // StAcquire  waiting for the grant
  // StContext  waiting for the context; its arrival reads the first line of the WQE
  // StRead     waiting for the buffer
  // StHead     context and line are here
  // StHold     the second stage is not ready; the line is kept
  typedef enum logic [2:0] {
    StIdle,
    StAcquire,
    StContext,
    StRead,
    StHead,
    StHold
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::send_ctx_t ctx_q;
  logic [7:0] qp_q;
  logic [511:0] line_q;
  logic [2:0] first_line, first_line_q;
  logic client_q, acq, granted, arrived, read;

  assign acq     = take_o || state_q == StAcquire;
  assign granted = acq && acq_ready_i[client_q];
  assign arrived = state_q == StContext && ctx_valid_i[client_q];
  assign read    = (arrived || state_q == StRead) && !buf_busy_i;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:    if (take_o) state_d = granted ? StContext : StAcquire;
      StAcquire: if (granted) state_d = StContext;
      StContext: if (arrived) state_d = read ? StHead : StRead;
      StRead:    if (read) state_d = StHead;
      StHead:    state_d = out_ready_i ? StIdle : StHold;
      StHold:    if (out_ready_i) state_d = StIdle;
      default:   state_d = StIdle;
    endcase
  end

  wqe_line u_line (
      .index_i     (ctx_data_i.exec_idx[2:0]),
      .log_stride_i(ctx_data_i.log_stride),
      .line_o      (first_line)
  );

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (take_o) qp_q <= run_qp_i;
    if (arrived) begin
      ctx_q        <= ctx_data_i;
      first_line_q <= first_line;
    end
    if (state_q == StHead) line_q <= buf_rd_data_i;
    if (out_valid_o && out_ready_i) client_q <= !client_q;
    if (!rst_ni) begin
      state_q  <= StIdle;
      client_q <= 1'b0;
    end
  end

  sq_runnable u_runnable (
      .ctx_i     (ctx_q),
      .runnable_o(out_runnable_o),
      .drained_o (out_drained_o)
  );

  assign take_o        = state_q == StIdle && run_valid_i && room_i && !hold_i;
  assign run_ready_o   = take_o;
  assign acq_valid_o   = {acq && client_q, acq && !client_q};
  assign acq_index_o   = state_q == StIdle ? run_qp_i : qp_q;
  assign buf_rd_en_o   = read;
  assign buf_rd_addr_o = {qp_q, arrived ? first_line : first_line_q};

  assign out_valid_o      = state_q == StHead || state_q == StHold;
  assign out_qp_o         = qp_q;
  assign out_client_o     = client_q;
  assign out_first_line_o = first_line_q;
  assign out_line_o       = state_q == StHead ? buf_rd_data_i : line_q;
  always_comb begin
    out_ctx_o         = ctx_q;
    out_ctx_o.stalled = 1'b0;
    if (out_drained_o) out_ctx_o.sqd_notify = 1'b0;
  end

  `ASSERT_HOLD(Acquire0Hold, acq_valid_o[0], acq_ready_i[0], acq_index_o)
  `ASSERT_HOLD(Acquire1Hold, acq_valid_o[1], acq_ready_i[1], acq_index_o)
  `ASSERT_HOLD(OutHold, out_valid_o, out_ready_i, {out_qp_o, out_client_o, out_ctx_o, out_line_o})
  `ASSERT(BufferAtExec, !out_valid_o || !out_runnable_o || ctx_q.buf_idx == ctx_q.exec_idx)
  `ASSERT(OneAsks, $onehot0(acq_valid_o))
endmodule

`default_nettype wire
