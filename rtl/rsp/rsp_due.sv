`default_nettype none

/// Two bits for each QP of the responder: an ACK or NAK is due; its atomic has been executed, and
/// its answer not sent.
///
/// A turn of QP turn_qp_i takes the first (take_i): due_o and answered_o are what is known of it
/// then. due_back_i of the QP back_qp_i: its turn has sent something else, it is still due.
/// due_valid_i: an answer is due; waits_o says at once that one already is of that QP.
/// done_valid_i: the atomic of a QP has been executed. sent_i: the answer of that of back_qp_i has
/// been sent. clear_valid_i: neither, of clear_qp_i. All are pulses, and show from the next cycle
/// on.
module rsp_due (
    input  wire logic       clk_i,
    input  wire logic       rst_ni,
    input  wire logic       take_i,
    input  wire logic [7:0] turn_qp_i,
    output logic            due_o,
    output logic            answered_o,
    input  wire logic       due_back_i,
    input  wire logic       sent_i,
    input  wire logic [7:0] back_qp_i,
    input  wire logic       due_valid_i,
    input  wire logic [7:0] due_qp_i,
    output logic            waits_o,
    input  wire logic       done_valid_i,
    input  wire logic [7:0] done_qp_i,
    input  wire logic       clear_valid_i,
    input  wire logic [7:0] clear_qp_i
);
  logic [255:0] due_q, due_d, answered_q, answered_d;

  always_comb begin
    due_d = due_q;
    if (take_i) due_d[turn_qp_i] = 1'b0;
    if (due_back_i) due_d[back_qp_i] = 1'b1;
    if (due_valid_i) due_d[due_qp_i] = 1'b1;
    if (clear_valid_i) due_d[clear_qp_i] = 1'b0;
    answered_d = answered_q;
    if (sent_i) answered_d[back_qp_i] = 1'b0;
    if (done_valid_i) answered_d[done_qp_i] = 1'b1;
    if (clear_valid_i) answered_d[clear_qp_i] = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    due_q      <= due_d;
    answered_q <= answered_d;
    if (!rst_ni) begin
      due_q      <= '0;
      answered_q <= '0;
    end
  end

  assign due_o      = due_q[turn_qp_i];
  assign answered_o = answered_q[turn_qp_i];
  assign waits_o    = due_q[due_qp_i];
endmodule

`default_nettype wire
