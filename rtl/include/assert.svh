// Assertions, once, with a body for each tool:
//   simulation (the default)  immediate assertion in a clocked block, reports and stops
//   FORMAL                    what scripts/prove.py proves, or takes for granted of the inputs
//   SYNTHESIS, RNIC_NO_ASSERTIONS  nothing
// `ASSERT(Name, Expression)       holds at every clock edge outside reset
// `ASSERT_HOLD(Name, Valid, Ready, Payload)  the stream rule: valid and payload stay until accepted
// Both use clk_i and rst_ni of the module.
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

`endif
