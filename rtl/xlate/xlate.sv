`default_nettype none
`include "assert.svh"

/// Translation: the one place that grants access to payload memory.
///
/// Two ports (0: send path, 1: receive path), each a stream of xlate_req_t and, in the order of its requests, xlate_rsp_t.
/// Checks in the order of XlateStatus, each for every request: index, tag, PD, right, range (65-bit arithmetic: no wrap).
/// LocalRead needs nothing but a live key. A live entry translates through its page list in host memory: page i of the region is
/// the 64-bit word at page_list + 8 i. A TLB keeps 64-byte lines of page lists (8 pages); a miss reads one line; the use of a line
/// fetches the next one ahead. Several misses may be outstanding; hits of one port do not wait for misses of the other.
/// Throughput: one answer every 4 cycles a port on hits.
///
/// The MPT has an administrative port. Any write to it drops all TLB lines of that entry; lines under way are not kept.
/// Drain: each Ok answer carries `epoch`; the DMA engines hand it back (retire_valid, retire_epoch) when the DMA of that answer
/// has been issued (a write: wr_done; a read: its data has arrived) or dropped. drain_valid_i held: flips the epoch, waits
/// until the old epoch's answers are all handed back, then pulses drain_ready_o.
module xlate (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    output logic                           ready_o,
    input  wire logic [1:0]                req_valid_i,
    output logic [1:0]                     req_ready_o,
    input  wire logic [2*rnic_pkg::XlateReqBits-1:0] req_data_i,
    output logic [1:0]                     rsp_valid_o,
    input  wire logic [1:0]                rsp_ready_i,
    output logic [2*rnic_pkg::XlateRspBits-1:0] rsp_data_o,
    input  wire logic [1:0]                retire_valid_i,
    input  wire logic [1:0]                retire_epoch_i,
    // Administrative port
    input  wire logic                      mpt_req_valid_i,
    output logic                           mpt_req_ready_o,
    input  wire logic                      mpt_req_write_i,
    input  wire logic [rnic_pkg::MptIndexBits-1:0] mpt_req_index_i,
    input  wire rnic_pkg::mpt_t            mpt_req_data_i,
    output logic                           mpt_rsp_valid_o,
    output rnic_pkg::mpt_t                 mpt_rsp_data_o,
    input  wire logic                      drain_valid_i,
    output logic                           drain_ready_o,
    // Page lists
    output logic                           rd_req_valid_o,
    input  wire logic                      rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t          rd_req_data_o,
    input  wire logic                      rd_rsp_valid_i,
    output logic                           rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t     rd_rsp_data_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
endmodule

`default_nettype wire
