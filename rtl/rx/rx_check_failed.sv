`default_nettype none

/// Which queue pairs have failed in the check stage: after a fatal NAK nothing more of the requests
/// of a QP may run, after a failure of its own requests nothing of its responses.
///
/// failed_o says it of that side of QP qp_i, at once; fail_i, a pulse, makes it so from the next
/// cycle on. clear_valid_i: both sides of clear_qp_i begin a new life.
module rx_check_failed (
    input  wire logic       clk_i,
    input  wire logic       rst_ni,
    input  wire logic       is_response_i,
    input  wire logic [7:0] qp_i,
    input  wire logic       fail_i,
    output logic            failed_o,
    input  wire logic       clear_valid_i,
    input  wire logic [7:0] clear_qp_i
);
  logic [255:0] requests_q, responses_q;

  assign failed_o = is_response_i ? responses_q[qp_i] : requests_q[qp_i];

  always_ff @(posedge clk_i) begin
    if (fail_i) begin
      if (is_response_i) responses_q[qp_i] <= 1'b1;
      else requests_q[qp_i] <= 1'b1;
    end
    if (clear_valid_i) begin
      requests_q[clear_qp_i]  <= 1'b0;
      responses_q[clear_qp_i] <= 1'b0;
    end
    if (!rst_ni) begin
      requests_q  <= '0;
      responses_q <= '0;
    end
  end
endmodule

`default_nettype wire
