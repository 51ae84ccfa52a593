`default_nettype none
`include "assert.svh"

/// Judges the oldest send WQE of a QP while a retire command is worked on: finished, failed, or
/// neither. Combinational.
///
/// A Read or atomic finishes when its last response has been placed, anything else when its last
/// PSN is acknowledged (InfiniBand specification 9.7.2: ACKs cover all earlier requests; 9.7.5.1.3
/// for Reads). A WQE behind an unfinished Read waits for it.
module retire_step (
    input  wire rnic_pkg::retire_cmd_t cmd_i,
    input  wire rnic_pkg::send_ctx_t   ctx_i,
    // Entry of the oldest WQE in the in-flight table
    input  wire logic [7:0]            opcode_i,
    input  wire logic [23:0]           first_psn_i,
    input  wire logic [23:0]           last_psn_i,
    // cmd_i.psn lies in what was sent and not yet acknowledged when the command came
    input  wire logic                  psn_open_i,
    // The entry is valid: the oldest WQE has been sent whole
    output logic                       in_table_o,
    output logic                       finished_o,
    output logic                       failed_o,
    output logic [7:0]                 fail_status_o,
    output logic [7:0]                 fail_syndrome_o
);
  logic [23:0] since_last, since_una, since_first;
  logic reached, acknowledged, is_read, at_fault, at_psn;

  // Differences of PSNs modulo 2^24: bit 23 clear means "not before".
  assign since_last  = cmd_i.psn - last_psn_i;
  assign since_una   = ctx_i.una_psn - 24'd1 - last_psn_i;
  assign since_first = cmd_i.psn - first_psn_i;

  assign in_table_o   = ctx_i.retire_idx != ctx_i.exec_idx;
  assign is_read      = opcode_i == rnic_pkg::CqeOpcodeRead ||
                        opcode_i == rnic_pkg::CqeOpcodeCompareSwap ||
                        opcode_i == rnic_pkg::CqeOpcodeFetchAdd;
  assign reached      = cmd_i.command == rnic_pkg::RetireCommandReadDone && !since_last[23];
  assign acknowledged = !since_una[23];

  // A local failure counts once its status is known, which comes with the FailWqe command.
  assign at_fault   = ctx_i.fault && ctx_i.fault_status != rnic_pkg::CqeStatusSuccess &&
                      ctx_i.fault_idx == ctx_i.retire_idx;
  assign finished_o = in_table_o && !at_fault && (is_read ? reached : acknowledged);

  // The PSN that failed belongs to the oldest WQE left, or to a later one that waits for a Read
  // whose data can no longer come. A WQE that is partly sent is not in the table; then the PSN
  // decides by itself.
  assign at_psn   = in_table_o ? !since_first[23] : (ctx_i.msg_active && psn_open_i);
  assign failed_o = at_fault ||
                    (cmd_i.command == rnic_pkg::RetireCommandFail && !finished_o && at_psn);
  assign fail_status_o   = at_fault ? ctx_i.fault_status : cmd_i.status;
  assign fail_syndrome_o = at_fault ? ctx_i.fault_syndrome : cmd_i.syndrome;

  logic unused_bits;
  assign unused_bits = ^{cmd_i, ctx_i, since_last[22:0], since_una[22:0], since_first[22:0]};
endmodule

`default_nettype wire
