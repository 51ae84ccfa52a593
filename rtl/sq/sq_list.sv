`default_nettype none
`include "assert.svh"

/// Lines of a WQE out of the WQE buffer, for the memory operation that takes its page list from
/// them (mem_list).
///
/// While run_i, the lines_i lines from addr_i on are offered, one after the other; when it falls,
/// what is left of them is forgotten, offered or not. The buffer is the engine's: it is read when
/// rd_ready_i says that the engine does not, and its data, a cycle later, is kept here. Lines of a
/// queue pair wrap within its eight.
module sq_list (
    input  wire logic                 clk_i,
    input  wire logic                 rst_ni,
    input  wire logic                 run_i,
    input  wire logic [10:0]          addr_i,
    input  wire logic [3:0]           lines_i,
    output logic                      rd_valid_o,
    input  wire logic                 rd_ready_i,
    output logic [10:0]               rd_addr_o,
    input  wire logic [511:0]         rd_data_i,
    output logic                      mem_list_valid_o,
    input  wire logic                 mem_list_ready_i,
    output rnic_pkg::mem_list_t       mem_list_data_o
);
  // Read: the next line, if there is one. Take: it is here. Offer.
  typedef enum logic [1:0] {
    StRead,
    StTake,
    StOffer
  } state_e;
  state_e state_q, state_d;
  logic [3:0] line_q;
  logic [511:0] data_q;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StRead:  if (rd_valid_o && rd_ready_i) state_d = StTake;
      StTake:  state_d = StOffer;
      StOffer: if (mem_list_ready_i) state_d = StRead;
      default: state_d = StRead;
    endcase
    if (!run_i) state_d = StRead;
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (state_q == StTake) data_q <= rd_data_i;
    if (!run_i) line_q <= '0;
    else if (state_q == StOffer && mem_list_ready_i) line_q <= line_q + 4'd1;
    if (!rst_ni) begin
      state_q <= StRead;
      line_q  <= '0;
    end
  end

  assign rd_valid_o           = run_i && state_q == StRead && line_q < lines_i;
  assign rd_addr_o            = {addr_i[10:3], addr_i[2:0] + line_q[2:0]};
  assign mem_list_valid_o     = run_i && state_q == StOffer;
  assign mem_list_data_o.data = data_q;

  `ASSERT(WithinTheWqe, !mem_list_valid_o || line_q < lines_i)
endmodule

`default_nettype wire
