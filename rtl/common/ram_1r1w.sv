`default_nettype none

/// RAM with one write port and one registered read port. Reading an address in the cycle in which
/// it is written gives the old word. Data appears one cycle after rd_en_i and stays until the next
/// read.
module ram_1r1w #(
    parameter int unsigned Width = 8,
    parameter int unsigned Depth = 16,
    localparam int unsigned AddrBits = $clog2(Depth)
) (
    input  wire logic                clk_i,
    input  wire logic                wr_en_i,
    input  wire logic [AddrBits-1:0] wr_addr_i,
    input  wire logic [Width-1:0]    wr_data_i,
    input  wire logic                rd_en_i,
    input  wire logic [AddrBits-1:0] rd_addr_i,
    output logic [Width-1:0]         rd_data_o
);
  logic [Width-1:0] mem[Depth];
  logic [Width-1:0] rd_data_q;

  always_ff @(posedge clk_i) begin
    if (wr_en_i) mem[wr_addr_i] <= wr_data_i;
    if (rd_en_i) rd_data_q <= mem[rd_addr_i];
  end
  assign rd_data_o = rd_data_q;
endmodule

`default_nettype wire
