`default_nettype none
`include "assert.svh"

/// Answers of one port in the order of its requests. An answer is known when it comes in, or waits
/// for a line of a page list (in_wait_i), which is then fetched when the answer is the oldest. What
/// comes in when nothing waits goes straight through.
/// Answers that do not grant access are reported (refused_o): nobody hands back their epoch.
module xlate_port #(
    parameter int unsigned Depth = 16,
    parameter int unsigned IdBits = 4
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic                  in_valid_i,     // There is always room: see popped_o
    input  wire rnic_pkg::xlate_rsp_t  in_rsp_i,       // While it waits, addr is an offset
    input  wire logic                  in_wait_i,
    input  wire logic [IdBits-1:0]     in_id_i,
    input  wire logic [2:0]            in_word_i,
    input  wire logic [(1<<IdBits)-1:0] done_i,
    output logic                       want_o,
    output logic [IdBits-1:0]          want_id_o,
    input  wire logic                  grant_i,
    input  wire logic [511:0]          line_i,         // A cycle after the grant
    input  wire logic                  line_err_i,
    output logic                       popped_o,       // An answer left for the output
    output logic                       refused_o,
    output logic                       refused_epoch_o,
    output logic                       rsp_valid_o,
    input  wire logic                  rsp_ready_i,
    output rnic_pkg::xlate_rsp_t       rsp_data_o
);
  localparam int unsigned Width = rnic_pkg::XlateRspBits + 1 + IdBits + 3;

  logic queue_valid, queue_pop, queue_ready, wait_head, out_valid, out_ready, direct, fetched_q;
  logic [2:0] word;
  logic [$clog2(Depth)+1:0] count;
  rnic_pkg::xlate_rsp_t head, answer;

  assign direct = in_valid_i && !in_wait_i && count == '0 && out_ready;

  stream_fifo #(
      .Width(Width),
      .Depth(Depth)
  ) u_queue (
      .clk_i,
      .rst_ni,
      .in_valid_i (in_valid_i && !direct),
      .in_ready_o (queue_ready),
      .in_data_i  ({in_word_i, in_id_i, in_wait_i, in_rsp_i}),
      .out_valid_o(queue_valid),
      .out_ready_i(queue_pop),
      .out_data_o ({word, want_id_o, wait_head, head}),
      .count_o    (count)
  );

  // The output is free when the line is asked for, and nothing else can take it before the line is
  // there.
  assign want_o    = queue_valid && wait_head && done_i[want_id_o] && out_ready && !fetched_q;
  assign queue_pop = queue_valid && out_ready && (!wait_head || fetched_q);
  assign out_valid = direct || queue_pop;
  assign popped_o  = out_valid;

  always_comb begin
    answer = direct ? in_rsp_i : head;
    if (!direct && wait_head) begin
      answer.addr = line_i[{word, 6'd0}+:64] | head.addr;
      if (line_err_i) answer.status = rnic_pkg::XlateStatusPageListError;
    end
    if (answer.status != rnic_pkg::XlateStatusOk) begin
      answer.addr       = '0;
      answer.contiguous = '0;
    end
  end
  assign refused_o       = out_valid && answer.status != rnic_pkg::XlateStatusOk;
  assign refused_epoch_o = answer.epoch;

  always_ff @(posedge clk_i) begin
    fetched_q <= grant_i;
    if (!rst_ni) fetched_q <= 1'b0;
  end

  skid_buffer #(
      .Width(rnic_pkg::XlateRspBits)
  ) u_out (
      .clk_i,
      .rst_ni,
      .in_valid_i (out_valid),
      .in_ready_o (out_ready),
      .in_data_i  (answer),
      .out_valid_o(rsp_valid_o),
      .out_ready_i(rsp_ready_i),
      .out_data_o (rsp_data_o)
  );

  `ASSERT(NoMoreThanDepth, count <= ($clog2(Depth) + 2)'(Depth))
  `ASSERT(QueueHasRoom, !in_valid_i || direct || queue_ready)
  `ASSERT(FetchedIsTaken, !fetched_q || queue_pop)
endmodule

`default_nettype wire
