`default_nettype none
`include "assert.svh"

/// Shares the administrative port of the protection table and the drain between two clients (0:
/// memory operations, 1: admin queue), one access and one drain at a time. Clients hold their
/// requests until ready; a read is answered to its client, in the cycle after it was taken.
module mpt_access (
    input  wire logic                                 clk_i,
    input  wire logic                                 rst_ni,
    input  wire logic [1:0]                           req_valid_i,
    output logic [1:0]                                req_ready_o,
    input  wire logic [1:0]                           req_write_i,
    input  wire logic [1:0]                           req_keep_i,
    input  wire logic [2*rnic_pkg::MptIndexBits-1:0]  req_index_i,
    input  wire logic [2*rnic_pkg::MptBits-1:0]       req_data_i,
    output logic [1:0]                                rsp_valid_o,
    output logic                                      mpt_req_valid_o,
    input  wire logic                                 mpt_req_ready_i,
    output logic                                      mpt_req_write_o,
    output logic                                      mpt_req_keep_o,
    output logic [rnic_pkg::MptIndexBits-1:0]         mpt_req_index_o,
    output rnic_pkg::mpt_t                            mpt_req_data_o,
    input  wire logic                                 mpt_rsp_valid_i,
    input  wire logic [1:0]                           drain_valid_i,
    output logic [1:0]                                drain_ready_o,
    output logic                                      drain_valid_o,
    input  wire logic                                 drain_ready_i
);
  localparam int unsigned IndexBits = rnic_pkg::MptIndexBits;
  localparam int unsigned Bits = rnic_pkg::MptBits;

  logic [1:0] access_grant, drain_grant, access_q, drain_q, reader_q;

  rr_arbiter #(
      .N(2)
  ) u_access (
      .clk_i,
      .rst_ni,
      .request_i(req_valid_i),
      .advance_i(access_q == '0),
      .grant_o  (access_grant)
  );
  rr_arbiter #(
      .N(2)
  ) u_drain (
      .clk_i,
      .rst_ni,
      .request_i(drain_valid_i),
      .advance_i(drain_q == '0),
      .grant_o  (drain_grant)
  );

  always_ff @(posedge clk_i) begin
    if (access_q == '0) access_q <= access_grant;
    else if (mpt_req_ready_i) access_q <= '0;
    if (drain_q == '0) drain_q <= drain_grant;
    else if (drain_ready_i) drain_q <= '0;
    if (access_q != '0) reader_q <= access_q;
    if (!rst_ni) begin
      access_q <= '0;
      drain_q  <= '0;
    end
  end

  assign mpt_req_valid_o = access_q != '0;
  assign req_ready_o     = mpt_req_ready_i ? access_q : '0;
  assign mpt_req_write_o = access_q[1] ? req_write_i[1] : req_write_i[0];
  assign mpt_req_keep_o  = access_q[1] ? req_keep_i[1] : req_keep_i[0];
  assign mpt_req_index_o = req_index_i[access_q[1]*IndexBits+:IndexBits];
  assign mpt_req_data_o  = access_q[1] ? req_data_i[Bits+:Bits] : req_data_i[0+:Bits];
  assign rsp_valid_o     = mpt_rsp_valid_i ? reader_q : '0;
  assign drain_valid_o   = drain_q != '0;
  assign drain_ready_o   = drain_ready_i ? drain_q : '0;

  `ASSERT(AccessHeld, (access_q & ~req_valid_i) == '0)
  `ASSERT(DrainHeld, (drain_q & ~drain_valid_i) == '0)
endmodule

`default_nettype wire
