`default_nettype none

/// WQE buffer: 512 bytes a queue pair, in 8 lines of 64 bytes. WQE i lies at byte (i * stride) mod
/// 512, so that the buffer is a ring: WQEs ahead are fetched into lines whose WQEs have been sent.
///
/// A window write always gets through; a fetch waits for it. Read data is there one cycle after
/// rd_en_i and stays.
module wqe_buffer (
    input  wire logic         clk_i,
    input  wire logic         window_valid_i,
    input  wire logic [10:0]  window_addr_i,
    input  wire logic [511:0] window_data_i,
    input  wire logic         fetch_valid_i,
    output logic              fetch_ready_o,
    input  wire logic [10:0]  fetch_addr_i,
    input  wire logic [511:0] fetch_data_i,
    input  wire logic         rd_en_i,
    input  wire logic [10:0]  rd_addr_i,
    output logic [511:0]      rd_data_o
);
  assign fetch_ready_o = !window_valid_i;

  ram_1r1w #(
      .Width(512),
      .Depth(2048)
  ) u_ram (
      .clk_i,
      .wr_en_i  (window_valid_i || fetch_valid_i),
      .wr_addr_i(window_valid_i ? window_addr_i : fetch_addr_i),
      .wr_data_i(window_valid_i ? window_data_i : fetch_data_i),
      .rd_en_i,
      .rd_addr_i,
      .rd_data_o
  );
endmodule

`default_nettype wire
