`default_nettype none
`include "assert.svh"

/// Takes one WQE from the DMA read stream and copies its data segments to the scatter list RAM, one
/// 16-byte segment a cycle.
///
/// start_i (a pulse, while idle) says what WQE it must be; done_o is a pulse, with count_o and
/// bad_o valid in that cycle. Bad: the read failed, the index is not the one expected, more
/// segments than MaxSge or than the slot holds, or (send queue) not a Read or an atomic. unread_o:
/// bad because the read failed. tag_o is
/// the tag of a receive WQE; lost_o: it is not known, because the read failed or this is another
/// WQE. The rest of the slot is thrown away.
module rx_place_wqe (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic                    start_i,
    input  wire logic                    is_send_wqe_i,
    input  wire logic [7:0]              qp_i,
    input  wire logic [23:0]             qpn_i,
    input  wire logic [15:0]             wqe_idx_i,
    output logic                         done_o,
    output logic [4:0]                   count_o,
    output logic                         bad_o,
    output logic                         unread_o,
    output logic                         lost_o,
    output logic [15:0]                  tag_o,
    input  wire logic                    rd_rsp_valid_i,
    output logic                         rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t   rd_rsp_data_i,
    output logic                         sge_wr_en_o,
    output logic [12:0]                  sge_wr_addr_o,
    output logic [127:0]                 sge_wr_data_o
);
  // lane_q: 16-byte lane of the line. index_q: segment number in the WQE. first_q: no beat of this
  // WQE has been seen.
  logic busy_q, first_q, header_done_q, bad_q, lost_q;
  logic [1:0] lane_q, lane;
  logic [5:0] index_q, first_data, last_index;
  logic [4:0] count_q, data_index;

  logic [127:0] segment;
  rnic_pkg::wqe_receive_t receive;
  rnic_pkg::wqe_control_t control;
  assign lane    = first_q ? rd_rsp_data_i.offset[5:4] : lane_q;
  assign segment = rd_rsp_data_i.data[lane*128+:128];
  assign receive = segment;
  assign control = segment;

  // Header: how many data segments follow, and is it the right WQE.
  logic header_bad, is_data, needed, beat_used, is_atomic, atomic_q;
  logic [7:0] header_count;
  assign is_atomic    = header_done_q ? atomic_q : is_send_wqe_i
      && (control.opcode == rnic_pkg::WqeOpcodeCompareSwap
          || control.opcode == rnic_pkg::WqeOpcodeFetchAdd);
  assign first_data   = is_send_wqe_i ? (is_atomic ? 6'd3 : 6'd2) : 6'd1;
  assign header_count = is_send_wqe_i ? control.size - 8'(first_data) : receive.sge_count;
  always_comb begin : header
    header_bad = header_count > 8'(rnic_pkg::MaxSge);
    if (is_send_wqe_i) begin
      if ((control.opcode != rnic_pkg::WqeOpcodeRead && !is_atomic) || control.inline_data
          || control.size < 8'(first_data) || control.wqe_index != wqe_idx_i
          || control.qpn != qpn_i) header_bad = 1'b1;
    end else if (receive.wqe_index != wqe_idx_i) begin
      header_bad = 1'b1;
    end
  end

  // The last beat may end before its last lane (a slot of 32 bytes).
  logic lane_end;
  logic [6:0] beat_end;
  assign beat_end = 7'(rd_rsp_data_i.offset) + rd_rsp_data_i.bytes;
  assign lane_end = {1'b0, lane, 4'd0} + 7'd16 >= beat_end;

  // A send WQE starts a line: its remote address and atomic segments are stepped over.
  logic [5:0] step;
  assign step = header_done_q ? 6'd1 : first_data;

  // A segment is needed up to the last data segment; a beat is done with after its last lane or the
  // last needed segment.
  assign last_index = first_data + 6'(count_q) - 6'd1;
  assign is_data    = header_done_q && !bad_q && index_q >= first_data && count_q != 5'd0;
  assign needed     = !header_done_q || (!bad_q && index_q < last_index && count_q != 5'd0);
  assign data_index = 5'(index_q - first_data);
  assign beat_used  = rd_rsp_data_i.err || !needed || lane_end;

  assign rd_rsp_ready_o = busy_q && beat_used;
  assign done_o         = rd_rsp_ready_o && rd_rsp_valid_i && rd_rsp_data_i.last;
  // At the end of the slot the last data segment must have been seen.
  assign bad_o   = bad_q || rd_rsp_data_i.err || !header_done_q
      || (count_q != 5'd0 && index_q < last_index);
  assign unread_o = rd_rsp_data_i.err;
  assign count_o = count_q;
  assign lost_o  = lost_q || rd_rsp_data_i.err || !header_done_q;

  assign sge_wr_en_o   = busy_q && rd_rsp_valid_i && !rd_rsp_data_i.err && is_data
      && index_q <= last_index;
  assign sge_wr_addr_o = {is_send_wqe_i, qp_i, data_index[3:0]};
  assign sge_wr_data_o = segment;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      busy_q        <= 1'b1;
      first_q       <= 1'b1;
      header_done_q <= 1'b0;
      bad_q         <= 1'b0;
      lost_q        <= 1'b0;
      index_q       <= 6'd0;
      count_q       <= 5'd0;
    end else if (busy_q && rd_rsp_valid_i) begin
      first_q       <= 1'b0;
      lane_q        <= beat_used ? 2'd0 : lane + step[1:0];
      header_done_q <= 1'b1;
      if (!header_done_q) begin
        count_q <= header_count[4:0];
        bad_q   <= header_bad;
        lost_q  <= receive.wqe_index != wqe_idx_i;
        tag_o   <= receive.tag;
        atomic_q <= is_atomic;
      end
      if (index_q < 6'd62) index_q <= index_q + step;
      if (done_o) busy_q <= 1'b0;
    end
    if (!rst_ni) busy_q <= 1'b0;
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, rd_rsp_data_i.offset[3:0], receive.reserved0, receive.reserved1,
      receive.reserved2, control.silent, control.fence, control.solicited, control.ip_csum,
      control.reserved0, control.immediate, control.length, header_count[7:5], data_index[4]};
  `ASSERT(StartWhenIdle, !(start_i && busy_q))
endmodule

`default_nettype wire
