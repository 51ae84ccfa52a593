`default_nettype none
`include "assert.svh"

/// Checks of one access against its MPT entry, and its place in the page list. Two stages:
///   first   entry here: the checks, in the order of XlateStatus
///   second  which page of the region, how much of it the access covers
/// A window grants remote accesses only; of type 2B only to the QP on which it was bound
/// (InfiniBand specification 10.6.7.2). Its region needs no look: while it is bound, the region can
/// be neither destroyed nor invalidated.
/// in_* belong to the first stage's cycle; out_* are in the second.
module xlate_check #(
    parameter int unsigned GenBits = 8,
    parameter int unsigned PageBits = 37,
    localparam int unsigned KeyBits = PageBits - 3 + GenBits + rnic_pkg::MptIndexBits
) (
    input  wire logic                  clk_i,
    input  wire rnic_pkg::xlate_req_t  in_req_i,
    input  wire rnic_pkg::mpt_t        in_entry_i,
    input  wire logic [GenBits-1:0]    in_gen_i,
    output logic [3:0]                 out_status_o,
    output logic [KeyBits-1:0]         out_key_o,         // {page list line, generation, MPT index}
    output logic [2:0]                 out_word_o,        // Word within the line
    output logic [30:0]                out_offset_o,      // Byte within the page
    output logic [31:0]                out_contiguous_o,
    output logic                       out_more_o,        // The page list goes on after this line
    output logic [58:0]                out_list_o         // {on chip, page list in lines}
);
  localparam int unsigned IndexBits = rnic_pkg::MptIndexBits;

  rnic_pkg::xlate_req_t req;
  rnic_pkg::mpt_t entry;
  assign req   = in_req_i;
  assign entry = in_entry_i;

  // ---- First stage ------------------------------------------------------------------------------
  // The range is checked in one bit more than its operands have: [va, va + length) may end at 2^64,
  // not go past it.
  logic [63:0] distance;
  logic [64:0] end_va;
  logic [48:0] end_offset;
  logic below, wraps, beyond, right, window, other_qp;
  logic [3:0] status;

  assign distance   = req.va - entry.va;
  assign below      = req.va < entry.va;
  assign end_va     = {1'b0, req.va} + {33'd0, req.length};
  assign wraps      = end_va[64] && end_va[63:0] != '0;
  assign end_offset = {1'b0, distance[47:0]} + {17'd0, req.length};
  assign beyond     = distance[63:48] != '0 || end_offset > {1'b0, entry.length};

  assign window   = entry.mpt_type == rnic_pkg::MptTypeWindow1 ||
      entry.mpt_type == rnic_pkg::MptTypeWindow2;
  assign other_qp = entry.mpt_type == rnic_pkg::MptTypeWindow2 && entry.qp != req.qp;

  always_comb begin
    unique case (req.access)
      rnic_pkg::AccessLocalRead: right = !window;
      rnic_pkg::AccessLocalWrite: right = !window && entry.local_write;
      rnic_pkg::AccessLocalSink: right = !window && (entry.local_write || entry.read_sink);
      rnic_pkg::AccessRemoteRead: right = entry.remote_read;
      rnic_pkg::AccessRemoteWrite: right = entry.remote_write;
      rnic_pkg::AccessRemoteAtomic: right = entry.remote_atomic;
      default: right = 1'b0;
    endcase
    if (req.key[31:8+IndexBits] != '0 || entry.state == rnic_pkg::MptStateFree) begin
      status = rnic_pkg::XlateStatusBadIndex;
    end else if (entry.tag != req.key[7:0]) status = rnic_pkg::XlateStatusBadTag;
    else if (entry.state != rnic_pkg::MptStateValid) status = rnic_pkg::XlateStatusBadState;
    else if (entry.pd != req.pd) status = rnic_pkg::XlateStatusBadPd;
    else if (other_qp) status = rnic_pkg::XlateStatusBadQp;
    else if (!right) status = rnic_pkg::XlateStatusBadAccess;
    else if (below || wraps || beyond) status = rnic_pkg::XlateStatusBadRange;
    else status = rnic_pkg::XlateStatusOk;
  end

  // Pages are counted from the one that holds the first byte; a page list may begin at any word of
  // its first line.
  logic [30:0] mask;
  assign mask = ~(31'h7FFF_FFFF << entry.log_page);

  logic [47:0] distance_q, length_q;
  logic [30:0] mask_q, base_q, offset_q;
  logic [31:0] bytes_q;
  logic [4:0] log_page_q;
  logic [GenBits-1:0] gen_q;
  logic [2:0] first_word_q;
  logic [IndexBits-1:0] index_q;
  always_ff @(posedge clk_i) begin
    out_status_o <= status;
    out_list_o   <= {entry.on_chip, entry.page_list[63:6]};
    distance_q   <= distance[47:0];
    length_q     <= entry.length;
    mask_q       <= mask;
    base_q       <= entry.va[30:0] & mask;
    offset_q     <= req.va[30:0] & mask;
    bytes_q      <= req.length;
    log_page_q   <= entry.log_page;
    first_word_q <= entry.page_list[5:3];
    gen_q        <= in_gen_i;
    index_q      <= req.key[8+:IndexBits];
  end

  // ---- Second stage -----------------------------------------------------------------------------
  logic [48:0] from_start, last_byte, page, last_page;
  logic [31:0] room;

  assign from_start = {1'b0, distance_q} + {18'd0, base_q};
  assign last_byte  = {1'b0, length_q} + {18'd0, base_q} - 49'd1;
  assign page       = (from_start >> log_page_q) + {46'd0, first_word_q};
  assign last_page  = (last_byte >> log_page_q) + {46'd0, first_word_q};
  assign room       = {1'b0, mask_q - offset_q} + 32'd1;

  assign out_key_o        = {page[PageBits-1:3], gen_q, index_q};
  assign out_word_o       = page[2:0];
  assign out_offset_o     = offset_q;
  assign out_contiguous_o = bytes_q < room ? bytes_q : room;
  assign out_more_o       = page[PageBits-1:3] != last_page[PageBits-1:3];

  logic unused_bits;
  assign unused_bits = &{
    1'b0, page[48:PageBits], last_page[48:PageBits], last_page[2:0], entry.page_list[2:0],
    entry.bound, entry.window_bind, entry.remote_ok, entry.max_pages, entry.mr_index,
    entry.list_line, entry.list_lines
  };
endmodule

`default_nettype wire
