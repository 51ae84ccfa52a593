`default_nettype none
`include "assert.svh"

/// Fetches payload ahead: pieces are cut at 4 KiB of the virtual address, translated, and read.
///
/// Pages are at least 4 KiB and as aligned in the virtual as in the DMA address space, so that a
/// cut lies in one page whatever the answer of the translation: requests need not wait for answers,
/// and a read stays inside 4 KiB as PCI Express wants it.
///
/// order stream: what each packet is made of, in order: its header (neither inline nor read), then
/// its pieces' parts. An inline part has its bytes on the inline stream; a read part has the answer
/// of its translation on the result stream and, when that is Ok, its data on the response stream of
/// the DMA engine. order_last_o: last part of the packet.
module tx_gather (
    input  wire logic                     clk_i,
    input  wire logic                     rst_ni,
    input  wire logic                     desc_valid_i,
    output logic                          desc_ready_o,
    input  wire logic [7:0]               desc_qp_i,
    input  wire logic                     desc_payload_i,
    input  wire logic                     piece_valid_i,
    output logic                          piece_ready_o,
    input  wire rnic_pkg::sg_piece_t      piece_data_i,
    output logic                          xlate_req_valid_o,
    input  wire logic                     xlate_req_ready_i,
    output rnic_pkg::xlate_req_t          xlate_req_data_o,
    input  wire logic                     xlate_rsp_valid_i,
    output logic                          xlate_rsp_ready_o,
    input  wire rnic_pkg::xlate_rsp_t     xlate_rsp_data_i,
    output logic                          rd_req_valid_o,
    input  wire logic                     rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t         rd_req_data_o,
    output logic                          order_valid_o,
    input  wire logic                     order_ready_i,
    output logic                          order_inline_o,
    output logic                          order_read_o,
    output logic                          order_last_o,
    output logic                          inline_valid_o,
    input  wire logic                     inline_ready_i,
    output logic [6:0]                    inline_bytes_o,
    output logic [5:0]                    inline_offset_o,
    output logic [511:0]                  inline_data_o,
    output logic                          result_valid_o,
    input  wire logic                     result_ready_i,
    output logic [3:0]                    result_status_o,
    output logic                          result_epoch_o
);
  // Parts under way; deep enough for the round trip to host memory at full rate.
  localparam int unsigned Parts = 64;

  // ---- Cutting. Desc: waiting for a packet. Pieces: going through its pieces. ----
  typedef enum logic {
    Desc,
    Pieces
  } state_e;
  state_e state_q, state_d;

  logic order_ready, inline_ready, xlate_ready, length_ready;
  logic order_push, order_last, order_inline, order_read;
  logic second_q, second_d, crosses, more;
  logic [7:0] qp_q;
  logic [12:0] room, length;
  rnic_pkg::xlate_req_t request;
  logic [$clog2(2*Parts)+1:0] unused_order_count;
  logic [5:0] unused_inline_count;
  logic [$clog2(Parts)+1:0] unused_length_count, unused_result_count;

  assign room    = 13'd4096 - {1'b0, piece_data_i.va[11:0]};
  assign crosses = piece_data_i.length > room;
  assign more    = crosses && !second_q;
  assign length  = second_q ? piece_data_i.length - room : (crosses ? room : piece_data_i.length);

  always_comb begin
    request        = '0;
    request.key    = piece_data_i.key;
    request.va     = second_q ? {piece_data_i.va[63:12] + 52'd1, 12'd0} : piece_data_i.va;
    request.length = {19'd0, length};
    request.pd     = piece_data_i.pd;
    request.access = piece_data_i.access;
    request.qp     = qp_q;
  end

  always_comb begin
    state_d       = state_q;
    second_d      = second_q;
    desc_ready_o  = 1'b0;
    piece_ready_o = 1'b0;
    order_push    = 1'b0;
    order_inline  = 1'b0;
    order_read    = 1'b0;
    order_last    = 1'b0;
    unique case (state_q)
      Desc: begin
        desc_ready_o = order_ready;
        order_push   = order_ready && desc_valid_i;
        order_last   = !desc_payload_i;
        if (order_push && desc_payload_i) state_d = Pieces;
      end
      Pieces: begin
        if (piece_data_i.inline_data) begin
          order_push    = order_ready && inline_ready && piece_valid_i;
          order_inline  = 1'b1;
          order_last    = piece_data_i.last;
          piece_ready_o = order_push;
        end else begin
          order_push    = order_ready && xlate_ready && length_ready && piece_valid_i;
          order_read    = 1'b1;
          order_last    = piece_data_i.last && !more;
          piece_ready_o = order_push && !more;
          second_d      = order_push ? more : second_q;
        end
        if (order_push && order_last) state_d = Desc;
      end
      default: state_d = Desc;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q  <= state_d;
    second_q <= second_d;
    if (state_q == Desc) qp_q <= desc_qp_i;
    if (!rst_ni) begin
      state_q  <= Desc;
      second_q <= 1'b0;
    end
  end

  stream_fifo #(
      .Width(3),
      .Depth(2 * Parts)
  ) u_order (
      .clk_i,
      .rst_ni,
      .in_valid_i (order_push),
      .in_ready_o (order_ready),
      .in_data_i  ({order_inline, order_read, order_last}),
      .out_valid_o(order_valid_o),
      .out_ready_i(order_ready_i),
      .out_data_o ({order_inline_o, order_read_o, order_last_o}),
      .count_o    (unused_order_count)
  );

  stream_fifo #(
      .Width(525),
      .Depth(16)
  ) u_inline (
      .clk_i,
      .rst_ni,
      .in_valid_i (order_push && order_inline),
      .in_ready_o (inline_ready),
      .in_data_i  ({piece_data_i.length[6:0], piece_data_i.offset, piece_data_i.data}),
      .out_valid_o(inline_valid_o),
      .out_ready_i(inline_ready_i),
      .out_data_o ({inline_bytes_o, inline_offset_o, inline_data_o}),
      .count_o    (unused_inline_count)
  );

  skid_buffer #(
      .Width(rnic_pkg::XlateReqBits)
  ) u_xlate_req (
      .clk_i,
      .rst_ni,
      .in_valid_i (order_push && order_read),
      .in_ready_o (xlate_ready),
      .in_data_i  (request),
      .out_valid_o(xlate_req_valid_o),
      .out_ready_i(xlate_req_ready_i),
      .out_data_o (xlate_req_data_o)
  );

  // ---- Reading: the answer of the translation, with the length of its request ----
  logic length_valid, rd_ready, result_ready, answer;
  logic [12:0] answer_length;
  rnic_pkg::dma_rd_req_t read;

  stream_fifo #(
      .Width(13),
      .Depth(Parts)
  ) u_lengths (
      .clk_i,
      .rst_ni,
      .in_valid_i (order_push && order_read),
      .in_ready_o (length_ready),
      .in_data_i  (length),
      .out_valid_o(length_valid),
      .out_ready_i(answer),
      .out_data_o (answer_length),
      .count_o    (unused_length_count)
  );

  assign xlate_rsp_ready_o = length_valid && rd_ready && result_ready;
  assign answer            = xlate_rsp_valid_i && xlate_rsp_ready_o;
  assign read              = {answer_length, xlate_rsp_data_i.addr};

  skid_buffer #(
      .Width(rnic_pkg::DmaRdReqBits)
  ) u_rd_req (
      .clk_i,
      .rst_ni,
      .in_valid_i (answer && xlate_rsp_data_i.status == rnic_pkg::XlateStatusOk),
      .in_ready_o (rd_ready),
      .in_data_i  (read),
      .out_valid_o(rd_req_valid_o),
      .out_ready_i(rd_req_ready_i),
      .out_data_o (rd_req_data_o)
  );

  stream_fifo #(
      .Width(5),
      .Depth(Parts)
  ) u_results (
      .clk_i,
      .rst_ni,
      .in_valid_i (answer),
      .in_ready_o (result_ready),
      .in_data_i  ({xlate_rsp_data_i.status, xlate_rsp_data_i.epoch}),
      .out_valid_o(result_valid_o),
      .out_ready_i(result_ready_i),
      .out_data_o ({result_status_o, result_epoch_o}),
      .count_o    (unused_result_count)
  );

  logic unused_contiguous;
  assign unused_contiguous = |xlate_rsp_data_i.contiguous;

  `ASSERT(PieceLength, !piece_valid_i ||
      (piece_data_i.length != '0 && piece_data_i.length <= 13'd4096))
  `ASSERT(InlineLength, !(piece_valid_i && piece_data_i.inline_data) ||
      {7'd0, piece_data_i.offset} + piece_data_i.length <= 13'd64)
  `ASSERT(CutInOnePage, !(answer && xlate_rsp_data_i.status == rnic_pkg::XlateStatusOk) ||
      xlate_rsp_data_i.contiguous == {19'd0, answer_length})
endmodule

`default_nettype wire
