`default_nettype none
`include "assert.svh"

/// Strings the parts of each packet together: header, inline parts, data of DMA reads, as runs of
/// bytes (dma_rd_rsp_t with `last` on the last run of the packet).
///
/// A packet of a killed side of a QP gives no run at all. The first packet of a new try, and the
/// NAK by which the peer of a killed responder learns of the fault, are as if nothing had been
/// killed (head_turned_i; revive_o, a pulse). One whose payload fails ends with a run of no bytes
/// with err and last; what is left of its parts is consumed, and tx_fault is reported. So is a
/// packet with head_tell_i, when all of it has left (tx_fault_t sent). One with head_quiet_i whose
/// payload fails is dropped, but neither reported nor the end of its side.
/// sent: a pulse, a request is whole, so that it will leave; the last PSN that it takes.
/// Each translation is handed back (xlate_retire) when its data is here.
module gather_join (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic                   order_valid_i,
    output logic                        order_ready_o,
    input  wire logic                   order_inline_i,
    input  wire logic                   order_read_i,
    input  wire logic                   order_last_i,
    input  wire logic                   head_valid_i,
    output logic                        head_ready_o,
    input  wire logic [703:0]           head_bytes_i,
    input  wire logic [6:0]             head_length_i,
    input  wire rnic_pkg::tx_fault_t    head_fault_i,
    input  wire logic [23:0]            head_last_psn_i,
    input  wire logic                   head_tell_i,
    input  wire logic                   head_quiet_i,
    input  wire logic                   head_turned_i,
    input  wire logic                   inline_valid_i,
    output logic                        inline_ready_o,
    input  wire logic [6:0]             inline_bytes_i,
    input  wire logic [5:0]             inline_offset_i,
    input  wire logic [511:0]           inline_data_i,
    input  wire logic                   result_valid_i,
    output logic                        result_ready_o,
    input  wire logic [3:0]             result_status_i,
    input  wire logic                   result_epoch_i,
    input  wire logic                   rd_rsp_valid_i,
    output logic                        rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t  rd_rsp_data_i,
    output logic                        xlate_retire_valid_o,
    output logic                        xlate_retire_epoch_o,
    // A header begins to leave; held back until frame_ready_i
    output logic                        frame_valid_o,
    input  wire logic                   frame_ready_i,
    output logic                        run_valid_o,
    input  wire logic                   run_ready_i,
    output rnic_pkg::dma_rd_rsp_t       run_data_o,
    output logic [8:0]                  kill_index_o,
    input  wire logic                   killed_i,
    output logic                        kill_o,
    output logic                        revive_o,
    output logic                        packet_out_o,
    output logic                        dropped_o,
    output logic                        sent_valid_o,
    output logic [7:0]                  sent_qp_o,
    output logic [23:0]                 sent_psn_o,
    output logic                        fault_valid_o,
    input  wire logic                   fault_ready_i,
    output rnic_pkg::tx_fault_t         fault_data_o
);
  /// A run of no bytes that ends the packet: err and last, the top bits of dma_rd_rsp_t.
  localparam int unsigned RunBits = rnic_pkg::DmaRdRspBits;
  localparam logic [RunBits-1:0] ErrorRun = {2'b11, (RunBits - 2)'(0)};

  // Head: the next part is a header. Rest: the part of a header that does not fit one line. Body:
  // parts of the payload.
  typedef enum logic [1:0] {
    Head,
    Rest,
    Body
  } state_e;
  state_e state_q, state_d;

  // dead_q: the payload of this packet is thrown away. fault_q: how to report the packet of Body.
  logic dead_q, dead_d, barred, long_head, refused, pop, fault, fault_room;
  logic tell_q, tells, clear, whole, sent, quiet_q, ends;
  logic [3:0] fault_status;
  rnic_pkg::tx_fault_t fault_q, fault_d;

  assign long_head    = head_length_i > 7'd64;
  assign kill_index_o = (state_q == Body) ? {fault_q.responder, fault_q.qp} :
      {head_fault_i.responder, head_fault_i.qp};
  assign barred  = killed_i && !head_turned_i;
  assign refused = result_status_i != rnic_pkg::XlateStatusOk;
  assign ends    = fault && !quiet_q;
  assign kill_o  = ends;
  assign revive_o = state_q == Head && order_valid_i && head_valid_i && head_turned_i;
  // The last part of a packet leaves only when there is room to tell so.
  assign tells   = order_last_i && ((state_q == Body) ? tell_q : head_tell_i);
  assign clear   = fault_room || !tells;
  assign whole   = pop && order_last_i && !fault && !((state_q == Head) ? barred : dead_q);
  assign sent    = whole && tells;

  always_comb begin
    state_d              = state_q;
    dead_d               = dead_q;
    pop                  = 1'b0;
    fault                = 1'b0;
    fault_status         = result_status_i;
    dropped_o            = 1'b0;
    head_ready_o         = 1'b0;
    inline_ready_o       = 1'b0;
    result_ready_o       = 1'b0;
    rd_rsp_ready_o       = 1'b0;
    xlate_retire_valid_o = 1'b0;
    frame_valid_o        = 1'b0;
    run_valid_o          = 1'b0;
    run_data_o           = '0;
    unique case (state_q)
      Head: begin
        run_data_o.data  = head_bytes_i[511:0];
        run_data_o.bytes = long_head ? 7'd64 : head_length_i;
        run_data_o.last  = order_last_i && !long_head;
        dead_d           = barred;
        if (order_valid_i && head_valid_i && barred) begin
          pop          = 1'b1;
          head_ready_o = 1'b1;
          dropped_o    = 1'b1;
        end else if (order_valid_i && head_valid_i) begin
          frame_valid_o = run_ready_i && clear;
          run_valid_o   = frame_ready_i && clear;
          pop           = frame_ready_i && run_ready_i && clear && !long_head;
          head_ready_o  = pop;
          if (frame_ready_i && run_ready_i && clear && long_head) state_d = Rest;
        end
      end
      Rest: begin
        run_valid_o           = clear;
        run_data_o.data[191:0] = head_bytes_i[703:512];
        run_data_o.bytes      = head_length_i - 7'd64;
        run_data_o.last       = order_last_i;
        pop                   = run_ready_i && clear;
        head_ready_o          = pop;
      end
      Body: begin
        if (order_valid_i && order_inline_i && inline_valid_i) begin
          run_valid_o       = !dead_q && clear;
          run_data_o.data   = inline_data_i;
          run_data_o.offset = inline_offset_i;
          run_data_o.bytes  = inline_bytes_i;
          run_data_o.last   = order_last_i;
          pop               = dead_q || (run_ready_i && clear);
          inline_ready_o    = pop;
        end else if (order_valid_i && order_read_i && result_valid_i && refused) begin
          pop            = dead_q || (run_ready_i && fault_room);
          run_valid_o    = !dead_q && fault_room;
          run_data_o     = ErrorRun;
          fault          = pop && !dead_q;
          result_ready_o = pop;
        end else if (order_valid_i && order_read_i && result_valid_i) begin
          rd_rsp_ready_o       = dead_q || (run_ready_i && fault_room);
          run_valid_o          = rd_rsp_valid_i && !dead_q && fault_room;
          run_data_o           = rd_rsp_data_i.err ? ErrorRun : rd_rsp_data_i;
          run_data_o.last      = rd_rsp_data_i.err || (rd_rsp_data_i.last && order_last_i);
          fault                = rd_rsp_valid_i && rd_rsp_ready_o && rd_rsp_data_i.err && !dead_q;
          pop                  = rd_rsp_valid_i && rd_rsp_ready_o && rd_rsp_data_i.last;
          result_ready_o       = pop;
          xlate_retire_valid_o = pop;
        end
        dead_d    = dead_q || fault;
        dropped_o = fault;
      end
      default: state_d = Head;
    endcase
    if (pop) state_d = order_last_i ? Head : Body;
  end

  assign order_ready_o        = pop;
  assign packet_out_o         = pop && order_last_i;
  assign sent_valid_o         = whole && !kill_index_o[8];
  assign sent_qp_o            = kill_index_o[7:0];
  // What has a payload takes one PSN.
  assign sent_psn_o           = (state_q == Body) ? fault_q.psn : head_last_psn_i;
  assign xlate_retire_epoch_o = result_epoch_i;

  always_comb begin
    fault_d        = (state_q == Body) ? fault_q : head_fault_i;
    fault_d.status = fault_status;
    fault_d.sent   = sent;
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    dead_q  <= dead_d;
    if (state_q != Body) begin
      fault_q <= head_fault_i;
      tell_q  <= head_tell_i;
      quiet_q <= head_quiet_i;
    end
    if (!rst_ni) begin
      state_q <= Head;
      dead_q  <= 1'b0;
    end
  end

  skid_buffer #(
      .Width(rnic_pkg::TxFaultBits)
  ) u_fault (
      .clk_i,
      .rst_ni,
      .in_valid_i (ends || sent),
      .in_ready_o (fault_room),
      .in_data_i  (fault_d),
      .out_valid_o(fault_valid_o),
      .out_ready_i(fault_ready_i),
      .out_data_o (fault_data_o)
  );

  `ASSERT(RoomToTell, !(fault || sent) || fault_room)
  `ASSERT(HeadFirst, !(order_valid_i && state_q == Head) || !(order_inline_i || order_read_i))
  `ASSERT(PartsThen, !(order_valid_i && state_q == Body) || (order_inline_i ^ order_read_i))
endmodule

`default_nettype wire
