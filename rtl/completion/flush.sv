`default_nettype none
`include "assert.svh"

/// Carries out a job of qp_error: an event (EqeType in `opcode`), then a CQE WrFlushErr for each
/// send WQE and each receive WQE of the job, in order, then the LastWqeReached event. Other QPs'
/// CQEs go between these: this block is one
/// source of many.
module flush (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    input  wire logic               job_valid_i,
    output logic                    job_ready_o,
    input  wire logic [7:0]         job_qp_i,
    input  wire logic [23:0]        job_qpn_i,
    input  wire logic               job_event_i,
    input  wire logic [7:0]         job_event_type_i,
    input  wire logic [7:0]         job_status_i,
    input  wire logic [7:0]         job_send_cqn_i,
    input  wire logic [15:0]        job_send_first_i,
    input  wire logic [4:0]         job_send_count_i,
    input  wire logic [7:0]         job_recv_cqn_i,
    input  wire logic [15:0]        job_recv_first_i,
    input  wire logic [4:0]         job_recv_count_i,
    input  wire logic               job_last_i,
    output logic                    cqe_valid_o,
    input  wire logic               cqe_ready_i,
    output logic                    cqe_is_event_o,
    output rnic_pkg::cqe_req_t      cqe_data_o,
    output logic                    busy_o,
    output logic [7:0]              busy_qp_o
);
  logic event_q, last_q;
  logic [4:0] send_count_q, recv_count_q;
  logic [15:0] send_index_q, recv_index_q;
  logic [7:0] qp_q, status_q, event_type_q, send_cqn_q, recv_cqn_q;
  logic [23:0] qpn_q;
  logic is_send;

  assign is_send        = send_count_q != '0;
  assign cqe_valid_o    = event_q || is_send || recv_count_q != '0 || last_q;
  assign cqe_is_event_o = event_q || (!is_send && recv_count_q == '0);
  assign job_ready_o    = !cqe_valid_o;
  assign busy_o         = cqe_valid_o;
  assign busy_qp_o      = qp_q;

  always_comb begin
    cqe_data_o     = '0;
    cqe_data_o.qpn = qpn_q;
    if (event_q) begin
      cqe_data_o.cqn    = send_cqn_q;
      cqe_data_o.status = status_q;
      cqe_data_o.opcode = event_type_q;
    end else if (cqe_is_event_o) begin
      cqe_data_o.cqn    = recv_cqn_q;
      cqe_data_o.opcode = rnic_pkg::EqeTypeLastWqeReached;
    end else begin
      cqe_data_o.status = rnic_pkg::CqeStatusWrFlushErr;
      if (is_send) begin
        cqe_data_o.cqn           = send_cqn_q;
        cqe_data_o.opcode        = rnic_pkg::CqeOpcodeFlush;
        cqe_data_o.wqe_index     = send_index_q;
        cqe_data_o.retired_index = send_index_q + 1'b1;
      end else begin
        cqe_data_o.cqn        = recv_cqn_q;
        cqe_data_o.opcode     = rnic_pkg::CqeOpcodeReceive;
        cqe_data_o.wqe_index  = recv_index_q;
        cqe_data_o.is_receive = 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (job_valid_i && job_ready_o) begin
      qp_q         <= job_qp_i;
      qpn_q        <= job_qpn_i;
      status_q     <= job_status_i;
      event_q      <= job_event_i;
      event_type_q <= job_event_type_i;
      send_cqn_q   <= job_send_cqn_i;
      send_index_q <= job_send_first_i;
      send_count_q <= job_send_count_i;
      recv_cqn_q   <= job_recv_cqn_i;
      recv_index_q <= job_recv_first_i;
      recv_count_q <= job_recv_count_i;
      last_q       <= job_last_i;
    end else if (cqe_valid_o && cqe_ready_i) begin
      if (event_q) begin
        event_q <= 1'b0;
      end else if (is_send) begin
        send_count_q <= send_count_q - 1'b1;
        send_index_q <= send_index_q + 1'b1;
      end else if (cqe_is_event_o) begin
        last_q <= 1'b0;
      end else begin
        recv_count_q <= recv_count_q - 1'b1;
        recv_index_q <= recv_index_q + 1'b1;
      end
    end
    if (!rst_ni) begin
      event_q      <= 1'b0;
      last_q       <= 1'b0;
      send_count_q <= '0;
      recv_count_q <= '0;
    end
  end

  `ASSERT_HOLD(CqeHold, cqe_valid_o, cqe_ready_i, {cqe_is_event_o, cqe_data_o})
endmodule

`default_nettype wire
