`default_nettype none

/// PSNs compare as the numbers that they stand for, wherever 2^24 wraps (InfiniBand specification
/// 9.7.2): the oldest WQE is finished when the first PSN without an answer is behind its last one,
/// a Read when its last response has been placed. base_i + n is PSN number n; all are within 2^23.
module prove_retire_step (
    input wire logic                  clk_i,
    input wire logic                  rst_ni,
    input wire rnic_pkg::retire_cmd_t cmd_i,
    input wire rnic_pkg::send_ctx_t   ctx_i,
    input wire logic [7:0]            opcode_i,
    input wire logic [23:0]           base_i,
    input wire logic [21:0]           first_i,
    input wire logic [21:0]           last_i,
    input wire logic [21:0]           una_i,
    input wire logic [21:0]           psn_i,
    input wire logic                  psn_open_i
);
  logic in_table, finished, failed;
  logic [7:0] status, syndrome;
  always_comb begin
    assume (ctx_i.una_psn == base_i + {2'd0, una_i});
    assume (cmd_i.psn == base_i + {2'd0, psn_i});
    assume (first_i <= last_i);
  end

  retire_step u_dut (
      .cmd_i,
      .ctx_i,
      .opcode_i,
      .first_psn_i    (base_i + {2'd0, first_i}),
      .last_psn_i     (base_i + {2'd0, last_i}),
      .psn_open_i,
      .in_table_o     (in_table),
      .finished_o     (finished),
      .failed_o       (failed),
      .fail_status_o  (status),
      .fail_syndrome_o(syndrome)
  );

  wire logic reads = opcode_i == rnic_pkg::CqeOpcodeRead ||
      opcode_i == rnic_pkg::CqeOpcodeCompareSwap || opcode_i == rnic_pkg::CqeOpcodeFetchAdd;
  wire logic placed = cmd_i.command == rnic_pkg::RetireCommandReadDone && psn_i >= last_i;
  always_comb begin
    if (rst_ni) begin
      Acknowledged: assert (!(finished && !reads) || una_i > last_i);
      Placed: assert (!(finished && reads) || placed);
      Finishes: assert (!(in_table && !ctx_i.fault && (reads ? placed : una_i > last_i)) ||
                        finished);
      OneOrTheOther: assert (!(finished && failed));
      NotBefore: assert (!(failed && in_table && !ctx_i.fault) || psn_i >= first_i);
    end
  end
endmodule

`default_nettype wire
