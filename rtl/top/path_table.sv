`default_nettype none

/// Paths of all QPs: one write port, one registered read port for the send path and one for the
/// receive path.
module path_table (
    input  wire logic              clk_i,
    input  wire logic              wr_valid_i,
    input  wire logic [7:0]        wr_qp_i,
    input  wire rnic_pkg::path_t   wr_data_i,
    input  wire logic              tx_rd_en_i,
    input  wire logic [7:0]        tx_rd_qp_i,
    output rnic_pkg::path_t        tx_rd_data_o,
    input  wire logic              rx_rd_en_i,
    input  wire logic [7:0]        rx_rd_qp_i,
    output rnic_pkg::path_t        rx_rd_data_o
);
  ram_1r1w #(
      .Width(rnic_pkg::PathBits),
      .Depth(256)
  ) u_tx_copy (
      .clk_i,
      .wr_en_i  (wr_valid_i),
      .wr_addr_i(wr_qp_i),
      .wr_data_i(wr_data_i),
      .rd_en_i  (tx_rd_en_i),
      .rd_addr_i(tx_rd_qp_i),
      .rd_data_o(tx_rd_data_o)
  );

  ram_1r1w #(
      .Width(rnic_pkg::PathBits),
      .Depth(256)
  ) u_rx_copy (
      .clk_i,
      .wr_en_i  (wr_valid_i),
      .wr_addr_i(wr_qp_i),
      .wr_data_i(wr_data_i),
      .rd_en_i  (rx_rd_en_i),
      .rd_addr_i(rx_rd_qp_i),
      .rd_data_o(rx_rd_data_o)
  );
endmodule

`default_nettype wire
