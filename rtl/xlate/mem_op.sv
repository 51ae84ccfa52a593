`default_nettype none
`include "assert.svh"

/// Memory operations: what work requests, peers and the admin queue do to entries of the protection
/// table. docs/architecture.md, "Memory operations".
///
/// One client a bit of the vectors: a client offers an operation, and when its answer has been
/// taken, the next. One operation is executed at a time, but for UnbindQp: its search lets others
/// in between any two windows, and every few rows of the owner table. A second UnbindQp waits for
/// the end of the first.
/// An operation is judged first, and changes nothing unless it succeeds. Then the lines of an
/// inline page list are taken (mem_list, of the client that registers) and put on chip; then the
/// entry is written; then the regions that lose and gain a window count it (without losing their
/// cached page lists); then, if access was taken away, `drain` passes; then it is answered.
module mem_op #(
    parameter int unsigned Clients = 4
) (
    input  wire logic                                    clk_i,
    input  wire logic                                    rst_ni,
    output logic                                         ready_o,
    output logic                                         busy_o,
    input  wire logic [Clients-1:0]                      op_valid_i,
    output logic [Clients-1:0]                           op_ready_o,
    input  wire logic [Clients*rnic_pkg::MemOpBits-1:0]  op_data_i,
    output logic [Clients-1:0]                           rsp_valid_o,
    input  wire logic [Clients-1:0]                      rsp_ready_i,
    output rnic_pkg::mem_op_rsp_t                        rsp_data_o,     // For all clients
    output logic                                         mpt_req_valid_o,
    input  wire logic                                    mpt_req_ready_i,
    output logic                                         mpt_req_write_o,
    output logic                                         mpt_req_keep_o,
    output logic [rnic_pkg::MptIndexBits-1:0]            mpt_req_index_o,
    output rnic_pkg::mpt_t                               mpt_req_data_o,
    input  wire logic                                    mpt_rsp_valid_i,
    input  wire rnic_pkg::mpt_t                          mpt_rsp_data_i,
    output logic                                         drain_valid_o,
    input  wire logic                                    drain_ready_i,
    input  wire logic                                    mem_list_valid_i,
    output logic                                         mem_list_ready_o,
    input  wire rnic_pkg::mem_list_t                     mem_list_data_i,
    output logic                                         list_wr_valid_o,
    output logic [9:0]                                   list_wr_line_o,
    output logic [511:0]                                 list_wr_data_o
);
  localparam int unsigned IndexBits = rnic_pkg::MptIndexBits;
  // mem_op_check answers after four cycles.
  localparam logic [2:0] JudgeCycles = 3'd4;

  // Idle: waits. Target, TargetWait: read the target's entry. Region, RegionWait: read the entry of
  // a bind's region. Judge. Copy: an inline page list. Write: the target's entry. Count, CountWait,
  // CountWrite: the region that loses its window, then the one that gains it. Own: in the owner
  // table. Drain. Answer. Scan: UnbindQp looks for its next window.
  typedef enum logic [3:0] {
    Idle,
    Target,
    TargetWait,
    Region,
    RegionWait,
    Judge,
    Copy,
    Write,
    Count,
    CountWait,
    CountWrite,
    Own,
    Drain,
    Answer,
    Scan
  } state_e;
  state_e state_q, state_d, after_count;

  rnic_pkg::mem_op_t op_q, offered, asked;
  rnic_pkg::mpt_t target_q, region_q, next_entry;
  rnic_pkg::mem_op_rsp_t answer_q;
  logic [Clients-1:0] sweeps, request, grant, client_q, sweep_client_q;
  logic [rnic_pkg::QpIndexBits-1:0] sweep_qp_q;
  logic sweep_q, sweep_turn_q, dirty_q, adding_q, accept, offered_sweep;
  logic [2:0] judge_q, status;
  logic bind_op, unbind_qp, was_bound, drops, adds, owns, drains, copies, copied, bad_list;
  logic own_ready, scan_ready, scan_found, scan_end;
  logic [IndexBits-1:0] scan_index;

  // ---- Accept -----------------------------------------------------------------------------------
  // A sweep and the other operations take turns.
  always_comb begin
    asked = '0;
    for (int unsigned i = 0; i < Clients; i++) begin
      asked     = op_data_i[i*rnic_pkg::MemOpBits+:rnic_pkg::MemOpBits];
      sweeps[i] = asked.op == rnic_pkg::MemOpCodeUnbindQp;
    end
  end
  assign request = op_valid_i & ~(sweep_q ? sweeps : '0);
  assign busy_o  = state_q != Idle || sweep_q;

  rr_arbiter #(
      .N(Clients)
  ) u_clients (
      .clk_i,
      .rst_ni,
      .request_i(request),
      .advance_i(accept),
      .grant_o  (grant)
  );
  assign accept     = state_q == Idle && request != '0 && !(sweep_q && sweep_turn_q);
  assign op_ready_o = accept ? grant : '0;

  always_comb begin
    offered = '0;
    for (int unsigned i = 0; i < Clients; i++) begin
      if (grant[i]) offered = offered | op_data_i[i*rnic_pkg::MemOpBits+:rnic_pkg::MemOpBits];
    end
  end
  assign offered_sweep = offered.op == rnic_pkg::MemOpCodeUnbindQp;

  // ---- Judge ------------------------------------------------------------------------------------
  mem_op_check u_check (
      .clk_i,
      .op_i    (op_q),
      .target_i(target_q),
      .region_i(region_q),
      .status_o(status),
      .next_o  (next_entry)
  );

  assign bind_op   = op_q.op == rnic_pkg::MemOpCodeBindWindow1 ||
      op_q.op == rnic_pkg::MemOpCodeBindWindow2;
  assign unbind_qp = op_q.op == rnic_pkg::MemOpCodeUnbindQp;
  assign was_bound = target_q.state == rnic_pkg::MptStateValid &&
      (target_q.mpt_type == rnic_pkg::MptTypeWindow1 ||
       target_q.mpt_type == rnic_pkg::MptTypeWindow2);
  assign drops     = was_bound;
  assign adds      = bind_op && (op_q.length != '0 || op_q.op == rnic_pkg::MemOpCodeBindWindow2);
  assign owns      = target_q.mpt_type == rnic_pkg::MptTypeWindow2 && (drops || adds);
  assign drains    = target_q.state == rnic_pkg::MptStateValid;

  assign copies    = op_q.op == rnic_pkg::MemOpCodeFastRegister && op_q.inline_list;

  mem_op_list u_list (
      .clk_i,
      .rst_ni,
      .run_i       (state_q == Copy),
      .page_count_i(op_q.page_count[5:0]),
      .log_page_i  (op_q.log_page[4:0]),
      .first_line_i(target_q.list_line),
      .done_o      (copied),
      .bad_o       (bad_list),
      .mem_list_valid_i,
      .mem_list_ready_o,
      .mem_list_data_i,
      .list_wr_valid_o,
      .list_wr_line_o,
      .list_wr_data_o
  );

  // What follows the counts (or the write, when there is nothing to count).
  always_comb begin
    after_count = drains ? Drain : Answer;
    if (owns) after_count = Own;
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Idle: begin
        if (accept) state_d = offered_sweep ? Idle : Target;
        else if (sweep_q) state_d = Scan;
      end
      Target:     if (mpt_req_ready_i) state_d = TargetWait;
      TargetWait: if (mpt_rsp_valid_i) state_d = adds ? Region : Judge;
      Region:     if (mpt_req_ready_i) state_d = RegionWait;
      RegionWait: if (mpt_rsp_valid_i) state_d = Judge;
      Judge: begin
        if (judge_q == '0) begin
          state_d = (status != rnic_pkg::MemOpStatusOk) ? Answer : (copies ? Copy : Write);
        end
      end
      Copy:       if (copied) state_d = bad_list ? Answer : Write;
      Write:      if (mpt_req_ready_i) state_d = (drops || adds) ? Count : after_count;
      Count:      if (mpt_req_ready_i) state_d = CountWait;
      CountWait:  if (mpt_rsp_valid_i) state_d = CountWrite;
      CountWrite: if (mpt_req_ready_i) state_d = (adds && !adding_q) ? Count : after_count;
      Own: begin
        if (own_ready) state_d = unbind_qp ? Idle : (drains ? Drain : Answer);
      end
      Drain:      if (drain_ready_i) state_d = Answer;
      Answer:     if ((rsp_valid_o & rsp_ready_i) != '0) state_d = Idle;
      Scan: begin
        if (scan_ready) begin
          state_d = scan_found ? Target : Idle;
          if (scan_end) state_d = dirty_q ? Drain : Answer;
        end
      end
      default:    state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    judge_q <= (state_q == Judge) ? judge_q - 1'b1 : JudgeCycles;
    if (mpt_rsp_valid_i && state_q == TargetWait) target_q <= mpt_rsp_data_i;
    if (mpt_rsp_valid_i && state_q != TargetWait) region_q <= mpt_rsp_data_i;
    if (state_q == Write) adding_q <= !drops;
    if (state_q == CountWrite && mpt_req_ready_i) adding_q <= 1'b1;
    if (accept && !offered_sweep) begin
      op_q     <= offered;
      client_q <= grant;
    end
    if (state_q == Scan && scan_ready) begin
      op_q.op                 <= rnic_pkg::MemOpCodeUnbindQp;
      op_q.key[8+:IndexBits]  <= scan_index;
      client_q                <= sweep_client_q;
    end
    if (state_q == Judge) answer_q.status <= status;
    if (copied && bad_list) answer_q.status <= rnic_pkg::MemOpStatusBadRequest;
    if (state_q == Scan) answer_q.status <= rnic_pkg::MemOpStatusOk;
    // A sweep
    if (accept && offered_sweep) begin
      sweep_client_q <= grant;
      sweep_qp_q     <= offered.qp;
      dirty_q        <= 1'b0;
    end
    if (state_q == Own && unbind_qp) dirty_q <= 1'b1;
    if (accept) sweep_turn_q <= 1'b1;
    if (state_q == Scan) sweep_turn_q <= 1'b0;
    if (accept && offered_sweep) sweep_q <= 1'b1;
    if (state_q == Scan && scan_ready && scan_end) sweep_q <= 1'b0;
    if (!rst_ni) begin
      state_q      <= Idle;
      sweep_q      <= 1'b0;
      sweep_turn_q <= 1'b0;
    end
  end

  // ---- Owners -----------------------------------------------------------------------------------
  mem_op_owner u_owner (
      .clk_i,
      .rst_ni,
      .ready_o,
      .set_valid_i (state_q == Own),
      .set_ready_o (own_ready),
      .set_index_i (op_q.key[8+:IndexBits]),
      .set_bound_i (adds),
      .set_qp_i    (op_q.qp),
      .scan_valid_i(state_q == Scan),
      .scan_ready_o(scan_ready),
      .scan_qp_i   (sweep_qp_q),
      .scan_found_o(scan_found),
      .scan_end_o  (scan_end),
      .scan_index_o(scan_index)
  );

  // ---- Entries ----------------------------------------------------------------------------------
  always_comb begin
    mpt_req_valid_o = state_q == Target || state_q == Region || state_q == Write ||
        state_q == Count || state_q == CountWrite;
    mpt_req_write_o = state_q == Write || state_q == CountWrite;
    mpt_req_keep_o  = state_q == CountWrite;
    mpt_req_index_o = op_q.key[8+:IndexBits];
    mpt_req_data_o  = next_entry;
    if (state_q == Region) mpt_req_index_o = op_q.mr_key[8+:IndexBits];
    if (state_q == Count || state_q == CountWrite) begin
      mpt_req_index_o = adding_q ? op_q.mr_key[8+:IndexBits] : target_q.mr_index;
    end
    if (state_q == CountWrite) begin
      mpt_req_data_o       = region_q;
      mpt_req_data_o.bound = adding_q ? region_q.bound + 16'd1 : region_q.bound - 16'd1;
    end
  end

  logic unused_bits;
  assign unused_bits = ^asked;

  assign drain_valid_o = state_q == Drain;
  assign rsp_valid_o   = (state_q == Answer) ? client_q : '0;
  assign rsp_data_o    = answer_q;

  `ASSERT(OneSweep, !(accept && offered_sweep && sweep_q))
  `ASSERT(SweepFindsBound, !(state_q == Judge && unbind_qp && judge_q == '0) ||
          (was_bound && target_q.qp == sweep_qp_q))
  `ASSERT(CountIsRight, !(state_q == CountWrite && !adding_q) || region_q.bound != '0)
  `ASSERT(CountedRegionIsValid, state_q != CountWrite || region_q.state == rnic_pkg::MptStateValid)
  `ASSERT_HOLD(MptRequestHold, mpt_req_valid_o, mpt_req_ready_i,
               {mpt_req_write_o, mpt_req_keep_o, mpt_req_index_o})
  `ASSERT_HOLD(MptWriteHold, mpt_req_valid_o && mpt_req_write_o, mpt_req_ready_i, mpt_req_data_o)
  for (genvar i = 0; i < Clients; i++) begin : gen_client
    `ASSERT_HOLD(ResponseHold, rsp_valid_o[i], rsp_ready_i[i], rsp_data_o)
  end
endmodule

`default_nettype wire
