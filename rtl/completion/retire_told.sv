`default_nettype none

/// What retire tells the others of a WQE or of its queue pair. Combinational.
///
/// cqe_o: the WQE at retire_idx of the context has ended; in_table_i, opcode_i, length_i are its
/// entry. record_o: the retired-index record. error_o: the QP has failed; with owed_i the flush
/// that has waited for a memory operation may begin. recover_o: the command is recovery's.
module retire_told (
    input  wire rnic_pkg::retire_cmd_t cmd_i,
    input  wire rnic_pkg::send_ctx_t   ctx_i,
    input  wire logic                  in_table_i,
    input  wire logic [7:0]            opcode_i,
    input  wire logic [31:0]           length_i,
    input  wire logic                  failed_i,
    input  wire logic [7:0]            fail_status_i,
    input  wire logic [7:0]            fail_syndrome_i,
    input  wire logic                  owed_i,
    output rnic_pkg::cqe_req_t         cqe_o,
    output rnic_pkg::dma_wr_t          record_o,
    output rnic_pkg::qp_error_t        error_o,
    output rnic_pkg::recover_cmd_t     recover_o
);
  // The opcode and length of a WQE that is not in the table are not known here.
  always_comb begin
    cqe_o               = '0;
    cqe_o.cqn           = ctx_i.cqn;
    cqe_o.status        = failed_i ? fail_status_i : rnic_pkg::CqeStatusSuccess;
    cqe_o.opcode        = in_table_i ? opcode_i : rnic_pkg::CqeOpcodeFlush;
    cqe_o.wqe_index     = ctx_i.retire_idx;
    cqe_o.qpn           = ctx_i.qpn;
    cqe_o.byte_count    = in_table_i ? length_i : '0;
    cqe_o.retired_index = ctx_i.retire_idx + 1'b1;
    cqe_o.syndrome      = failed_i ? fail_syndrome_i : '0;
  end

  // The record lies within one line: its address is 8-byte aligned.
  rnic_pkg::retired_record_t record;
  always_comb begin
    record               = '0;
    record.retired_index = ctx_i.retire_idx;
    record_o             = '0;
    record_o.addr        = ctx_i.retired_address;
    record_o.length      = 13'd8;
    record_o.data        = {448'd0, record} << {ctx_i.retired_address[5:3], 6'd0};
    record_o.last        = 1'b1;
  end

  always_comb begin
    error_o           = '0;
    error_o.qp        = cmd_i.qp;
    error_o.status    = ctx_i.fault_status;
    error_o.told      = 1'b1;
    error_o.send_only = ctx_i.qp_type != rnic_pkg::QpTypeRc;
    // Nothing new: the flush that has waited for the memory operation.
    if (owed_i) begin
      error_o.told      = 1'b0;
      error_o.status    = rnic_pkg::CqeStatusWrFlushErr;
      error_o.send_only = 1'b1;
      error_o.quiet     = 1'b1;
    end
  end

  always_comb begin
    recover_o          = '0;
    recover_o.qp       = cmd_i.qp;
    recover_o.psn      = cmd_i.psn;
    recover_o.syndrome = cmd_i.syndrome;
    recover_o.status   = cmd_i.status;
    recover_o.cause    = rnic_pkg::RecoverCauseNak;
    if (cmd_i.command == rnic_pkg::RetireCommandRefuse) begin
      recover_o.cause = rnic_pkg::RecoverCauseRefused;
    end else if (cmd_i.command == rnic_pkg::RetireCommandFailWqe) begin
      recover_o.cause = rnic_pkg::RecoverCauseFault;
    end else if (cmd_i.syndrome[7:5] == rnic_pkg::AethSyndromeRnrNak[7:5]) begin
      recover_o.cause = rnic_pkg::RecoverCauseRnr;
    end
  end

  logic unused_bits;
  assign unused_bits = ^{cmd_i, ctx_i};
endmodule

`default_nettype wire
