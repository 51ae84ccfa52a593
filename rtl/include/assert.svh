// Assertions, once, with a body for each tool:
//   simulation (the default)  immediate assertion in a clocked block, reports and stops
//   FORMAL                    what scripts/prove.py proves, or takes for granted of the inputs
//   SYNTHESIS, RNIC_NO_ASSERTIONS  nothing
// `ASSERT(Name, Expression)       holds at every clock edge outside reset
// `ASSERT_HOLD(Name, Valid, Ready, Payload)  the stream rule: valid and payload stay until accepted
// Both use clk_i and rst_ni of the module. So do cover points (docs/coverage.md), which only the
// simulator of the preset coverage has; an expression says with the genvars a and b which ones.
// `COVER(Name, Expression)           there is a clock edge at which it holds
// `COVER_EACH(Name, N, Expression)   one for each a below N
// `COVER_PAIRS(Name, N, Expression)  one for each a and b below N, a < b
// `COVER_ORDERED(Name, N, Expression)  one for each a and b below N that are not the same
`ifndef ASSERT_SVH
`define ASSERT_SVH

`ifdef SYNTHESIS
`define RNIC_NO_ASSERTIONS
`endif

`ifdef RNIC_NO_ASSERTIONS
`define ASSERT(Name, Expression)
`define ASSERT_HOLD(Name, Valid, Ready, Payload)
`elsif FORMAL
`define ASSERT(Name, Expression) \
  always @(posedge clk_i) if (rst_ni) Name: assert (Expression);
`define ASSERT_HOLD(Name, Valid, Ready, Payload) \
  if (1) begin : gen_``Name \
    logic                      stalled_q; \
    logic [$bits(Payload)-1:0] payload_q; \
    always @(posedge clk_i) begin \
      stalled_q <= rst_ni && (Valid) && !(Ready); \
      payload_q <= (Payload); \
      if (rst_ni && stalled_q) Name: assert ((Valid) && (Payload) == payload_q); \
    end \
  end
`else
`define ASSERT(Name, Expression) \
  always @(posedge clk_i) if (rst_ni && !(Expression)) $error("%m: %s", `"Name`");
`define ASSERT_HOLD(Name, Valid, Ready, Payload) \
  if (1) begin : gen_``Name \
    logic                      stalled_q; \
    logic [$bits(Payload)-1:0] payload_q; \
    always_ff @(posedge clk_i) begin \
      stalled_q <= rst_ni && (Valid) && !(Ready); \
      if (stalled_q) begin \
        if (rst_ni && !((Valid) && (Payload) == payload_q)) \
          $error("%m: %s: valid or payload changed before it was accepted", `"Name`"); \
      end else if ((Valid) && !(Ready)) payload_q <= (Payload); \
    end \
  end
`endif

`ifdef RNIC_COVERAGE
`define COVER(Name, Expression) \
  Name: cover property (@(posedge clk_i) rst_ni && (Expression));
`define COVER_EACH(Name, N, Expression) \
  for (genvar a = 0; a < N; a++) begin : gen_``Name `COVER(Name, Expression) end
`define COVER_PAIRS(Name, N, Expression) \
  for (genvar b = 0; b < N; b++) begin : gen_b_``Name \
    for (genvar a = 0; a < b; a++) begin : gen_``Name `COVER(Name, Expression) end \
  end
`define COVER_ORDERED(Name, N, Expression) \
  for (genvar b = 0; b < N; b++) begin : gen_b_``Name \
    for (genvar a = 0; a < N; a++) begin : gen_``Name if (a != b) begin : gen_point \
        `COVER(Name, Expression) \
    end end \
  end
`else
`define COVER(Name, Expression)
`define COVER_EACH(Name, N, Expression)
`define COVER_PAIRS(Name, N, Expression)
`define COVER_ORDERED(Name, N, Expression)
`endif

`endif
