`default_nettype none

/// Decides, when a turn ends, whether WQEs are to be fetched: when at most half of the buffer is in
/// use or promised to a fetch that is under way, and more are posted. Fetches all that fit, up to
/// the end of the ring in host memory. Nothing is fetched from the WQE on that failed here.
///
/// Of a RawPacket QP two fetches may be under way, one for each half of the buffer: it has a WQE
/// for each frame, and one queue is to fill the wire. Of others one: their messages are many and
/// small, or long, and fewer fetches that bring more cost the engine less.
module sq_fetch_plan (
    input  wire logic [7:0]             qp_i,
    input  wire rnic_pkg::send_ctx_t    ctx_i,
    output logic                        fetch_o,
    output rnic_pkg::wqe_fetch_req_t    req_o
);
  logic [3:0] capacity, held, room;
  logic is_raw, may_fetch;
  logic [15:0] index, posted, slot, depth, to_end, to_fault;

  assign capacity = 4'd8 >> (ctx_i.log_stride - 4'd6);
  assign held     = ctx_i.buf_count + ctx_i.ahead;
  assign room     = capacity - held;
  assign index    = ctx_i.exec_idx + 16'(held);
  assign posted   = ctx_i.pi - index;
  assign depth    = 16'd1 << ctx_i.log_depth;
  assign slot     = index & (depth - 16'd1);
  assign to_end   = depth - slot;

  assign to_fault = index - ctx_i.fault_idx;

  assign is_raw    = ctx_i.qp_type == rnic_pkg::QpTypeRawPacket;
  assign may_fetch = ctx_i.fetching == '0 || (is_raw && !ctx_i.fetching[1]);
  assign fetch_o = ctx_i.in_use && (ctx_i.state == rnic_pkg::QpStateRts ||
                   ctx_i.state == rnic_pkg::QpStateSqd) && (!ctx_i.fault || to_fault[15]) &&
                   may_fetch && posted != '0 && held <= {1'b0, capacity[3:1]};
  always_comb begin
    req_o.qp         = qp_i;
    req_o.index      = index;
    req_o.log_stride = ctx_i.log_stride;
    req_o.gen        = ctx_i.fetch_gen;
    req_o.base       = ctx_i.sq_base;
    req_o.offset     = 24'(slot) << ctx_i.log_stride;
    req_o.count      = room;
    if (posted < 16'(room)) req_o.count = posted[3:0];
    if (to_end < 16'(req_o.count)) req_o.count = to_end[3:0];
  end

  logic unused_bits;
  assign unused_bits = ^{ctx_i, to_fault[14:0]};
endmodule

`default_nettype wire
