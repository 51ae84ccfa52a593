`default_nettype none
`include "assert.svh"

/// Borrows one context at a time for the verbs of the admin queue.
///
/// valid_i is held with the access until done_o. When the context is there, view_*_o shows it (and
/// keeps it afterwards), the verb says with access_i.write whether it is to be replaced, and the
/// context goes back at once: a verb never keeps one while it waits.
module admin_access (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic                    valid_i,
    input  wire rnic_pkg::admin_access_t access_i,
    output logic                         done_o,
    output rnic_pkg::send_ctx_t          view_send_o,
    output rnic_pkg::recv_ctx_t          view_recv_o,
    output rnic_pkg::cq_ctx_t            view_cq_o,
    output rnic_pkg::eq_ctx_t            view_eq_o,
    output rnic_pkg::srq_ctx_t           view_srq_o,
    // Context managers, bit i is CtxKind i
    output logic [4:0]                   acq_valid_o,
    input  wire logic [4:0]              acq_ready_i,
    output logic [7:0]                   acq_index_o,
    input  wire logic [4:0]              ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t     send_ctx_i,
    input  wire rnic_pkg::recv_ctx_t     recv_ctx_i,
    input  wire rnic_pkg::cq_ctx_t       cq_ctx_i,
    input  wire rnic_pkg::eq_ctx_t       eq_ctx_i,
    input  wire rnic_pkg::srq_ctx_t      srq_ctx_i,
    output logic [4:0]                   rel_valid_o,
    input  wire logic [4:0]              rel_ready_i,
    output logic                         rel_write_o
);
  // Ask: for the context, when there is an access. Wait: for the context. Give: it back.
  typedef enum logic [1:0] {
    Ask,
    Wait,
    Give
  } state_e;
  state_e state_q, state_d;

  logic [4:0] manager;

  assign manager     = 5'b00001 << access_i.kind;
  assign acq_valid_o = (state_q == Ask && valid_i) ? manager : '0;
  assign acq_index_o = access_i.index;
  assign rel_valid_o = (state_q == Give) ? manager : '0;
  assign rel_write_o = access_i.write;
  assign done_o      = (rel_valid_o & rel_ready_i) != '0;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Ask:     if ((acq_valid_o & acq_ready_i) != '0) state_d = Wait;
      Wait:    if ((ctx_valid_i & manager) != '0) state_d = Give;
      Give:    if (done_o) state_d = Ask;
      default: state_d = Ask;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (ctx_valid_i[rnic_pkg::CtxKindSend]) view_send_o <= send_ctx_i;
    if (ctx_valid_i[rnic_pkg::CtxKindReceive]) view_recv_o <= recv_ctx_i;
    if (ctx_valid_i[rnic_pkg::CtxKindCq]) view_cq_o <= cq_ctx_i;
    if (ctx_valid_i[rnic_pkg::CtxKindEq]) view_eq_o <= eq_ctx_i;
    if (ctx_valid_i[rnic_pkg::CtxKindSrq]) view_srq_o <= srq_ctx_i;
    if (!rst_ni) state_q <= Ask;
  end

  `ASSERT(Held, state_q == Ask || valid_i)
endmodule

`default_nettype wire
