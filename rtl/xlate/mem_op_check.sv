`default_nettype none

/// Judges a memory operation: status, and the entry that takes the target's place.
///
/// The inputs hold still; the outputs are right four cycles after the last change. Binds of more
/// than nothing look at the region's entry, all others at the target's only. The first check that
/// fails decides, in this order: the target is there and in the protection domain (BadKey), its
/// type (BadRequest), its state (BadState), its own tag or the region's key (BadKey), fields
/// (BadRequest), rights and QP (BadAccess), range (BadRange). Destroy asks for no protection
/// domain, and takes another type or tag for a key that is not there.
/// A window gets the part of its region's page list that begins with its first page. Whether the
/// pages of an inline list are aligned is not judged here.
module mem_op_check (
    input  wire logic              clk_i,
    input  wire rnic_pkg::mem_op_t op_i,
    input  wire rnic_pkg::mpt_t    target_i,
    input  wire rnic_pkg::mpt_t    region_i,
    output logic [2:0]             status_o,
    output rnic_pkg::mpt_t         next_o
);
  localparam int unsigned IndexBits = rnic_pkg::MptIndexBits;
  localparam logic [63:0] MaxLength = 64'd1 << 47;
  // Of the list in the WQE.
  localparam logic [5:0] ListOffset = 6'd48;
  localparam logic [7:0] MinLogPage = 8'd12, MaxLogPage = 8'd30;

  rnic_pkg::mem_op_t op;
  rnic_pkg::mpt_t target, region;
  assign op     = op_i;
  assign target = target_i;
  assign region = region_i;

  logic bind_op, unbind, fast, destroy, is_window2, valid;
  assign bind_op    = op.op == rnic_pkg::MemOpCodeBindWindow1 ||
      op.op == rnic_pkg::MemOpCodeBindWindow2;
  assign unbind     = op.op == rnic_pkg::MemOpCodeBindWindow1 && op.length == '0;
  assign fast       = op.op == rnic_pkg::MemOpCodeFastRegister;
  assign destroy    = op.op == rnic_pkg::MemOpCodeDestroy;
  assign is_window2 = target.mpt_type == rnic_pkg::MptTypeWindow2;
  assign valid      = target.state == rnic_pkg::MptStateValid;

  // ---- First cycle ------------------------------------------------------------------------------
  // What needs no arithmetic, and the first half of what does.
  logic there, type_ok, state_ok, key_ok, region_ok, fields_ok, list_ok, access_ok;
  logic remote, no_local;
  logic bad_range_q, below_q;
  logic [2:0] early, early_q;
  logic [30:0] op_mask, region_mask, base_q;
  logic [64:0] end_va;
  logic [63:0] distance_q, list_bytes_q, needed_q;

  assign remote   = op.remote_read || op.remote_write || op.remote_atomic;
  assign no_local = op.remote_write || op.remote_atomic;
  assign there    = op.key[31:8+IndexBits] == '0 && target.state != rnic_pkg::MptStateFree &&
      (destroy || target.pd == op.pd);
  assign region_ok = op.mr_key[31:8+IndexBits] == '0 && region.tag == op.mr_key[7:0] &&
      region.state == rnic_pkg::MptStateValid && region.pd == op.pd &&
      (region.mpt_type == rnic_pkg::MptTypeRegion ||
       region.mpt_type == rnic_pkg::MptTypeFastRegion);
  // The first line has room for two pages, the others for eight.
  assign list_ok = op.page_list == '0 && target.list_lines != '0 &&
      op.page_count <= {25'd0, target.list_lines, 3'd0} - 32'd6;
  assign op_mask = ~(31'h7FFF_FFFF << op.log_page[4:0]);

  always_comb begin
    type_ok   = 1'b1;
    state_ok  = 1'b1;
    key_ok    = 1'b1;
    fields_ok = 1'b1;
    access_ok = 1'b1;
    unique case (op.op)
      rnic_pkg::MemOpCodeBindWindow1, rnic_pkg::MemOpCodeBindWindow2: begin
        type_ok = target.mpt_type == ((op.op == rnic_pkg::MemOpCodeBindWindow2) ?
            rnic_pkg::MptTypeWindow2 : rnic_pkg::MptTypeWindow1);
        state_ok  = op.op == rnic_pkg::MemOpCodeBindWindow1 || !valid;
        key_ok    = unbind || region_ok;
        access_ok = unbind || (region.window_bind && (region.local_write || !no_local));
      end
      rnic_pkg::MemOpCodeInvalidate, rnic_pkg::MemOpCodeInvalidateRemote: begin
        type_ok  = is_window2 || target.mpt_type == rnic_pkg::MptTypeFastRegion;
        state_ok = valid && (is_window2 || target.bound == '0);
        key_ok   = target.tag == op.key[7:0];
        if (is_window2) access_ok = target.qp == op.qp;
        else if (op.op == rnic_pkg::MemOpCodeInvalidateRemote) begin
          access_ok = target.remote_read || target.remote_write || target.remote_atomic;
        end
      end
      rnic_pkg::MemOpCodeFastRegister: begin
        type_ok   = target.mpt_type == rnic_pkg::MptTypeFastRegion;
        state_ok  = !valid;
        fields_ok = op.log_page >= MinLogPage && op.log_page <= MaxLogPage &&
            op.page_count != '0 && (op.inline_list ? list_ok : op.page_list[2:0] == '0) &&
            op.page_count <= {16'd0, target.max_pages} && (op.local_write || !no_local) &&
            op.first_offset == {1'b0, op.va[30:0] & op_mask};
        access_ok = target.remote_ok || !remote;
      end
      rnic_pkg::MemOpCodeDestroy: begin
        // The tag of what work requests register or bind is theirs.
        type_ok  = target.mpt_type == op.mpt_type;
        key_ok   = target.mpt_type != rnic_pkg::MptTypeRegion || target.tag == op.key[7:0];
        state_ok = target.bound == '0;
      end
      rnic_pkg::MemOpCodeUnbindQp: ;
      default: type_ok = 1'b0;
    endcase
    early = rnic_pkg::MemOpStatusOk;
    if (!there || (destroy && !(type_ok && key_ok))) early = rnic_pkg::MemOpStatusBadKey;
    else if (!type_ok) early = rnic_pkg::MemOpStatusBadRequest;
    else if (!state_ok) early = rnic_pkg::MemOpStatusBadState;
    else if (!key_ok) early = rnic_pkg::MemOpStatusBadKey;
    else if (!fields_ok) early = rnic_pkg::MemOpStatusBadRequest;
    else if (!access_ok) early = rnic_pkg::MemOpStatusBadAccess;
    if (op.op == rnic_pkg::MemOpCodeUnbindQp) early = rnic_pkg::MemOpStatusOk;
  end

  assign end_va      = {1'b0, op.va} + {1'b0, op.length};
  assign region_mask = ~(31'h7FFF_FFFF << region.log_page);

  always_ff @(posedge clk_i) begin
    early_q       <= early;
    bad_range_q <= (end_va[64] && end_va[63:0] != '0) || op.length > MaxLength ||
        (fast && op.length == '0);
    below_q       <= op.va < region.va;
    distance_q    <= op.va - region.va;
    base_q        <= region.va[30:0] & region_mask;
    list_bytes_q  <= {48'd0, op.page_count[15:0]} << op.log_page[4:0];
    needed_q      <= {16'd0, op.length[47:0]} + {32'd0, op.first_offset};
  end

  // ---- Second to fourth cycle -------------------------------------------------------------------
  logic [2:0] status_q;
  logic range_ok;
  logic [49:0] end_offset;
  logic [48:0] from_start_q, page_q;

  assign end_offset = {2'd0, distance_q[47:0]} + {2'd0, op.length[47:0]};
  always_comb begin
    range_ok = !bad_range_q;
    if (bind_op && (below_q || distance_q[63:48] != '0 || end_offset > {2'd0, region.length})) begin
      range_ok = 1'b0;
    end
    if (fast && needed_q > list_bytes_q) range_ok = 1'b0;
    if (unbind || !(bind_op || fast)) range_ok = 1'b1;
  end

  logic [63:0] window_list_q;
  always_ff @(posedge clk_i) begin
    status_q      <= early_q;
    if (early_q == rnic_pkg::MemOpStatusOk && !range_ok) begin
      status_q <= rnic_pkg::MemOpStatusBadRange;
    end
    from_start_q  <= {1'b0, distance_q[47:0]} + {18'd0, base_q};
    page_q        <= from_start_q >> region.log_page;
    window_list_q <= region.page_list + {12'd0, page_q, 3'd0};
  end
  assign status_o = status_q;

  // ---- The entry --------------------------------------------------------------------------------
  always_comb begin
    next_o       = target;
    next_o.state = rnic_pkg::MptStateInvalid;
    if (destroy) next_o = '0;
    if (bind_op) next_o.tag = op.key[7:0];
    if ((bind_op && !unbind) || fast) begin
      next_o.state         = rnic_pkg::MptStateValid;
      next_o.tag           = op.key[7:0];
      next_o.local_write   = fast && op.local_write;
      next_o.read_sink     = fast && op.read_sink;
      next_o.remote_read   = op.remote_read;
      next_o.remote_write  = op.remote_write;
      next_o.remote_atomic = op.remote_atomic;
      next_o.va            = op.va;
      next_o.length        = op.length[47:0];
      next_o.log_page      = fast ? op.log_page[4:0] : region.log_page;
      next_o.page_list     = fast ? op.page_list : window_list_q;
      next_o.on_chip       = fast ? op.inline_list : region.on_chip;
      if (fast && op.inline_list) next_o.page_list = {48'd0, target.list_line, ListOffset};
    end
    if (bind_op && !unbind) begin
      next_o.qp       = op.qp;
      next_o.mr_index = op.mr_key[8+:IndexBits];
    end
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, region, op};
endmodule

`default_nettype wire
