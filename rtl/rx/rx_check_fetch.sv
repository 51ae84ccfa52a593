`default_nettype none
`include "assert.svh"

/// Takes the next packet for the check stage and borrows the context of its side of its QP, while
/// the judge works on the packet before it.
///
/// Two clients (lanes) of each context manager serve in turn, because the judge still holds the
/// context of its packet. A packet of the side of the QP that the judge has in hand (follows_o)
/// asks for nothing: the judge keeps the context for it, or gives it back when others want it; then
/// the packet asks like any other. ready_o: the context is here, on ctx_o (a receive context in the
/// low bits). take_i: the judge takes packet and context (ready_o), or the packet that follows.
/// What is borrowed here is given back by the judge alone, which waits for nothing that this block
/// holds.
module rx_check_fetch (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic                   desc_valid_i,
    output logic                        desc_ready_o,
    input  wire rnic_pkg::rx_desc_t     desc_data_i,
    // There is room for the plan of one more packet
    input  wire logic                   room_i,
    output logic [1:0]                  send_acq_valid_o,
    input  wire logic [1:0]             send_acq_ready_i,
    input  wire logic [1:0]             send_ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t    send_ctx_data_i,
    output logic [1:0]                  recv_acq_valid_o,
    input  wire logic [1:0]             recv_acq_ready_i,
    input  wire logic [1:0]             recv_ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t    recv_ctx_data_i,
    output logic [7:0]                  acq_index_o,
    // What the judge has in hand; its lane is that of the last packet even when it has none
    input  wire logic                   judge_busy_i,
    input  wire logic                   judge_response_i,
    input  wire logic [7:0]             judge_qp_i,
    input  wire logic                   judge_lane_i,
    output logic                        follows_o,
    output logic                        ready_o,
    output logic                        lane_o,
    output logic                        is_response_o,
    output rnic_pkg::rx_desc_t          desc_o,
    output logic [rnic_pkg::SendCtxBits-1:0] ctx_o,
    input  wire logic                   take_i,
    // A packet has been taken in; a pulse
    output logic                        taken_o
);
  localparam int unsigned SendBits = rnic_pkg::SendCtxBits;

  // Empty  takes the next packet, asks for its context at once
  // Ask    asks for the context, or follows the judge's packet
  // Wait   for the context
  // Ready  the context is here; waits for the judge
  typedef enum logic [1:0] {Empty, Ask, Wait, Ready} state_e;
  state_e state_q, state_d;

  rnic_pkg::rx_desc_t desc_q;
  logic is_response, is_response_q, same, asking, acquired, arrives;
  logic [7:0] qp;
  logic [SendBits-1:0] ctx_q, ctx_in;

  // Read responses, ACKs, and the ACK of atomics.
  assign is_response = (state_q == Empty) ?
                       desc_data_i.opcode >= rnic_pkg::RcOpcodeReadResponseFirst &&
                       desc_data_i.opcode <= rnic_pkg::RcOpcodeAtomicAcknowledge : is_response_q;
  assign qp   = (state_q == Empty) ? desc_data_i.dest_qpn[7:0] : desc_q.dest_qpn[7:0];
  assign same = judge_busy_i && judge_qp_i == qp && judge_response_i == is_response;

  // The judge's lane moves on only when it takes what is here: this one holds meanwhile.
  assign lane_o = !judge_lane_i;
  assign asking = ((state_q == Empty && desc_valid_i && room_i) || state_q == Ask) && !same;
  always_comb begin : lanes
    send_acq_valid_o         = 2'b00;
    recv_acq_valid_o         = 2'b00;
    send_acq_valid_o[lane_o] = asking && is_response;
    recv_acq_valid_o[lane_o] = asking && !is_response;
  end
  assign acq_index_o  = qp;
  assign acquired     = asking && (is_response ? send_acq_ready_i[lane_o]
                                               : recv_acq_ready_i[lane_o]);
  assign arrives      = state_q == Wait && (is_response_q ? send_ctx_valid_i[lane_o]
                                                          : recv_ctx_valid_i[lane_o]);
  assign ctx_in       = is_response_q ? send_ctx_data_i : SendBits'(recv_ctx_data_i);

  assign desc_ready_o  = state_q == Empty && room_i;
  assign taken_o       = desc_valid_i && desc_ready_o;
  assign follows_o     = state_q == Ask && same;
  assign ready_o       = state_q == Ready || arrives;
  assign is_response_o = is_response_q;
  assign desc_o        = desc_q;
  assign ctx_o         = (state_q == Ready) ? ctx_q : ctx_in;

  always_comb begin : control
    state_d = state_q;
    unique case (state_q)
      Empty: if (taken_o) state_d = acquired ? Wait : Ask;
      Ask: begin
        if (acquired) state_d = Wait;
        if (take_i) state_d = Empty;
      end
      Wait: if (arrives) state_d = take_i ? Empty : Ready;
      Ready: if (take_i) state_d = Empty;
      default: state_d = Empty;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (state_q == Empty) begin
      desc_q        <= desc_data_i;
      is_response_q <= is_response;
    end
    if (state_q == Wait) ctx_q <= ctx_in;
    if (!rst_ni) state_q <= Empty;
  end

  `ASSERT(TakesWhatIsHere, !take_i || ready_o || follows_o)
  `ASSERT_HOLD(SendAcquireHold, send_acq_valid_o[0], send_acq_ready_i[0], acq_index_o)
  `ASSERT_HOLD(RecvAcquireHold, recv_acq_valid_o[0], recv_acq_ready_i[0], acq_index_o)
  `ASSERT(OneAsks, $onehot0({send_acq_valid_o, recv_acq_valid_o}))
endmodule

`default_nettype wire
