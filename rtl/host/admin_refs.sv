`default_nettype none
`include "assert.svh"

/// Which CQs, EQs and SRQs exist, and how many objects refer to each (QPs to CQs and SRQs, CQs and
/// SRQs to EQs). A number is an index and, of CQs and SRQs, the tag with which the object was
/// created: Look finds it only under that tag; LookIndex, Destroy, Add and Drop go by the index.
///
/// One operation at a time: op_valid_i is held, with its operation and object, until op_done_o,
/// which comes with the state before the operation. All objects are absent after reset; ready_o
/// rises when they have been cleared, and operations wait for it.
module admin_refs (
    input  wire logic       clk_i,
    input  wire logic       rst_ni,
    output logic            ready_o,
    input  wire logic       op_valid_i,
    input  wire rnic_pkg::admin_ref_t op_i,
    output logic            op_done_o,
    output logic            exists_o,
    output logic            in_use_o
);
  // Every QP may use one CQ twice, and every CQ and SRQ one EQ: 10 bits hold them.
  localparam int unsigned CountBits = 10;
  // CQs, EQs, SRQs; 256 numbers each
  localparam int unsigned Objects = 3 * 256;

  // Clear: after reset. Fetch: waits for an operation and reads its object. Apply: writes it back,
  // done.
  typedef enum logic [1:0] {
    Clear,
    Fetch,
    Apply
  } state_e;
  state_e state_q, state_d;

  logic [9:0] clear_q, object;
  logic [2:0] op;
  logic [15:0] tag, tag_d;
  logic exists, exists_d;
  logic [CountBits-1:0] count, count_d;

  assign object = {op_i.srq, op_i.eq, op_i.number[7:0]};
  assign op     = op_i.op;

  ram_1r1w #(
      .Width(1 + 16 + CountBits),
      .Depth(Objects)
  ) u_counts (
      .clk_i,
      .wr_en_i  (state_q == Clear || state_q == Apply),
      .wr_addr_i((state_q == Clear) ? clear_q : object),
      .wr_data_i((state_q == Clear) ? '0 : {exists_d, tag_d, count_d}),
      .rd_en_i  (state_q == Fetch),
      .rd_addr_i(object),
      .rd_data_o({exists, tag, count})
  );

  always_comb begin
    exists_d = exists;
    tag_d    = tag;
    count_d  = count;
    unique case (op)
      rnic_pkg::RefOpCreate: begin
        exists_d = 1'b1;
        tag_d    = op_i.number[23:8];
        count_d  = '0;
      end
      rnic_pkg::RefOpDestroy: exists_d = 1'b0;
      rnic_pkg::RefOpAdd:  count_d = count + 1'b1;
      rnic_pkg::RefOpDrop: count_d = count - 1'b1;
      default: ;
    endcase
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Clear:   if (clear_q == 10'(Objects - 1)) state_d = Fetch;
      Fetch:   if (op_valid_i) state_d = Apply;
      Apply:   state_d = Fetch;
      default: state_d = Clear;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (state_q == Clear) clear_q <= clear_q + 1'b1;
    if (!rst_ni) begin
      state_q <= Clear;
      clear_q <= '0;
    end
  end

  assign ready_o   = state_q != Clear;
  assign op_done_o = state_q == Apply;
  assign exists_o  = exists && (tag == op_i.number[23:8] || op != rnic_pkg::RefOpLook);
  assign in_use_o  = count != '0;

  `ASSERT(CreateNew, !(op_done_o && op == rnic_pkg::RefOpCreate && exists))
  `ASSERT(DestroyUnused, !(op_done_o && op == rnic_pkg::RefOpDestroy && (!exists || count != '0)))
  `ASSERT(AddToExisting, !(op_done_o && op == rnic_pkg::RefOpAdd && !exists))
  `ASSERT(DropCounted, !(op_done_o && op == rnic_pkg::RefOpDrop && count == '0))
  `ASSERT(OneKind, !op_valid_i || !op_i.srq || !op_i.eq)
  `ASSERT(OpHeld, !op_done_o || op_valid_i)
endmodule

`default_nettype wire
