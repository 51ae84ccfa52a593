`default_nettype none

/// No access is granted that an entry does not allow: for all keys, addresses and lengths, those
/// that wrap included (InfiniBand specification 10.6.2, 10.6.7.2, o10-2.2.1); and none is refused
/// that it does.
module prove_xlate_check (
    input wire logic                 clk_i,
    input wire logic                 rst_ni,
    input wire rnic_pkg::xlate_req_t req_i,
    input wire rnic_pkg::mpt_t       entry_i,
    input wire logic [7:0]           gen_i
);
  localparam int unsigned PageBits = 37;
  localparam int unsigned IndexBits = rnic_pkg::MptIndexBits;
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

  xlate_check #(
      .GenBits (8),
      .PageBits(PageBits)
  ) u_dut (
      .clk_i,
      .in_req_i        (req_i),
      .in_entry_i      (entry_i),
      .in_gen_i        (gen_i),
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

  // The rules, in integers that are wide enough.
  logic window, right, allowed;
  logic [66:0] from, past, first, end_of_entry;
  assign from         = {3'd0, req_q.va};
  assign past         = from + {35'd0, req_q.length};
  assign first        = {3'd0, entry_q.va};
  assign end_of_entry = first + {19'd0, entry_q.length};
  assign window       = entry_q.mpt_type == rnic_pkg::MptTypeWindow1 ||
      entry_q.mpt_type == rnic_pkg::MptTypeWindow2;
  always_comb begin
    right = 1'b0;
    if (req_q.access == rnic_pkg::AccessLocalRead) right = !window;
    if (req_q.access == rnic_pkg::AccessLocalWrite) right = !window && entry_q.local_write;
    if (req_q.access == rnic_pkg::AccessLocalSink)
      right = !window && (entry_q.local_write || entry_q.read_sink);
    if (req_q.access == rnic_pkg::AccessRemoteRead) right = entry_q.remote_read;
    if (req_q.access == rnic_pkg::AccessRemoteWrite) right = entry_q.remote_write;
    if (req_q.access == rnic_pkg::AccessRemoteAtomic) right = entry_q.remote_atomic;
  end
  assign allowed = entry_q.state == rnic_pkg::MptStateValid && entry_q.tag == req_q.key[7:0] &&
      req_q.key[31:8+IndexBits] == '0 && entry_q.pd == req_q.pd && right &&
      !(entry_q.mpt_type == rnic_pkg::MptTypeWindow2 && entry_q.qp != req_q.qp) &&
      from >= first && past <= end_of_entry && past <= {2'd0, 1'b1, 64'd0};

  always_comb begin
    if (rst_ni && begun_q) begin
      Granted: assert (status != rnic_pkg::XlateStatusOk || allowed);
      NotRefused: assert (!allowed || status == rnic_pkg::XlateStatusOk);
    end
  end
endmodule

`default_nettype wire
