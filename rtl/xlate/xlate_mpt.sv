`default_nettype none
`include "assert.svh"

/// Memory protection table: one look-up a cycle, and the administrative port.
///
/// Each entry has a generation, which every write to it advances, but for one with mpt_req_keep_i,
/// which leaves range and page list as they are. The generation is part of the tag of what is kept
/// elsewhere of the entry's page list, so a write drops all of that at once. When a generation
/// comes round, `flush_o` drops everything; it lasts until look-ups that saw the old entry are
/// through the pipeline.
/// The administrative port has the read port for one cycle of each access (`busy_o`: no look-up
/// then). A write is accepted in the cycle in which it is done: a look-up of a later cycle sees it.
/// After reset every entry reads as zero.
module xlate_mpt #(
    parameter int unsigned GenBits = 8
) (
    input  wire logic                                 clk_i,
    input  wire logic                                 rst_ni,
    output logic                                      ready_o,
    input  wire logic                                 lookup_i,
    input  wire logic [rnic_pkg::MptIndexBits-1:0]    lookup_index_i,
    output logic                                      busy_o,
    output rnic_pkg::mpt_t                            entry_o,         // A cycle later
    output logic [GenBits-1:0]                        gen_o,
    output logic                                      flush_o,
    input  wire logic                                 mpt_req_valid_i,
    output logic                                      mpt_req_ready_o,
    input  wire logic                                 mpt_req_write_i,
    input  wire logic                                 mpt_req_keep_i,
    input  wire logic [rnic_pkg::MptIndexBits-1:0]    mpt_req_index_i,
    input  wire rnic_pkg::mpt_t                       mpt_req_data_i,
    output logic                                      mpt_rsp_valid_o,
    output rnic_pkg::mpt_t                            mpt_rsp_data_o
);
  localparam int unsigned IndexBits = rnic_pkg::MptIndexBits;
  localparam int unsigned FlushCycles = 6;
  localparam int unsigned Width = GenBits + rnic_pkg::MptBits;

  // Idle: look-ups; read the entry of an access. Access: write it, or hand it out.
  typedef enum logic {
    Idle,
    Access
  } state_e;
  state_e state_q, state_d;

  logic [Width-1:0] rd_word;
  logic [GenBits-1:0] next_gen;
  logic wr;
  logic [FlushCycles-1:0] flush_q;

  assign {gen_o, entry_o} = rd_word;
  assign next_gen         = gen_o + {{GenBits - 1{1'b0}}, !mpt_req_keep_i};

  always_comb begin
    state_d         = state_q;
    busy_o          = 1'b1;
    mpt_req_ready_o = 1'b0;
    wr              = 1'b0;
    unique case (state_q)
      Idle: begin
        busy_o = mpt_req_valid_i || !ready_o;
        if (mpt_req_valid_i && ready_o) state_d = Access;
      end
      Access: begin
        busy_o          = 1'b0;
        mpt_req_ready_o = 1'b1;
        wr              = mpt_req_write_i;
        state_d         = Idle;
      end
      default: state_d = Idle;
    endcase
  end
  assign flush_o = flush_q != '0;

  always_ff @(posedge clk_i) begin
    state_q         <= state_d;
    mpt_rsp_valid_o <= state_q == Access && !mpt_req_write_i;
    mpt_rsp_data_o  <= entry_o;
    flush_q         <= {flush_q[FlushCycles-2:0],
                        wr && !mpt_req_keep_i && next_gen == '0};
    if (!rst_ni) begin
      state_q         <= Idle;
      flush_q         <= '0;
      mpt_rsp_valid_o <= 1'b0;
    end
  end

  ram_zeroed #(
      .Width(Width),
      .Depth(1 << IndexBits)
  ) u_table (
      .clk_i,
      .rst_ni,
      .ready_o,
      .wr_en_i  (wr),
      .wr_addr_i(mpt_req_index_i),
      .wr_data_i({next_gen, mpt_req_data_i}),
      .rd_en_i  (1'b1),
      .rd_addr_i(busy_o ? mpt_req_index_i : lookup_index_i),
      .rd_data_o(rd_word)
  );

  `ASSERT(LookupWhenFree, !lookup_i || !busy_o)
  `ASSERT_HOLD(MptRequestHold, mpt_req_valid_i, mpt_req_ready_o,
               {mpt_req_write_i, mpt_req_keep_i, mpt_req_index_i})
  `ASSERT_HOLD(MptWriteHold, mpt_req_valid_i && mpt_req_write_i, mpt_req_ready_o, mpt_req_data_i)
endmodule

`default_nettype wire
