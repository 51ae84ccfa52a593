`default_nettype none

/// Where an access lies in the pages of its region: in page (va - start of the first page) / size,
/// at va mod size, and it goes on to the end of the page at most. Pages of 4 KiB to 1 GiB.
module prove_xlate_pages (
    input wire logic                 clk_i,
    input wire logic                 rst_ni,
    input wire rnic_pkg::xlate_req_t req_i,
    input wire rnic_pkg::mpt_t       entry_i
);
  localparam int unsigned PageBits = 37;
  localparam int unsigned IndexBits = rnic_pkg::MptIndexBits;
  (* anyconst *) logic [4:0] log_page;
  rnic_pkg::xlate_req_t req_q;
  rnic_pkg::mpt_t entry_q;
  logic begun_q;
  logic [3:0] status;
  logic [PageBits-3+8+IndexBits-1:0] key;
  logic [2:0] word;
  logic [30:0] offset;
  logic [31:0] contiguous;
  logic more;
  logic [58:0] list;
  initial assume (!rst_ni);
  always_comb assume (entry_i.log_page == log_page && log_page >= 5'd12 && log_page <= 5'd30);

  xlate_check #(
      .GenBits (8),
      .PageBits(PageBits)
  ) u_dut (
      .clk_i,
      .in_req_i        (req_i),
      .in_entry_i      (entry_i),
      .in_gen_i        (8'd0),
      .out_status_o    (status),
      .out_key_o       (key),
      .out_word_o      (word),
      .out_offset_o    (offset),
      .out_contiguous_o(contiguous),
      .out_more_o      (more),
      .out_list_o      (list)
  );

  always_ff @(posedge clk_i) begin
    req_q   <= req_i;
    entry_q <= entry_i;
    begun_q <= rst_ni;
  end

  wire logic [30:0] mask = ~(31'h7FFF_FFFF << log_page);
  wire logic [31:0] size = 32'd1 << log_page;
  wire logic [31:0] left = size - {1'b0, req_q.va[30:0] & mask};
  always_comb begin
    if (rst_ni && begun_q && status == rnic_pkg::XlateStatusOk) begin
      Offset: assert (offset == (req_q.va[30:0] & mask));
      InPage: assert (contiguous <= left && contiguous <= req_q.length);
      Most: assert (contiguous == left || contiguous == req_q.length);
    end
  end
endmodule

`default_nettype wire
