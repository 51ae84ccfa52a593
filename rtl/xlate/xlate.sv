`default_nettype none

/// Protection and translation: the one place that grants access to payload memory, and the one that
/// changes what is granted.
///
/// Translation (xlate_pages): two ports (0: send path, 1: receive path), each a stream of
/// xlate_req_t and, in the order of its requests, xlate_rsp_t. Every request is checked.
/// Drain: each Ok answer carries `epoch`; the DMA engines hand it back (retire_valid, retire_epoch)
/// when the DMA of that answer has been issued (a write: wr_done; a read: its data has arrived) or
/// dropped. drain_valid_i held: waits until the answers to all requests accepted before are handed
/// back, then pulses drain_ready_o.
/// Memory operations (mem_op): four clients (0: send queue, 1: receive path, 2: admin queue,
/// 3: windows of queue pairs that have failed), each with one operation under way, offered by
/// mem_op_valid and answered by mem_op_rsp. The answer to one that takes access away comes when no
/// DMA under that key can start or is under way. mem_list: lines of the WQE of a FastRegister with
/// an inline page list, taken before its answer, unless it is refused.
/// The administrative port reads entries and writes free ones; entries in use belong to the memory
/// operations.
module xlate (
    input  wire logic                                 clk_i,
    input  wire logic                                 rst_ni,
    output logic                                      ready_o,
    output logic                                      busy_o,   // An operation is under way
    input  wire logic [1:0]                           req_valid_i,
    output logic [1:0]                                req_ready_o,
    input  wire logic [2*rnic_pkg::XlateReqBits-1:0]  req_data_i,
    output logic [1:0]                                rsp_valid_o,
    input  wire logic [1:0]                           rsp_ready_i,
    output logic [2*rnic_pkg::XlateRspBits-1:0]       rsp_data_o,
    input  wire logic [1:0]                           retire_valid_i,
    input  wire logic [1:0]                           retire_epoch_i,
    // Memory operations
    input  wire logic [3:0]                           mem_op_valid_i,
    output logic [3:0]                                mem_op_ready_o,
    input  wire logic [4*rnic_pkg::MemOpBits-1:0]     mem_op_data_i,
    output logic [3:0]                                mem_op_rsp_valid_o,
    input  wire logic [3:0]                           mem_op_rsp_ready_i,
    output rnic_pkg::mem_op_rsp_t                     mem_op_rsp_data_o,   // For all clients
    input  wire logic                                 mem_list_valid_i,    // Of client 0
    output logic                                      mem_list_ready_o,
    input  wire rnic_pkg::mem_list_t                  mem_list_data_i,
    // Administrative port
    input  wire logic                                 mpt_req_valid_i,
    output logic                                      mpt_req_ready_o,
    input  wire logic                                 mpt_req_write_i,
    input  wire logic [rnic_pkg::MptIndexBits-1:0]    mpt_req_index_i,
    input  wire rnic_pkg::mpt_t                       mpt_req_data_i,
    output logic                                      mpt_rsp_valid_o,
    output rnic_pkg::mpt_t                            mpt_rsp_data_o,
    input  wire logic                                 drain_valid_i,
    output logic                                      drain_ready_o,
    // Page lists
    output logic                                      rd_req_valid_o,
    input  wire logic                                 rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t                     rd_req_data_o,
    input  wire logic                                 rd_rsp_valid_i,
    output logic                                      rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t                rd_rsp_data_i,
    output logic [rnic_pkg::NumCounters-1:0]          event_o
);
  logic pages_ready, op_ready;
  logic op_req_valid, op_req_ready, op_req_write, op_req_keep, op_rsp_valid;
  logic op_drain_valid, op_drain_ready, list_wr_valid;
  logic [9:0] list_wr_line;
  logic [511:0] list_wr_data;
  logic [rnic_pkg::MptIndexBits-1:0] op_req_index, mpt_index;
  rnic_pkg::mpt_t op_req_data, mpt_data;
  logic mpt_valid, mpt_ready, mpt_write, mpt_keep, mpt_rsp_valid, drain_valid, drain_ready;

  assign ready_o = pages_ready && op_ready;

  mem_op #(
      .Clients(4)
  ) u_mem_op (
      .clk_i,
      .rst_ni,
      .ready_o        (op_ready),
      .busy_o,
      .op_valid_i     (mem_op_valid_i),
      .op_ready_o     (mem_op_ready_o),
      .op_data_i      (mem_op_data_i),
      .rsp_valid_o    (mem_op_rsp_valid_o),
      .rsp_ready_i    (mem_op_rsp_ready_i),
      .rsp_data_o     (mem_op_rsp_data_o),
      .mpt_req_valid_o(op_req_valid),
      .mpt_req_ready_i(op_req_ready),
      .mpt_req_write_o(op_req_write),
      .mpt_req_keep_o (op_req_keep),
      .mpt_req_index_o(op_req_index),
      .mpt_req_data_o (op_req_data),
      .mpt_rsp_valid_i(op_rsp_valid),
      .mpt_rsp_data_i (mpt_rsp_data_o),
      .drain_valid_o  (op_drain_valid),
      .drain_ready_i  (op_drain_ready),
      .mem_list_valid_i,
      .mem_list_ready_o,
      .mem_list_data_i,
      .list_wr_valid_o(list_wr_valid),
      .list_wr_line_o (list_wr_line),
      .list_wr_data_o (list_wr_data)
  );

  mpt_access u_access (
      .clk_i,
      .rst_ni,
      .req_valid_i    ({mpt_req_valid_i, op_req_valid}),
      .req_ready_o    ({mpt_req_ready_o, op_req_ready}),
      .req_write_i    ({mpt_req_write_i, op_req_write}),
      .req_keep_i     ({1'b0, op_req_keep}),
      .req_index_i    ({mpt_req_index_i, op_req_index}),
      .req_data_i     ({mpt_req_data_i, op_req_data}),
      .rsp_valid_o    ({mpt_rsp_valid_o, op_rsp_valid}),
      .mpt_req_valid_o(mpt_valid),
      .mpt_req_ready_i(mpt_ready),
      .mpt_req_write_o(mpt_write),
      .mpt_req_keep_o (mpt_keep),
      .mpt_req_index_o(mpt_index),
      .mpt_req_data_o (mpt_data),
      .mpt_rsp_valid_i(mpt_rsp_valid),
      .drain_valid_i  ({drain_valid_i, op_drain_valid}),
      .drain_ready_o  ({drain_ready_o, op_drain_ready}),
      .drain_valid_o  (drain_valid),
      .drain_ready_i  (drain_ready)
  );

  xlate_pages u_pages (
      .clk_i,
      .rst_ni,
      .ready_o        (pages_ready),
      .req_valid_i,
      .req_ready_o,
      .req_data_i,
      .rsp_valid_o,
      .rsp_ready_i,
      .rsp_data_o,
      .retire_valid_i,
      .retire_epoch_i,
      .mpt_req_valid_i(mpt_valid),
      .mpt_req_ready_o(mpt_ready),
      .mpt_req_write_i(mpt_write),
      .mpt_req_keep_i (mpt_keep),
      .mpt_req_index_i(mpt_index),
      .mpt_req_data_i (mpt_data),
      .mpt_rsp_valid_o(mpt_rsp_valid),
      .mpt_rsp_data_o,
      .drain_valid_i  (drain_valid),
      .drain_ready_o  (drain_ready),
      .list_wr_valid_i(list_wr_valid),
      .list_wr_line_i (list_wr_line),
      .list_wr_data_i (list_wr_data),
      .rd_req_valid_o,
      .rd_req_ready_i,
      .rd_req_data_o,
      .rd_rsp_valid_i,
      .rd_rsp_ready_o,
      .rd_rsp_data_i,
      .event_o
  );
endmodule

`default_nettype wire
