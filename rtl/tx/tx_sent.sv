`default_nettype none
`include "assert.svh"

/// How far the requests of each queue pair have been sent: a peer can acknowledge nothing beyond it
/// (InfiniBand specification 9.7.6). A packet has a PSN long before it leaves: its payload is still
/// to be read, and may turn out not to be there.
///
/// sent: a pulse, a request of sent_qp_i is whole and will leave, sent_psn_i is the last PSN that
/// it takes; one a cycle. Packets that are sent again are older than others, so that the newest is
/// kept; they are at most 2^23 apart (9.7.2). clear_valid_i: clear_qp_i begins a new life, nothing
/// of it has been sent; nothing of the old life comes in that cycle or the one before, or behind
/// it. rd: the data comes a cycle later and stays until the next read; a pulse shows in reads that
/// are two cycles younger.
module tx_sent (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic             sent_valid_i,
    input  wire logic [7:0]       sent_qp_i,
    input  wire logic [23:0]      sent_psn_i,
    input  wire logic             clear_valid_i,
    input  wire logic [7:0]       clear_qp_i,
    input  wire logic             rd_en_i,
    input  wire logic [7:0]       rd_qp_i,
    output rnic_pkg::reach_t      rd_data_o
);
  // ---- A pulse reads what is known of its QP; a cycle later the newer one is written ----
  logic [255:0] known_q;
  logic valid_q, was_known_q, same_q;
  logic [7:0] qp_q;
  logic [23:0] next_q, stored, written_q, old, ahead, newest;
  logic is_newer;

  ram_1r1w #(
      .Width(24),
      .Depth(256)
  ) u_stored (
      .clk_i,
      .wr_en_i  (valid_q),
      .wr_addr_i(qp_q),
      .wr_data_i(newest),
      .rd_en_i  (sent_valid_i),
      .rd_addr_i(sent_qp_i),
      .rd_data_o(stored)
  );

  // What was written in the cycle of the read is not in what was read.
  assign old      = same_q ? written_q : stored;
  assign ahead    = next_q - old;
  assign is_newer = ahead <= 24'h800000;
  assign newest   = (is_newer || !was_known_q) ? next_q : old;

  always_ff @(posedge clk_i) begin
    valid_q     <= sent_valid_i;
    qp_q        <= sent_qp_i;
    next_q      <= sent_psn_i + 24'd1;
    same_q      <= valid_q && qp_q == sent_qp_i;
    was_known_q <= known_q[sent_qp_i] || (valid_q && qp_q == sent_qp_i);
    written_q   <= newest;
    if (valid_q) known_q[qp_q] <= 1'b1;
    if (clear_valid_i) known_q[clear_qp_i] <= 1'b0;
    if (!rst_ni) begin
      valid_q <= 1'b0;
      known_q <= '0;
    end
  end

  // ---- The copy for reads ----
  logic rd_known_q;
  logic [23:0] rd_next;
  ram_1r1w #(
      .Width(24),
      .Depth(256)
  ) u_copy (
      .clk_i,
      .wr_en_i  (valid_q),
      .wr_addr_i(qp_q),
      .wr_data_i(newest),
      .rd_en_i,
      .rd_addr_i(rd_qp_i),
      .rd_data_o(rd_next)
  );
  always_ff @(posedge clk_i) begin
    if (rd_en_i) rd_known_q <= known_q[rd_qp_i];
  end
  assign rd_data_o.known    = rd_known_q;
  assign rd_data_o.next_psn = rd_next;

  `ASSERT(OldLifeIsOver, !(clear_valid_i && ((sent_valid_i && sent_qp_i == clear_qp_i) ||
                                             (valid_q && qp_q == clear_qp_i))))
endmodule

`default_nettype wire
