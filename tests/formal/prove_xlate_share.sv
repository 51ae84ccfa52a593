`default_nettype none

/// Two clients on one port: each request once and whole, an answer goes to who asked, in order, and
/// no hand-back is lost.
module prove_xlate_share (
    input wire logic                                clk_i,
    input wire logic                                rst_ni,
    input wire logic [1:0]                          req_valid_i,
    input wire logic [2*rnic_pkg::XlateReqBits-1:0] req_data_i,
    input wire logic [1:0]                          rsp_ready_i,
    input wire logic [1:0]                          retire_valid_i,
    input wire logic [1:0]                          retire_epoch_i,
    input wire logic                                port_req_ready_i,
    input wire logic                                port_rsp_valid_i,
    input wire logic                                watch_i
);
  localparam int unsigned Bits = rnic_pkg::XlateReqBits;
  logic [1:0] req_ready, rsp_valid, take, stalled_q, owed_q;
  logic port_valid, rsp_ready, retire_valid, retire_epoch, next, asker;
  rnic_pkg::xlate_req_t port_data;
  logic [2*Bits-1:0] data_q;
  logic [5:0] open, old_q;
  initial assume (!rst_ni);

  xlate_share u_dut (
      .clk_i,
      .rst_ni,
      .req_valid_i,
      .req_ready_o        (req_ready),
      .req_data_i,
      .rsp_valid_o        (rsp_valid),
      .rsp_ready_i,
      .retire_valid_i,
      .retire_epoch_i,
      .port_req_valid_o   (port_valid),
      .port_req_ready_i,
      .port_req_data_o    (port_data),
      .port_rsp_valid_i,
      .port_rsp_ready_o   (rsp_ready),
      .port_retire_valid_o(retire_valid),
      .port_retire_epoch_o(retire_epoch)
  );

  assign take = req_valid_i & req_ready;
  wire logic answered = port_rsp_valid_i && rsp_ready;
  // Clients keep their offers; the port answers two cycles after a request at the earliest (old_q:
  // requests that are as old), and has no more than four; a hand-back of client 1 comes when its
  // last one has left.
  always_comb begin
    assume ((stalled_q & ~req_valid_i) == '0);
    assume (!stalled_q[0] || req_data_i[0+:Bits] == data_q[0+:Bits]);
    assume (!stalled_q[1] || req_data_i[Bits+:Bits] == data_q[Bits+:Bits]);
    assume (!port_rsp_valid_i || old_q != '0);
    assume (!port_req_ready_i || open < 6'd4);
    assume (!(retire_valid_i[1] && owed_q[1]));
  end
  watched_word #(
      .Width    (1),
      .CountBits(6)
  ) u_watched (
      .clk_i,
      .rst_ni,
      .watch_i,
      .push_i  (take != '0),
      .data_i  (take[1]),
      .pop_i   (answered),
      .inside_o(open),
      .next_o  (next),
      .data_o  (asker)
  );
  always_ff @(posedge clk_i) begin
    stalled_q <= req_valid_i & ~req_ready & {2{rst_ni}};
    data_q    <= req_data_i;
    old_q     <= open - 6'(answered);
    // The hand-back of client 1 that has not left, and its epoch.
    if (retire_valid_i[1]) owed_q <= {1'b1, retire_epoch_i[1]};
    else if (!retire_valid_i[0]) owed_q <= '0;
    if (!rst_ni) begin
      old_q  <= '0;
      owed_q <= '0;
    end
  end

  always_comb begin
    if (rst_ni) begin
      Taken: assert ((take != '0) == (port_valid && port_req_ready_i) && take != 2'b11);
      Whole: assert (take == '0 ||
                     port_data == (take[1] ? req_data_i[Bits+:Bits] : req_data_i[0+:Bits]));
      Answer: assert (rsp_valid != 2'b11 && (rsp_valid == '0 || port_rsp_valid_i));
      ToWhoAsked: assert (!(next && answered) || rsp_valid[asker]);
      HandsBack: assert (!retire_valid_i[0] ||
                         (retire_valid && retire_epoch == retire_epoch_i[0]));
      HandsBackLater: assert (retire_valid_i[0] || !owed_q[1] ||
                              (retire_valid && retire_epoch == owed_q[0]));
      NothingElse: assert (retire_valid == (retire_valid_i[0] || owed_q[1]));
    end
  end
endmodule

`default_nettype wire
