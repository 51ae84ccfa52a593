`default_nettype none
`include "assert.svh"

/// Send engine: two stages, each with a context of its own in hand, of two different QPs.
///
/// sq_load takes a turn, borrows the context and reads the first line of the WQE under way, or the
/// next one. sq_issue makes the packets of the turn, or finds that the QP has to step aside (no WQE
/// in the buffer, not RTS, fault, RNR wait, fence, a limit; in SQD what is new), and gives the
/// context back. There is room for a packet of both before a context is asked for (room_i, take_o;
/// more_i), so none is held for the wire. Nor is one held while the failure of a WQE waits to be
/// told: no turn begins meanwhile, and there is a place for the failure of the turn that has begun.
/// busy_o: it works on a WQE, which its ports may not show.
module sq_engine (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    output logic                        busy_o,
    input  wire logic                   run_valid_i,
    output logic                        run_ready_o,
    input  wire logic [7:0]             run_qp_i,
    output logic                        done_valid_o,
    output logic [7:0]                  done_qp_o,
    output logic                        done_again_o,
    // As in sq_room
    input  wire logic                   room_i,
    input  wire logic                   more_i,
    output logic                        take_o,
    output logic                        give_o,
    // Contexts: two clients
    output logic [1:0]                  acq_valid_o,
    input  wire logic [1:0]             acq_ready_i,
    output logic [2*8-1:0]              acq_index_o,
    input  wire logic [1:0]             ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t    ctx_data_i,
    input  wire logic [1:0]             contended_i,
    output logic [1:0]                  rel_valid_o,
    input  wire logic [1:0]             rel_ready_i,
    output logic [1:0]                  rel_write_o,
    output logic [2*rnic_pkg::SendCtxBits-1:0] rel_data_o,
    // WQE buffer
    output logic                        buf_rd_en_o,
    output logic [10:0]                 buf_rd_addr_o,
    input  wire logic [511:0]           buf_rd_data_i,
    // Reads of sq_list, in cycles that are free; the data goes there, too
    input  wire logic                   list_rd_valid_i,
    output logic                        list_rd_ready_o,
    input  wire logic [10:0]            list_rd_addr_i,
    // WQE fetch
    output logic                        fetch_valid_o,
    output rnic_pkg::wqe_fetch_req_t    fetch_data_o,
    // Packet
    output logic                        desc_valid_o,
    output rnic_pkg::tx_desc_t          desc_data_o,
    output logic                        piece_valid_o,
    output rnic_pkg::sg_piece_t         piece_data_o,
    output logic                        inflight_valid_o,
    output rnic_pkg::inflight_t         inflight_data_o,
    output logic                        read_slot_valid_o,
    output logic [11:0]                 read_slot_addr_o,
    output rnic_pkg::read_slot_t        read_slot_data_o,
    output logic                        mem_valid_o,
    output logic [7:0]                  mem_qp_o,
    output logic [23:0]                 mem_pd_o,
    output rnic_pkg::wqe_control_t      mem_control_o,
    output logic [127:0]                mem_second_o,
    output logic [127:0]                mem_third_o,
    output logic                        retire_cmd_valid_o,
    input  wire logic                   retire_cmd_ready_i,
    output rnic_pkg::retire_cmd_t       retire_cmd_data_o,
    // A packet is made, and nothing else is unacknowledged
    output logic                        begun_valid_o,
    output logic [7:0]                  begun_qp_o,
    // The queue of done_qp_o is drained (SQD), and the host wants to know; a pulse
    output logic                        drained_valid_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  logic turn_valid, turn_ready, turn_client, turn_runnable, turn_drained;
  logic [7:0] turn_qp, acq_index, qp;
  logic [2:0] turn_first_line;
  logic [511:0] turn_line;
  rnic_pkg::send_ctx_t turn_ctx, rel_data;
  logic load_rd, issue_rd, buf_busy;
  assign busy_o = buf_busy;
  logic [10:0] load_addr, issue_addr;

  sq_load u_load (
      .clk_i,
      .rst_ni,
      .run_valid_i,
      .run_ready_o,
      .run_qp_i,
      .room_i,
      .hold_i          (retire_cmd_valid_o),
      .take_o,
      .acq_valid_o,
      .acq_ready_i,
      .acq_index_o     (acq_index),
      .ctx_valid_i,
      .ctx_data_i,
      .buf_busy_i      (buf_busy),
      .buf_rd_en_o     (load_rd),
      .buf_rd_addr_o   (load_addr),
      .buf_rd_data_i,
      .out_valid_o     (turn_valid),
      .out_ready_i     (turn_ready),
      .out_qp_o        (turn_qp),
      .out_client_o    (turn_client),
      .out_ctx_o       (turn_ctx),
      .out_first_line_o(turn_first_line),
      .out_line_o      (turn_line),
      .out_runnable_o  (turn_runnable),
      .out_drained_o   (turn_drained)
  );

  logic fail_valid, fail_ready;
  rnic_pkg::retire_cmd_t fail_data;
  sq_issue u_issue (
      .clk_i,
      .rst_ni,
      .in_valid_i     (turn_valid),
      .in_ready_o     (turn_ready),
      .in_qp_i        (turn_qp),
      .in_client_i    (turn_client),
      .in_ctx_i       (turn_ctx),
      .in_first_line_i(turn_first_line),
      .in_line_i      (turn_line),
      .in_runnable_i  (turn_runnable),
      .in_drained_i   (turn_drained),
      .more_i,
      .contended_i,
      .rel_valid_o,
      .rel_ready_i,
      .rel_data_o     (rel_data),
      .qp_o           (qp),
      .done_valid_o,
      .done_again_o,
      .drained_valid_o,
      .buf_busy_o     (buf_busy),
      .buf_rd_en_o    (issue_rd),
      .buf_rd_addr_o  (issue_addr),
      .buf_rd_data_i,
      .fetch_valid_o,
      .fetch_data_o,
      .desc_valid_o,
      .desc_data_o,
      .piece_valid_o,
      .piece_data_o,
      .inflight_valid_o,
      .inflight_data_o,
      .read_slot_valid_o,
      .read_slot_addr_o,
      .read_slot_data_o,
      .begun_valid_o,
      .mem_valid_o,
      .mem_pd_o,
      .mem_control_o,
      .mem_segments_o ({mem_third_o, mem_second_o}),
      .fail_valid_o   (fail_valid),
      .fail_ready_i   (fail_ready),
      .event_o
  );
  always_comb begin
    fail_data         = '0;
    fail_data.qp      = qp;
    fail_data.command = rnic_pkg::RetireCommandFailWqe;
    fail_data.psn     = rel_data.next_psn;
    fail_data.wqe_idx = rel_data.exec_idx;
    fail_data.status  = rel_data.fault_status;
  end
  skid_buffer #(
      .Width(rnic_pkg::RetireCmdBits)
  ) u_fail (
      .clk_i,
      .rst_ni,
      .in_valid_i (fail_valid),
      .in_ready_o (fail_ready),
      .in_data_i  (fail_data),
      .out_valid_o(retire_cmd_valid_o),
      .out_ready_i(retire_cmd_ready_i),
      .out_data_o (retire_cmd_data_o)
  );

  assign acq_index_o   = {2{acq_index}};
  assign rel_write_o   = 2'b11;
  assign rel_data_o    = {2{rel_data}};
  assign give_o        = (rel_valid_o & rel_ready_i) != '0;
  assign done_qp_o     = qp;
  assign mem_qp_o      = qp;
  assign begun_qp_o    = qp;

  assign list_rd_ready_o = !buf_busy && !load_rd;
  assign buf_rd_en_o     = issue_rd || load_rd || (list_rd_valid_i && list_rd_ready_o);
  assign buf_rd_addr_o   = issue_rd ? issue_addr : load_rd ? load_addr : list_rd_addr_i;

  `ASSERT(OneGivesBack, $onehot0(rel_valid_o))
  `ASSERT(RoomForFail, !fail_valid || fail_ready)
  `ASSERT(OtherQueuePair, !turn_valid || turn_ready || turn_qp != qp)
endmodule

`default_nettype wire
