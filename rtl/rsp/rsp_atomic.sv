`default_nettype none
`include "assert.svh"

/// Executes the atomics of all QPs, one after the other, so that each is atomic to every other one
/// of this NIC (InfiniBand specification 9.4.5.1: "atomic with respect to the HCA").
///
/// op_*: always taken; a QP has one operation here at most, from op_valid_i to done_valid_o or the
/// taking of its fault. An operation translates its 8 bytes with RemoteAtomic, reads them, writes
/// what they become (a comparison that fails writes nothing), and ends when the write has been
/// handed to PCIe: a later read cannot pass it. Memory holds the number least significant byte
/// first.
///
/// The results of the last 16 atomics of a QP are kept with their PSNs. A repeated operation is not
/// executed again: it is answered from there, the newest of that PSN (PSNs come round again), or,
/// if it is not there, not answered (9.7.5.1.2).
/// Answer: answer_en_i reads that of a QP, data in the next cycle. A refused translation or a
/// failed read ends in a tx_fault_t of the responder (status Ok: the read) and leaves no answer.
///
/// busy_o: it works, and nothing at its ports shows that: it looks for a result.
/// forget_valid_i: operations of that QP are dropped instead of begun; forget_busy_o: one is still
/// here. clear_*: the results of a QP, which has none here, are forgotten.
module rsp_atomic (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic                    op_valid_i,
    input  wire rnic_pkg::atomic_op_t    op_data_i,
    output logic                         busy_o,
    output logic                         done_valid_o,
    output logic [7:0]                   done_qp_o,
    input  wire logic                    answer_en_i,
    input  wire logic [7:0]              answer_qp_i,
    output logic                         answer_found_o,
    output logic [63:0]                  answer_value_o,
    output logic                         fault_valid_o,
    input  wire logic                    fault_ready_i,
    output rnic_pkg::tx_fault_t          fault_data_o,
    output logic                         xlate_req_valid_o,
    input  wire logic                    xlate_req_ready_i,
    output rnic_pkg::xlate_req_t         xlate_req_data_o,
    input  wire logic                    xlate_rsp_valid_i,
    output logic                         xlate_rsp_ready_o,
    input  wire rnic_pkg::xlate_rsp_t    xlate_rsp_data_i,
    output logic                         xlate_retire_valid_o,
    output logic                         xlate_retire_epoch_o,
    output logic                         rd_req_valid_o,
    input  wire logic                    rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t        rd_req_data_o,
    input  wire logic                    rd_rsp_valid_i,
    output logic                         rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t   rd_rsp_data_i,
    output logic                         wr_valid_o,
    input  wire logic                    wr_ready_i,
    output rnic_pkg::dma_wr_t            wr_data_o,
    input  wire logic                    wr_done_i,
    input  wire logic                    forget_valid_i,
    input  wire logic [7:0]              forget_qp_i,
    output logic                         forget_busy_o,
    input  wire logic                    clear_valid_i,
    output logic                         clear_ready_o,
    input  wire logic [7:0]              clear_qp_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  /// Results kept per QP.
  localparam int unsigned Results = 16;

  // StIdle    waiting for an operation; the word of its QP is being read
  // StWord    the word is here
  // StSearch  looking for the result of a repeated operation, one a cycle, newest first
  // StAsk     asking for the translation
  // StGrant   waiting for it
  // StRead    asking for the 8 bytes
  // StData    waiting for them
  // StWrite   handing over the write
  // StSent    waiting until it has left
  // StSave    the result is kept and the answer is ready
  // StFault   handing over the fault
  typedef enum logic [3:0] {
    StIdle,
    StWord,
    StSearch,
    StAsk,
    StGrant,
    StRead,
    StData,
    StWrite,
    StSent,
    StSave,
    StFault
  } state_e;
  state_e state_q, state_d;

  // ---- Operations that wait: one a QP -----------------------------------------------------------
  logic op_ready, op_valid, pop, dropped, begins;
  logic [9:0] unused_count;
  logic [255:0] here_q;
  rnic_pkg::atomic_op_t op;
  stream_fifo #(
      .Width(rnic_pkg::AtomicOpBits),
      .Depth(256)
  ) u_ops (
      .clk_i,
      .rst_ni,
      .in_valid_i (op_valid_i),
      .in_ready_o (op_ready),
      .in_data_i  (op_data_i),
      .out_valid_o(op_valid),
      .out_ready_i(pop),
      .out_data_o (op),
      .count_o    (unused_count)
  );
  assign dropped = state_q == StIdle && op_valid && forget_valid_i && op.qp == forget_qp_i;
  assign begins  = state_q == StIdle && op_valid && !dropped;
  assign pop     = dropped || state_q == StSave || (state_q == StFault && fault_ready_i);
  assign forget_busy_o = here_q[forget_qp_i];

  // ---- Results: per QP a ring, how many there are, and where the next one goes ------------------
  logic [4:0] count, new_count;
  logic [3:0] next, newest, index_q;
  logic save, match, last_result;
  logic [23:0] result_psn;
  logic [63:0] result_value, old_q, sum, new_value;
  logic found_q;

  assign clear_ready_o = !save;
  assign save          = state_q == StSave && !op.repeated;
  assign new_count     = (count == 5'(Results)) ? count : count + 1'b1;
  ram_1r1w #(
      .Width(9),
      .Depth(256)
  ) u_words (
      .clk_i,
      .wr_en_i  (save || (clear_valid_i && clear_ready_o)),
      .wr_addr_i(save ? op.qp : clear_qp_i),
      .wr_data_i(save ? {new_count, next + 4'd1} : 9'd0),
      .rd_en_i  (begins),
      .rd_addr_i(op.qp),
      .rd_data_o({count, next})
  );
  ram_1r1w #(
      .Width(24 + 64),
      .Depth(256 * Results)
  ) u_results (
      .clk_i,
      .wr_en_i  (save),
      .wr_addr_i({op.qp, next}),
      .wr_data_i({op.psn, old_q}),
      .rd_en_i  (state_q == StWord || state_q == StSearch),
      .rd_addr_i({op.qp, (state_q == StWord) ? newest : newest - index_q - 4'd1}),
      .rd_data_o({result_psn, result_value})
  );
  assign newest      = next - 4'd1;
  // index_q: how much older than the newest the one is that has been read
  assign match       = {1'b0, index_q} < count && result_psn == op.psn;
  assign last_result = {1'b0, index_q} + 5'd1 >= count;

  ram_1r1w #(
      .Width(65),
      .Depth(256)
  ) u_answers (
      .clk_i,
      .wr_en_i  (state_q == StSave),
      .wr_addr_i(op.qp),
      .wr_data_i({found_q, old_q}),
      .rd_en_i  (answer_en_i),
      .rd_addr_i(answer_qp_i),
      .rd_data_o({answer_found_o, answer_value_o})
  );

  // ---- The 8 bytes: in one line, at a multiple of 8 ---------------------------------------------
  logic [63:0] addr_q, read_value;
  logic [3:0] status_q;
  logic epoch_q, granted_q, granted, writes;
  assign granted    = xlate_rsp_data_i.status == rnic_pkg::XlateStatusOk;
  assign read_value = rd_rsp_data_i.data[{rd_rsp_data_i.offset[5:3], 6'd0}+:64];
  assign writes     = op.fetch_add || read_value == op.compare;
  assign sum        = old_q + op.swap_add;
  assign new_value  = op.fetch_add ? sum : op.swap_add;

  always_comb begin
    xlate_req_data_o        = '0;
    xlate_req_data_o.key    = op.key;
    xlate_req_data_o.va     = op.va;
    xlate_req_data_o.length = 32'd8;
    xlate_req_data_o.pd     = op.pd;
    xlate_req_data_o.access = rnic_pkg::AccessRemoteAtomic;
    xlate_req_data_o.qp     = op.qp;
    rd_req_data_o.addr      = addr_q;
    rd_req_data_o.length    = 13'd8;
    wr_data_o               = '0;
    wr_data_o.addr          = addr_q;
    wr_data_o.length        = 13'd8;
    wr_data_o.data          = {448'd0, new_value} << {addr_q[5:3], 6'd0};
    wr_data_o.last          = 1'b1;
    fault_data_o            = '0;
    fault_data_o.qp         = op.qp;
    fault_data_o.responder  = 1'b1;
    fault_data_o.psn        = op.psn;
    fault_data_o.status     = status_q;
    fault_data_o.atomic     = 1'b1;
  end
  assign xlate_req_valid_o    = state_q == StAsk;
  assign xlate_rsp_ready_o    = state_q == StGrant;
  assign rd_req_valid_o       = state_q == StRead;
  assign rd_rsp_ready_o       = state_q == StData;
  assign wr_valid_o           = state_q == StWrite;
  assign fault_valid_o        = state_q == StFault;
  assign xlate_retire_valid_o = pop && !dropped && granted_q;
  assign xlate_retire_epoch_o = epoch_q;
  assign busy_o               = state_q == StSearch;
  assign done_valid_o         = state_q == StSave;
  assign done_qp_o            = op.qp;
  always_comb begin
    event_o                                  = '0;
    event_o[rnic_pkg::CounterRxAtomics]       = save;
    event_o[rnic_pkg::CounterRxAtomicRepeats] = state_q == StSave && op.repeated;
  end

  // ---- Control ----------------------------------------------------------------------------------
  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:   if (begins) state_d = StWord;
      StWord:   state_d = op.repeated ? StSearch : StAsk;
      StSearch: if (match || last_result) state_d = StSave;
      StAsk:    if (xlate_req_ready_i) state_d = StGrant;
      StGrant:  if (xlate_rsp_valid_i) state_d = granted ? StRead : StFault;
      StRead:   if (rd_req_ready_i) state_d = StData;
      StData: begin
        if (rd_rsp_valid_i) state_d = rd_rsp_data_i.err ? StFault : (writes ? StWrite : StSave);
      end
      StWrite:  if (wr_ready_i) state_d = StSent;
      StSent:   if (wr_done_i) state_d = StSave;
      StSave:   state_d = StIdle;
      StFault:  if (fault_ready_i) state_d = StIdle;
      default:  state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (state_q == StIdle) begin
      granted_q <= 1'b0;
      found_q   <= 1'b1;
    end
    if (state_q == StWord) index_q <= 4'd0;
    if (state_q == StSearch) begin
      index_q <= index_q + 4'd1;
      found_q <= match;
      old_q   <= result_value;
    end
    if (state_q == StGrant && xlate_rsp_valid_i) begin
      addr_q    <= xlate_rsp_data_i.addr;
      status_q  <= xlate_rsp_data_i.status;
      epoch_q   <= xlate_rsp_data_i.epoch;
      granted_q <= granted;
    end
    if (state_q == StData) old_q <= read_value;
    if (pop) here_q[op.qp] <= 1'b0;
    if (op_valid_i) here_q[op_data_i.qp] <= 1'b1;
    if (!rst_ni) begin
      state_q   <= StIdle;
      granted_q <= 1'b0;
      here_q    <= '0;
    end
  end

  logic unused_bits;
  assign unused_bits = ^{xlate_rsp_data_i.contiguous, rd_rsp_data_i.offset[2:0],
                         rd_rsp_data_i.bytes, rd_rsp_data_i.last};

  `ASSERT_HOLD(FaultHold, fault_valid_o, fault_ready_i, fault_data_o)
  `ASSERT_HOLD(XlateReqHold, xlate_req_valid_o, xlate_req_ready_i, xlate_req_data_o)
  `ASSERT_HOLD(RdReqHold, rd_req_valid_o, rd_req_ready_i, rd_req_data_o)
  `ASSERT_HOLD(WriteHold, wr_valid_o, wr_ready_i, wr_data_o)
  `ASSERT(OneOfAQp, !op_valid_i || !here_q[op_data_i.qp])
  `ASSERT(OpTaken, op_ready)
  `ASSERT(ClearNotHere, !clear_valid_i || !here_q[clear_qp_i])
  `ASSERT(Aligned, !begins || op.va[2:0] == '0)
  `ASSERT(DataInTime, !rd_rsp_valid_i || state_q == StData)
  `ASSERT(WriteInTime, !wr_done_i || state_q == StSent)
endmodule

`default_nettype wire
