`default_nettype none

/// Two clients at the protection table: what arrives there is a request of one of them, whole, one
/// at a time, each once; and an answer goes to who asked.
module prove_mpt_access (
    input wire logic                                clk_i,
    input wire logic                                rst_ni,
    input wire logic [1:0]                          req_valid_i,
    input wire logic [1:0]                          req_write_i,
    input wire logic [1:0]                          req_keep_i,
    input wire logic [2*rnic_pkg::MptIndexBits-1:0] req_index_i,
    input wire logic [2*rnic_pkg::MptBits-1:0]      req_data_i,
    input wire logic                                mpt_req_ready_i,
    input wire logic                                mpt_rsp_valid_i,
    input wire logic [1:0]                          drain_valid_i,
    input wire logic                                drain_ready_i
);
  localparam int unsigned IndexBits = rnic_pkg::MptIndexBits;
  localparam int unsigned Bits = rnic_pkg::MptBits;
  logic [1:0] req_ready, rsp_valid, drain_ready, stalled_q, drain_stalled_q;
  logic [2*IndexBits-1:0] index_q;
  logic mpt_valid, mpt_write, mpt_keep, drain_valid, reading_q, reader_q;
  logic [IndexBits-1:0] mpt_index;
  rnic_pkg::mpt_t mpt_data;
  initial assume (!rst_ni);

  mpt_access u_dut (
      .clk_i,
      .rst_ni,
      .req_valid_i,
      .req_ready_o    (req_ready),
      .req_write_i,
      .req_keep_i,
      .req_index_i,
      .req_data_i,
      .rsp_valid_o    (rsp_valid),
      .mpt_req_valid_o(mpt_valid),
      .mpt_req_ready_i,
      .mpt_req_write_o(mpt_write),
      .mpt_req_keep_o (mpt_keep),
      .mpt_req_index_o(mpt_index),
      .mpt_req_data_o (mpt_data),
      .mpt_rsp_valid_i,
      .drain_valid_i,
      .drain_ready_o  (drain_ready),
      .drain_valid_o  (drain_valid),
      .drain_ready_i
  );

  // Clients hold their requests. The table answers a read in the cycle after it has taken it.
  always_comb begin
    assume ((stalled_q & ~req_valid_i) == '0);
    assume ((drain_stalled_q & ~drain_valid_i) == '0);
    assume (!mpt_req_ready_i || mpt_valid);
    assume (!drain_ready_i || drain_valid);
    assume (mpt_rsp_valid_i == reading_q);
  end
  wire logic taken = mpt_valid && mpt_req_ready_i;
  always_ff @(posedge clk_i) begin
    stalled_q       <= req_valid_i & ~req_ready & {2{rst_ni}};
    drain_stalled_q <= drain_valid_i & ~drain_ready & {2{rst_ni}};
    reading_q       <= taken && !mpt_write;
    if (taken) reader_q <= req_ready[1];
    if (!rst_ni) reading_q <= 1'b0;
  end

  always_comb begin
    if (rst_ni) begin
      Taken: assert (taken == (req_ready != '0) && req_ready != 2'b11);
      OfWhoAsks: assert ((req_ready & ~req_valid_i) == '0);
      Index: assert (!taken || mpt_index == (req_ready[1] ? req_index_i[IndexBits+:IndexBits] :
                                                            req_index_i[0+:IndexBits]));
      Data: assert (!taken ||
                    mpt_data == (req_ready[1] ? req_data_i[Bits+:Bits] : req_data_i[0+:Bits]));
      Kind: assert (!taken || {mpt_write, mpt_keep} ==
                    (req_ready[1] ? {req_write_i[1], req_keep_i[1]} :
                                    {req_write_i[0], req_keep_i[0]}));
      Answer: assert (rsp_valid == {mpt_rsp_valid_i && reader_q, mpt_rsp_valid_i && !reader_q});
      Drained: assert ((drain_valid && drain_ready_i) == (drain_ready != '0) &&
                       drain_ready != 2'b11 && (drain_ready & ~drain_valid_i) == '0);
    end
  end
endmodule

`default_nettype wire
