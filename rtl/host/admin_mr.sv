`default_nettype none
`include "assert.svh"

/// Admin verbs of keys: create and destroy regions, windows and fast-register regions; query any.
///
/// Checks of a create, in this order: the index of the key is in range (BadNumber); fields
/// (BadParameter); the entry is free (Exists). A query names a key in use, of windows and
/// fast-register regions by its index alone (BadNumber). Entries in use belong to the memory
/// operations, so a destroy is one: xlate says whether there is such a key of this type (BadNumber)
/// and whether windows are bound to it (InUse), unbinds a window, and answers when no DMA for the
/// key can be under way. exec_valid_i is held with the command until exec_done_o.
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
    output logic                              mem_op_valid_o,
    input  wire logic                         mem_op_ready_i,
    output rnic_pkg::mem_op_t                 mem_op_data_o,
    input  wire logic                         mem_op_rsp_valid_i,
    input  wire rnic_pkg::mem_op_rsp_t        mem_op_rsp_data_i
);
  // Idle: check the command itself. Read, Wait: get the entry. Judge: what the entry allows. Write:
  // the new entry. Destroy, Destroying: a memory operation. Done: exec_done_o.
  typedef enum logic [2:0] {
    Idle,
    Read,
    Wait,
    Judge,
    Write,
    Destroy,
    Destroying,
    Done
  } state_e;
  state_e state_q, state_d;

  localparam logic [7:0] MinLogPage = 8'd12, MaxLogPage = 8'd30;
  localparam logic [63:0] MaxLength = 64'd1 << 47;

  logic [7:0] status_q, status_d;
  logic create_mr, create_mw, create_fast, create, destroy, query;
  logic number_ok, fields_ok, size_ok, named;
  logic [1:0] kind;
  logic [64:0] end_va;
  rnic_pkg::admin_create_mr_t body;
  rnic_pkg::admin_create_mw_t mw_body;
  rnic_pkg::admin_create_fast_mr_t fast_body;
  rnic_pkg::mpt_t entry_q;

  assign body      = command_i.body;
  assign mw_body   = command_i.body;
  assign fast_body = command_i.body;

  // ---- The command ------------------------------------------------------------------------------
  // kind: what the command makes or takes away. A window of either type goes by DestroyMw: the type
  // is the entry's.
  always_comb begin
    create_mr   = 1'b0;
    create_mw   = 1'b0;
    create_fast = 1'b0;
    destroy     = 1'b0;
    query       = 1'b0;
    kind        = rnic_pkg::MptTypeRegion;
    unique case (command_i.opcode)
      rnic_pkg::AdminOpcodeCreateMr: create_mr = 1'b1;
      rnic_pkg::AdminOpcodeDestroyMr: destroy = 1'b1;
      rnic_pkg::AdminOpcodeQueryMr: query = 1'b1;
      rnic_pkg::AdminOpcodeCreateMw: begin
        create_mw = 1'b1;
        kind      = mw_body.window_type[1:0];
      end
      rnic_pkg::AdminOpcodeDestroyMw: begin
        destroy = 1'b1;
        kind    = (entry_q.mpt_type == rnic_pkg::MptTypeWindow1) ? rnic_pkg::MptTypeWindow1 :
            rnic_pkg::MptTypeWindow2;
      end
      rnic_pkg::AdminOpcodeCreateFastMr: begin
        create_fast = 1'b1;
        kind        = rnic_pkg::MptTypeFastRegion;
      end
      rnic_pkg::AdminOpcodeDestroyFastMr: begin
        destroy = 1'b1;
        kind    = rnic_pkg::MptTypeFastRegion;
      end
      default: ;
    endcase
  end
  assign create = create_mr || create_mw || create_fast;

  // A region may end at the last byte of the address space, but not go round it.
  assign end_va    = {1'b0, body.va} + {1'b0, body.length};
  assign size_ok   = body.length != '0 && body.length <= MaxLength &&
      (!end_va[64] || end_va[63:0] == '0);
  assign number_ok = command_i.number[31:8+rnic_pkg::MptIndexBits] == '0;
  always_comb begin
    fields_ok = 1'b1;
    if (create_mr) begin
      fields_ok = size_ok && body.page_list[5:0] == '0 && body.log_page >= MinLogPage &&
          body.log_page <= MaxLogPage &&
          (body.local_write || !(body.remote_write || body.remote_atomic));
    end
    if (create_mw) begin
      fields_ok = mw_body.window_type == {6'd0, rnic_pkg::MptTypeWindow1} ||
          mw_body.window_type == {6'd0, rnic_pkg::MptTypeWindow2};
    end
    if (create_fast) begin
      fields_ok = fast_body.max_pages != '0 && fast_body.max_pages <= rnic_pkg::MaxFastPages &&
          fast_body.list_lines <= rnic_pkg::MaxRegionLines[7:0] &&
          {16'd0, fast_body.list_line} + {24'd0, fast_body.list_lines} <= rnic_pkg::ListLines;
    end
  end

  // Work requests change the tags of all but plain regions.
  assign named = entry_q.state != rnic_pkg::MptStateFree &&
      (entry_q.mpt_type != rnic_pkg::MptTypeRegion || entry_q.tag == command_i.number[7:0]);

  always_comb begin
    state_d  = state_q;
    status_d = status_q;
    unique case (state_q)
      Idle:
      if (exec_valid_i) begin
        state_d  = Read;
        status_d = rnic_pkg::AdminStatusSuccess;
        if (!number_ok) status_d = rnic_pkg::AdminStatusBadNumber;
        else if (!fields_ok) status_d = rnic_pkg::AdminStatusBadParameter;
        if (!create && !destroy && !query) status_d = rnic_pkg::AdminStatusBadOpcode;
        if (status_d != rnic_pkg::AdminStatusSuccess) state_d = Done;
      end
      Read: if (mpt_req_ready_i) state_d = Wait;
      Wait: if (mpt_rsp_valid_i) state_d = Judge;
      Judge: begin
        state_d = query ? Done : (create ? Write : Destroy);
        if (create && entry_q.state != rnic_pkg::MptStateFree) begin
          status_d = rnic_pkg::AdminStatusExists;
        end
        if (query && !named) status_d = rnic_pkg::AdminStatusBadNumber;
        if (status_d != rnic_pkg::AdminStatusSuccess) state_d = Done;
      end
      Write:   if (mpt_req_ready_i) state_d = Done;
      Destroy: if (mem_op_ready_i) state_d = Destroying;
      Destroying:
      if (mem_op_rsp_valid_i) begin
        state_d = Done;
        if (mem_op_rsp_data_i.status == rnic_pkg::MemOpStatusBadState) begin
          status_d = rnic_pkg::AdminStatusInUse;
        end else if (mem_op_rsp_data_i.status != rnic_pkg::MemOpStatusOk) begin
          status_d = rnic_pkg::AdminStatusBadNumber;
        end
      end
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

  always_comb begin
    mpt_req_data_o          = '0;
    mpt_req_data_o.state    = rnic_pkg::MptStateInvalid;
    mpt_req_data_o.mpt_type = kind;
    mpt_req_data_o.tag      = command_i.number[7:0];
    mpt_req_data_o.pd       = body.pd;
    if (create_mr) begin
      mpt_req_data_o.state         = rnic_pkg::MptStateValid;
      mpt_req_data_o.log_page      = body.log_page[4:0];
      mpt_req_data_o.local_write   = body.local_write;
      mpt_req_data_o.read_sink     = body.read_sink;
      mpt_req_data_o.remote_read   = body.remote_read;
      mpt_req_data_o.remote_write  = body.remote_write;
      mpt_req_data_o.remote_atomic = body.remote_atomic;
      mpt_req_data_o.window_bind   = body.window_bind;
      mpt_req_data_o.va            = body.va;
      mpt_req_data_o.length        = body.length[47:0];
      mpt_req_data_o.page_list     = body.page_list;
    end
    if (create_mw) mpt_req_data_o.pd = mw_body.pd;
    if (create_fast) begin
      mpt_req_data_o.pd          = fast_body.pd;
      mpt_req_data_o.remote_ok   = fast_body.remote_access;
      mpt_req_data_o.window_bind = fast_body.window_bind;
      mpt_req_data_o.max_pages   = fast_body.max_pages[15:0];
      mpt_req_data_o.list_line   = fast_body.list_line[9:0];
      mpt_req_data_o.list_lines  = fast_body.list_lines[3:0];
    end
  end

  assign mem_op_valid_o = state_q == Destroy;
  always_comb begin
    mem_op_data_o          = '0;
    mem_op_data_o.op       = rnic_pkg::MemOpCodeDestroy;
    mem_op_data_o.mpt_type = kind;
    mem_op_data_o.key      = command_i.number;
  end

  assign exec_done_o = state_q == Done;
  assign status_o    = status_q;
  always_comb begin
    result_o = '0;
    if (query && status_q == rnic_pkg::AdminStatusSuccess) begin
      result_o.va            = entry_q.va;
      result_o.length        = {16'd0, entry_q.length};
      result_o.pd            = entry_q.pd;
      result_o.log_page      = {3'd0, entry_q.log_page};
      result_o.local_write   = entry_q.local_write;
      result_o.read_sink     = entry_q.read_sink;
      result_o.remote_read   = entry_q.remote_read;
      result_o.remote_write  = entry_q.remote_write;
      result_o.remote_atomic = entry_q.remote_atomic;
      result_o.window_bind   = entry_q.window_bind;
      result_o.remote_access = entry_q.remote_ok;
      result_o.valid         = entry_q.state == rnic_pkg::MptStateValid;
      result_o.mpt_type      = {6'd0, entry_q.mpt_type};
      result_o.tag           = entry_q.tag;
      result_o.bound_qp      = entry_q.qp;
      result_o.bound_windows = entry_q.bound;
      result_o.max_pages     = entry_q.max_pages;
      result_o.mr_index      = {{24 - rnic_pkg::MptIndexBits{1'b0}}, entry_q.mr_index};
    end
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, command_i, body, mw_body, fast_body, entry_q};

  `ASSERT(CommandHeld, state_q == Idle || exec_valid_i)
  `ASSERT_HOLD(MemOpHold, mem_op_valid_o, mem_op_ready_i, mem_op_data_o)
endmodule

`default_nettype wire
