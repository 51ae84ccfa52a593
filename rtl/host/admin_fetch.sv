`default_nettype none
`include "assert.svh"

/// Asks for admin commands ahead of the one that is executed: up to Ahead reads are on their way or
/// wait, so that a command finds the next ones there when it ends.
///
/// Works while the device is enabled and 1 to depth commands are posted and not executed; a
/// producer index further ahead than the ring is deep cannot be right and is not followed.
/// consumer_i counts the commands that have been taken from the answers; asked_o is the number of
/// those whose answers have not been. With clear_i, given when asked_o is 0 and nothing is offered
/// (idle_o), the next command is that of index 0.
module admin_fetch #(
    parameter int unsigned Ahead = 8
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic                  enable_i,
    input  wire logic                  stop_i,
    input  wire logic                  clear_i,
    input  wire logic [63:0]           base_i,
    input  wire logic [3:0]            log_depth_i,
    input  wire logic [15:0]           producer_index_i,
    input  wire logic [15:0]           consumer_i,
    output logic [15:0]                asked_o,
    output logic                       idle_o,
    output logic                       rd_req_valid_o,
    input  wire logic                  rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t      rd_req_data_o
);
  logic [15:0] next_q, posted, index;
  logic [63:0] address_q;
  logic valid_q, ask;

  assign posted  = producer_index_i - consumer_i;
  assign asked_o = next_q - consumer_i;
  assign index   = next_q & ~(16'hFFFF << log_depth_i);
  assign ask     = !valid_q && enable_i && !stop_i && posted != '0
      && posted <= (16'd1 << log_depth_i) && asked_o < posted && asked_o < 16'(Ahead);

  // The registers may be written at any time: what is offered comes from a copy.
  always_ff @(posedge clk_i) begin
    if (ask) address_q <= {base_i[63:12], 12'd0} + {41'd0, index, 7'd0};
    valid_q <= ask || (valid_q && !rd_req_ready_i);
    if (clear_i) next_q <= '0;
    else if (valid_q && rd_req_ready_i) next_q <= next_q + 1'b1;
    if (!rst_ni) begin
      valid_q <= 1'b0;
      next_q  <= '0;
    end
  end

  assign idle_o               = !valid_q;
  assign rd_req_valid_o       = valid_q;
  assign rd_req_data_o.addr   = address_q;
  assign rd_req_data_o.length = 13'd128;

  logic unused_bits;
  assign unused_bits = &{1'b0, base_i[11:0]};

  `ASSERT(AheadNoFurther, asked_o <= 16'(Ahead))
  `ASSERT(ClearAtRest, !clear_i || (idle_o && asked_o == '0))
  `ASSERT_HOLD(RequestHold, rd_req_valid_o, rd_req_ready_i, rd_req_data_o)
endmodule

`default_nettype wire
