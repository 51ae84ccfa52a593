`default_nettype none

/// MSI-X table (PCI Express base specification 7.7.2): addresses and data in RAM, mask bits in
/// flip-flops (set at reset).
///
/// Register {vector, half}: half 0 is the message address, half 1 {vector control, data}. One read
/// port: the host's reads (rd_en) go first, a fetch of a whole entry (fetch_valid, fetch_ready)
/// takes the cycles that are left. Data of both come one cycle later.
module msix_table (
    input  wire logic                             clk_i,
    input  wire logic                             rst_ni,
    input  wire logic                             wr_en_i,
    input  wire logic                             rd_en_i,
    input  wire logic [5:0]                       index_i,
    input  wire logic [63:0]                      wr_data_i,
    input  wire logic [7:0]                       be_i,
    output logic [63:0]                           rd_data_o,
    input  wire logic                             fetch_valid_i,
    output logic                                  fetch_ready_o,
    input  wire logic [4:0]                       fetch_vector_i,
    output logic [63:0]                           fetch_address_o,
    output logic [31:0]                           fetch_data_o,
    output logic [rnic_pkg::MsixVectors-1:0]      mask_o
);
  localparam int unsigned N = rnic_pkg::MsixVectors;

  logic [63:0] address_mem[N];
  logic [31:0] data_mem[N];
  logic [63:0] address_q;
  logic [31:0] data_q;
  logic [N-1:0] mask_q;
  logic [4:0] row, host_row;
  logic half_q, masked_q;

  assign host_row      = index_i[5:1];
  assign row           = rd_en_i ? host_row : fetch_vector_i;
  assign fetch_ready_o = !rd_en_i;

  always_ff @(posedge clk_i) begin
    for (int unsigned b = 0; b < 8; b++) begin
      if (wr_en_i && !index_i[0] && be_i[b]) address_mem[host_row][8*b+:8] <= wr_data_i[8*b+:8];
    end
    for (int unsigned b = 0; b < 4; b++) begin
      if (wr_en_i && index_i[0] && be_i[b]) data_mem[host_row][8*b+:8] <= wr_data_i[8*b+:8];
    end
    if (rd_en_i || fetch_valid_i) begin
      address_q <= address_mem[row];
      data_q    <= data_mem[row];
    end
    if (rd_en_i) begin
      half_q   <= index_i[0];
      masked_q <= mask_q[host_row];
    end
  end

  always_ff @(posedge clk_i) begin
    if (wr_en_i && index_i[0] && be_i[4]) mask_q[host_row] <= wr_data_i[32];
    if (!rst_ni) mask_q <= '1;
  end

  assign rd_data_o       = half_q ? {31'd0, masked_q, data_q} : address_q;
  assign fetch_address_o = address_q;
  assign fetch_data_o    = data_q;
  assign mask_o          = mask_q;
endmodule

`default_nettype wire
