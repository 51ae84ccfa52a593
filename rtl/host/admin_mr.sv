`default_nettype none
`include "assert.svh"

/// Admin verbs of memory regions: create, destroy, query.
///
/// Checks, in this order: the index of the key is in range (BadNumber); fields (BadParameter); the
/// entry is free (Exists), or holds this very key (BadNumber); for a destroy, no window is bound to
/// it (InUse). A destroyed region's entry is cleared and then drained before the command completes,
/// so that no DMA for its key can be under way. exec_valid_i is held with the command until
/// exec_done_o.
module admin_mr (
    input  wire logic                         clk_i,
    input  wire logic                         rst_ni,
    input  wire logic                         exec_valid_i,
    input  wire rnic_pkg::admin_command_t     command_i,
    output logic                              exec_done_o,
    output logic [7:0]                        status_o,
    output rnic_pkg::admin_mr_state_t         result_o,
    output logic                              mpt_req_valid_o,
    input  wire logic                         mpt_req_ready_i,
    output logic                              mpt_req_write_o,
    output logic [rnic_pkg::MptIndexBits-1:0] mpt_req_index_o,
    output rnic_pkg::mpt_t                    mpt_req_data_o,
    input  wire logic                         mpt_rsp_valid_i,
    input  wire rnic_pkg::mpt_t               mpt_rsp_data_i,
    output logic                              drain_valid_o,
    input  wire logic                         drain_ready_i
);
  // Idle: check the command itself. Read, Wait: get the entry. Judge: what the entry allows. Write:
  // replace it. Drain: after a destroy. Done: exec_done_o.
  typedef enum logic [2:0] {
    Idle,
    Read,
    Wait,
    Judge,
    Write,
    Drain,
    Done
  } state_e;
  state_e state_q, state_d;

  localparam logic [7:0] MinLogPage = 8'd12, MaxLogPage = 8'd30;
  localparam logic [63:0] MaxLength = 64'd1 << 47;

  logic [7:0] status_q, status_d;
  logic create, destroy, query, number_ok, fields_ok, size_ok;
  logic [64:0] end_va;
  rnic_pkg::admin_create_mr_t body;
  rnic_pkg::mpt_t entry_q;

  assign body    = command_i.body;
  assign create  = command_i.opcode == rnic_pkg::AdminOpcodeCreateMr;
  assign destroy = command_i.opcode == rnic_pkg::AdminOpcodeDestroyMr;
  assign query   = command_i.opcode == rnic_pkg::AdminOpcodeQueryMr;

  // A region may end at the last byte of the address space, but not go round it.
  assign end_va    = {1'b0, body.va} + {1'b0, body.length};
  assign size_ok   = body.length != '0 && body.length <= MaxLength &&
      (!end_va[64] || end_va[63:0] == '0);
  assign number_ok = command_i.number[31:8] < 24'd1 << rnic_pkg::MptIndexBits;
  assign fields_ok = size_ok && body.page_list[5:0] == '0 && body.log_page >= MinLogPage &&
      body.log_page <= MaxLogPage && (body.local_write || !(body.remote_write || body.remote_atomic));

  always_comb begin
    state_d  = state_q;
    status_d = status_q;
    unique case (state_q)
      Idle:
      if (exec_valid_i) begin
        state_d  = Read;
        status_d = rnic_pkg::AdminStatusSuccess;
        if (!number_ok) status_d = rnic_pkg::AdminStatusBadNumber;
        else if (create && !fields_ok) status_d = rnic_pkg::AdminStatusBadParameter;
        if (!create && !destroy && !query) status_d = rnic_pkg::AdminStatusBadOpcode;
        if (status_d != rnic_pkg::AdminStatusSuccess) state_d = Done;
      end
      Read: if (mpt_req_ready_i) state_d = Wait;
      Wait: if (mpt_rsp_valid_i) state_d = Judge;
      Judge: begin
        state_d = query ? Done : Write;
        if (create) begin
          if (entry_q.state != rnic_pkg::MptStateFree) status_d = rnic_pkg::AdminStatusExists;
        end else if (entry_q.state == rnic_pkg::MptStateFree || entry_q.tag != command_i.number[7:0]) begin
          status_d = rnic_pkg::AdminStatusBadNumber;
        end else if (destroy && entry_q.bound != '0) begin
          status_d = rnic_pkg::AdminStatusInUse;
        end
        if (status_d != rnic_pkg::AdminStatusSuccess) state_d = Done;
      end
      Write:   if (mpt_req_ready_i) state_d = create ? Done : Drain;
      Drain:   if (drain_ready_i) state_d = Done;
      Done:    state_d = Idle;
      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q  <= state_d;
    status_q <= status_d;
    if (mpt_rsp_valid_i) entry_q <= mpt_rsp_data_i;
    if (!rst_ni) state_q <= Idle;
  end

  assign mpt_req_valid_o = state_q == Read || state_q == Write;
  assign mpt_req_write_o = state_q == Write;
  assign mpt_req_index_o = command_i.number[8+:rnic_pkg::MptIndexBits];
  assign drain_valid_o   = state_q == Drain;

  always_comb begin
    mpt_req_data_o = '0;
    if (create) begin
      mpt_req_data_o.state        = rnic_pkg::MptStateValid;
      mpt_req_data_o.tag          = command_i.number[7:0];
      mpt_req_data_o.pd           = body.pd;
      mpt_req_data_o.log_page     = body.log_page[4:0];
      mpt_req_data_o.local_write  = body.local_write;
      mpt_req_data_o.remote_read  = body.remote_read;
      mpt_req_data_o.remote_write = body.remote_write;
      mpt_req_data_o.remote_atomic = body.remote_atomic;
      mpt_req_data_o.window_bind  = body.window_bind;
      mpt_req_data_o.va           = body.va;
      mpt_req_data_o.length       = body.length[47:0];
      mpt_req_data_o.page_list    = body.page_list;
    end
  end

  assign exec_done_o = state_q == Done;
  assign status_o    = status_q;
  always_comb begin
    result_o = '0;
    if (query && status_q == rnic_pkg::AdminStatusSuccess) begin
      result_o.va           = entry_q.va;
      result_o.length       = {16'd0, entry_q.length};
      result_o.pd           = entry_q.pd;
      result_o.log_page     = {3'd0, entry_q.log_page};
      result_o.local_write  = entry_q.local_write;
      result_o.remote_read  = entry_q.remote_read;
      result_o.remote_write = entry_q.remote_write;
    end
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, command_i, body.reserved, body.reserved0, entry_q};

  `ASSERT(CommandHeld, state_q == Idle || exec_valid_i)
endmodule

`default_nettype wire
