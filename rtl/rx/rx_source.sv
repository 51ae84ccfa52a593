`default_nettype none

/// Where a QP takes its next receive WQE from: its own queue, or the shared one it is on. The
/// comparisons are right one cycle after ctx_i and srq_i are stable.
///
/// srq_i counts only when ctx_i is on an SRQ. error_o: the SRQ gives no WQE any more, or does not
/// exist. srq_o is the SRQ without its next WQE; one that leaves fewer than the limit marks it
/// (InfiniBand specification 10.2.9.4).
module rx_source (
    input  wire logic                clk_i,
    input  wire rnic_pkg::recv_ctx_t ctx_i,
    input  wire rnic_pkg::srq_ctx_t  srq_i,
    output logic [15:0]              index_o,
    output logic [23:0]              pd_o,
    output logic [12:0]              length_o,
    output logic [63:0]              addr_o,
    output logic                     empty_o,
    output logic                     error_o,
    output rnic_pkg::srq_ctx_t       srq_o
);
  logic [15:0] pi, slot;
  logic [63:0] base;
  logic [3:0] log_depth, log_stride;
  always_comb begin : source
    index_o    = ctx_i.srq ? srq_i.head : ctx_i.rq_head;
    pd_o       = ctx_i.srq ? srq_i.pd : ctx_i.pd;
    pi         = ctx_i.srq ? srq_i.pi : ctx_i.rq_pi;
    base       = ctx_i.srq ? srq_i.base : ctx_i.rq_base;
    log_depth  = ctx_i.srq ? srq_i.log_depth : ctx_i.log_depth;
    log_stride = ctx_i.srq ? srq_i.log_stride : ctx_i.log_stride;
  end
  assign slot     = index_o & ~(16'hffff << log_depth);
  assign length_o = 13'd1 << log_stride;

  always_ff @(posedge clk_i) begin
    addr_o  <= base + (64'(slot) << log_stride);
    empty_o <= index_o == pi;
    error_o <= ctx_i.srq && (srq_i.error || !srq_i.in_use);
  end

  always_comb begin : taken
    srq_o      = srq_i;
    srq_o.head = srq_i.head + 16'd1;
    if (srq_i.pi - srq_o.head < srq_i.limit) srq_o.limit_hit = 1'b1;
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, ctx_i};
endmodule

`default_nettype wire
