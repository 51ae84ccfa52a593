`default_nettype none
`include "assert.svh"

/// Fetches WQEs from send queues in host memory into the WQE buffer, several queue pairs at a time.
///
/// A queue pair has at most two fetches under way (send_ctx_t fetching), so a request always has
/// room and the engine never waits here. They come in the order in which they were asked for. When
/// the data is in the buffer the context is acquired: the WQEs join those in the buffer, the QP is
/// woken. A fetch of another fetch_gen than the context's is not taken, nor one that starts at a
/// WQE that failed here or behind it; and when one is not taken, the one behind it is not either,
/// which would stand in its place (fetch_gen changes). A DMA error fails the first WQE of the fetch
/// if it is the next to execute (FailWqe, FatalErr). If WQEs before it are still in the buffer, the
/// error is dropped: the fetch is repeated once they have been sent. `busy_o`: a fetch of busy_qp_i
/// is under way.
module wqe_fetch (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic                   req_valid_i,
    input  wire rnic_pkg::wqe_fetch_req_t req_data_i,
    input  wire logic [7:0]             busy_qp_i,
    output logic                        busy_o,
    // DMA
    output logic                        rd_req_valid_o,
    input  wire logic                   rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t       rd_req_data_o,
    input  wire logic                   rd_rsp_valid_i,
    output logic                        rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t  rd_rsp_data_i,
    // WQE buffer: lines of window WQEs; the engine's reads, data in the next cycle
    input  wire logic                   window_valid_i,
    input  wire logic [10:0]            window_addr_i,
    input  wire logic [511:0]           window_data_i,
    input  wire logic                   buf_rd_en_i,
    input  wire logic [10:0]            buf_rd_addr_i,
    output logic [511:0]                buf_rd_data_o,
    // Context
    output logic                        acq_valid_o,
    input  wire logic                   acq_ready_i,
    output logic [7:0]                  acq_index_o,
    input  wire logic                   ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t    ctx_data_i,
    output logic                        rel_valid_o,
    input  wire logic                   rel_ready_i,
    output logic                        rel_write_o,
    output rnic_pkg::send_ctx_t         rel_data_o,
    output logic                        wake_valid_o,
    output logic [7:0]                  wake_qp_o,
    output logic                        retire_cmd_valid_o,
    input  wire logic                   retire_cmd_ready_i,
    output rnic_pkg::retire_cmd_t       retire_cmd_data_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  // What is remembered of a fetch: qp, index, count, log_stride, gen.
  localparam int unsigned InfoBits = 8 + 16 + 4 + 4 + 4;

  // ---- Requests: two places for each QP ---------------------------------------------------------
  logic add_valid_q, queue_ready, queue_valid, queue_pop;
  rnic_pkg::wqe_fetch_req_t add_q;
  logic [InfoBits-1:0] add_info, queue_info;
  logic [63:0] queue_addr;
  logic [255:0] pending_q, second_q;
  assign add_info = {add_q.gen, add_q.log_stride, add_q.count, add_q.index, add_q.qp};
  always_ff @(posedge clk_i) begin
    add_valid_q <= req_valid_i;
    add_q       <= req_data_i;
    if (!rst_ni) add_valid_q <= 1'b0;
  end

  logic [10:0] unused_queue_count;
  stream_fifo #(
      .Width(InfoBits + 64),
      .Depth(512)
  ) u_queue (
      .clk_i,
      .rst_ni,
      .in_valid_i (add_valid_q),
      .in_ready_o (queue_ready),
      .in_data_i  ({add_q.base + 64'(add_q.offset), add_info}),
      .out_valid_o(queue_valid),
      .out_ready_i(queue_pop),
      .out_data_o ({queue_addr, queue_info}),
      .count_o    (unused_queue_count)
  );

  logic [3:0] queue_count, queue_log_stride;
  logic flight_ready;
  assign queue_count      = queue_info[27:24];
  assign queue_log_stride = queue_info[31:28];
  assign rd_req_valid_o   = queue_valid && flight_ready;
  assign queue_pop        = rd_req_valid_o && rd_req_ready_i;
  always_comb begin
    rd_req_data_o        = '0;
    rd_req_data_o.addr   = queue_addr;
    rd_req_data_o.length = 13'(queue_count) << queue_log_stride;
  end
  always_comb begin
    event_o = '0;
    event_o[rnic_pkg::CounterWqeFetches] = queue_pop;
  end

  // ---- Data into the buffer, in the order of the requests ---------------------------------------
  logic flight_valid, flight_pop, done_ready, done_valid, done_pop, done_err;
  logic [InfoBits-1:0] flight_info, done_info;
  logic [5:0] unused_flight_count, unused_done_count;
  logic [2:0] first_line, line_q;
  stream_fifo #(
      .Width(InfoBits),
      .Depth(16)
  ) u_flight (
      .clk_i,
      .rst_ni,
      .in_valid_i (queue_pop),
      .in_ready_o (flight_ready),
      .in_data_i  (queue_info),
      .out_valid_o(flight_valid),
      .out_ready_i(flight_pop),
      .out_data_o (flight_info),
      .count_o    (unused_flight_count)
  );
  wqe_line u_line (
      .index_i     (flight_info[10:8]),
      .log_stride_i(flight_info[31:28]),
      .line_o      (first_line)
  );
  logic buffer_ready;
  assign rd_rsp_ready_o = flight_valid && done_ready && buffer_ready;
  wqe_buffer u_buffer (
      .clk_i,
      .window_valid_i,
      .window_addr_i,
      .window_data_i,
      .fetch_valid_i (rd_rsp_valid_i && flight_valid && done_ready && !rd_rsp_data_i.err),
      .fetch_ready_o (buffer_ready),
      .fetch_addr_i  ({flight_info[7:0], first_line + line_q}),
      .fetch_data_i  (rd_rsp_data_i.data),
      .rd_en_i       (buf_rd_en_i),
      .rd_addr_i     (buf_rd_addr_i),
      .rd_data_o     (buf_rd_data_o)
  );
  assign flight_pop     = rd_rsp_valid_i && rd_rsp_ready_o && rd_rsp_data_i.last;
  always_ff @(posedge clk_i) begin
    if (rd_rsp_valid_i && rd_rsp_ready_o) line_q <= rd_rsp_data_i.last ? '0 : line_q + 1'b1;
    if (!rst_ni) line_q <= '0;
  end

  stream_fifo #(
      .Width(InfoBits + 1),
      .Depth(16)
  ) u_done (
      .clk_i,
      .rst_ni,
      .in_valid_i (flight_pop),
      .in_ready_o (done_ready),
      .in_data_i  ({rd_rsp_data_i.err, flight_info}),
      .out_valid_o(done_valid),
      .out_ready_i(done_pop),
      .out_data_o ({done_err, done_info}),
      .count_o    (unused_done_count)
  );

  // ---- Context ----------------------------------------------------------------------------------
  // StIdle     a finished fetch asks for the context
  // StContext  waiting for it
  // StRelease  giving it back
  // StFail     reporting the WQE that could not be fetched
  typedef enum logic [1:0] {
    StIdle,
    StContext,
    StRelease,
    StFail
  } state_e;
  state_e state_q, state_d;
  rnic_pkg::send_ctx_t ctx_q, ctx_d;
  logic [7:0] done_qp;
  logic [15:0] done_index;
  logic [3:0] done_count, done_gen;
  logic [15:0] to_fault;
  logic current, wanted, taken, fail, fail_q;
  assign done_qp    = done_info[7:0];
  assign done_index = done_info[23:8];
  assign done_count = done_info[27:24];
  assign done_gen   = done_info[35:32];

  assign to_fault = done_index - ctx_data_i.fault_idx;
  assign current = ctx_data_i.in_use && ctx_data_i.fetching != '0 &&
                   ctx_data_i.fetch_gen == done_gen;
  assign wanted = current && (ctx_data_i.state == rnic_pkg::QpStateRts ||
                   ctx_data_i.state == rnic_pkg::QpStateSqd) &&
                  (!ctx_data_i.fault || to_fault[15]);
  assign taken  = wanted && !done_err;
  assign fail   = wanted && done_err && ctx_data_i.buf_count == '0;
  always_comb begin
    ctx_d = ctx_data_i;
    if (ctx_data_i.fetching != '0) ctx_d.fetching = ctx_data_i.fetching - 1'b1;
    if (taken) ctx_d.ahead = ctx_data_i.ahead - done_count;
    else if (current) begin
      ctx_d.ahead     = '0;
      ctx_d.fetch_gen = ctx_data_i.fetch_gen + 1'b1;
    end
    if (fail) begin
      ctx_d.fault          = 1'b1;
      ctx_d.fault_idx      = done_index;
      ctx_d.fault_status   = rnic_pkg::CqeStatusFatalErr;
      ctx_d.fault_syndrome = '0;
    end else if (taken) begin
      if (ctx_data_i.buf_count == '0) ctx_d.buf_idx = done_index;
      ctx_d.buf_count = ctx_data_i.buf_count + done_count;
    end
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:    if (done_valid && acq_ready_i) state_d = StContext;
      StContext: if (ctx_valid_i) state_d = StRelease;
      StRelease: if (rel_ready_i) state_d = fail_q ? StFail : StIdle;
      StFail:    if (retire_cmd_ready_i) state_d = StIdle;
      default:   state_d = StIdle;
    endcase
  end

  assign done_pop = state_d == StIdle && state_q != StIdle;
  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (ctx_valid_i) begin
      ctx_q  <= ctx_d;
      fail_q <= fail;
    end
    if (req_valid_i && !(done_pop && done_qp == req_data_i.qp)) begin
      pending_q[req_data_i.qp] <= 1'b1;
      second_q[req_data_i.qp]  <= pending_q[req_data_i.qp];
    end
    if (done_pop && !(req_valid_i && done_qp == req_data_i.qp)) begin
      pending_q[done_qp] <= second_q[done_qp];
      second_q[done_qp]  <= 1'b0;
    end
    if (!rst_ni) begin
      state_q   <= StIdle;
      pending_q <= '0;
      second_q  <= '0;
    end
  end

  assign busy_o       = pending_q[busy_qp_i];
  assign acq_valid_o  = state_q == StIdle && done_valid;
  assign acq_index_o  = done_qp;
  assign rel_valid_o  = state_q == StRelease;
  assign rel_write_o  = 1'b1;
  assign rel_data_o   = ctx_q;
  assign wake_valid_o = rel_valid_o && rel_ready_i;
  assign wake_qp_o    = done_qp;
  assign retire_cmd_valid_o = state_q == StFail;
  always_comb begin
    retire_cmd_data_o         = '0;
    retire_cmd_data_o.qp      = done_qp;
    retire_cmd_data_o.command = rnic_pkg::RetireCommandFailWqe;
    retire_cmd_data_o.psn     = ctx_q.next_psn;
    retire_cmd_data_o.wqe_idx = done_index;
    retire_cmd_data_o.status  = rnic_pkg::CqeStatusFatalErr;
  end

  logic unused_bits;
  assign unused_bits = ^{to_fault[14:0], done_info[31:28], rd_rsp_data_i.offset,
                         rd_rsp_data_i.bytes};

  `ASSERT(RoomForEveryQp, queue_ready)
  `ASSERT(TwoFetchesPerQp, !req_valid_i || !second_q[req_data_i.qp])
  `ASSERT(FollowsOn, !ctx_valid_i || !wanted ||
                     done_index == ctx_data_i.exec_idx + 16'(ctx_data_i.buf_count))
  `ASSERT(Promised, !ctx_valid_i || !taken || done_count <= ctx_data_i.ahead)
  `ASSERT(NothingAhead, !ctx_valid_i || ctx_data_i.fetching != '0 || ctx_data_i.ahead == '0)
  `ASSERT_HOLD(RdReqHold, rd_req_valid_o, rd_req_ready_i, rd_req_data_o)
endmodule

`default_nettype wire
