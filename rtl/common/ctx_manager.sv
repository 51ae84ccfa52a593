`default_nettype none
`include "assert.svh"

/// Keeps Entries contexts of Width bits and lends each to one client at a time.
///
/// A client offers acq_valid with an index. acq_ready accepts it once no other client holds that
/// context; a client that waits for a held context does not hold up the others. Two cycles after
/// the acceptance ctx_valid pulses for that client, with the context on ctx_data (shared by all
/// clients, valid in that cycle only). The client then owns the context until its rel_valid /
/// rel_ready handshake, with which it writes rel_data back (rel_write) or leaves it as it was.
/// A client holds at most one context. contended_o: another client asked, a cycle ago, for the
/// context that this one holds; who keeps a context for its next use gives it back then. Contexts
/// are zero after reset: `ready_o` rises when they have been cleared, nothing is accepted before.
///
/// Client i: bit i of the valid/ready vectors, bits i*AddrBits +: AddrBits and i*Width +: Width of
/// the buses.
module ctx_manager #(
    parameter int unsigned Width   = 32,
    parameter int unsigned Entries = 16,
    parameter int unsigned Clients = 2,
    localparam int unsigned AddrBits = $clog2(Entries)
) (
    input  wire logic                        clk_i,
    input  wire logic                        rst_ni,
    output logic                             ready_o,
    input  wire logic [Clients-1:0]          acq_valid_i,
    output logic [Clients-1:0]               acq_ready_o,
    input  wire logic [Clients*AddrBits-1:0] acq_index_i,
    output logic [Clients-1:0]               ctx_valid_o,
    output logic [Width-1:0]                 ctx_data_o,
    output logic [Clients-1:0]               contended_o,
    input  wire logic [Clients-1:0]          rel_valid_i,
    output logic [Clients-1:0]               rel_ready_o,
    input  wire logic [Clients-1:0]          rel_write_i,
    input  wire logic [Clients*Width-1:0]    rel_data_i
);
  logic [Clients-1:0] held_q, wanted, eligible, acq_grant, rel_grant, rd_q, rd_qq;
  logic [Clients*AddrBits-1:0] held_index_q;
  logic [AddrBits-1:0] acq_index, rel_index;
  logic [Width-1:0] rel_data;
  logic rel_write, clearing_q;
  logic [AddrBits-1:0] clear_q;

  assign ready_o = !clearing_q;

  // A context is free when no client holds it. The release of this cycle frees it from the next
  // cycle on.
  always_comb begin
    wanted   = '0;
    eligible = '0;
    for (int unsigned i = 0; i < Clients; i++) begin
      if (acq_valid_i[i]) begin
        eligible[i] = !held_q[i] && !clearing_q;
        for (int unsigned j = 0; j < Clients; j++) begin
          if (held_q[j] &&
              held_index_q[j*AddrBits+:AddrBits] == acq_index_i[i*AddrBits+:AddrBits]) begin
            eligible[i] = 1'b0;
            wanted[j]   = 1'b1;
          end
        end
      end
    end
  end

  rr_arbiter #(
      .N(Clients)
  ) u_acquire (
      .clk_i,
      .rst_ni,
      .request_i(eligible),
      .advance_i(1'b1),
      .grant_o  (acq_grant)
  );

  rr_arbiter #(
      .N(Clients)
  ) u_release (
      .clk_i,
      .rst_ni,
      .request_i(rel_valid_i),
      .advance_i(1'b1),
      .grant_o  (rel_grant)
  );

  assign acq_ready_o = acq_grant;
  assign rel_ready_o = rel_grant;

  always_comb begin
    acq_index = '0;
    rel_index = '0;
    rel_data  = '0;
    for (int unsigned i = 0; i < Clients; i++) begin
      if (acq_grant[i]) acq_index = acq_index | acq_index_i[i*AddrBits+:AddrBits];
      if (rel_grant[i]) rel_index = rel_index | held_index_q[i*AddrBits+:AddrBits];
      if (rel_grant[i]) rel_data = rel_data | rel_data_i[i*Width+:Width];
    end
    rel_write = (rel_grant & rel_write_i) != '0;
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Clients; i++) begin
      if (acq_grant[i]) held_index_q[i*AddrBits+:AddrBits] <= acq_index_i[i*AddrBits+:AddrBits];
    end
    held_q     <= (held_q | acq_grant) & ~rel_grant;
    rd_q       <= acq_grant;
    rd_qq      <= rd_q;
    contended_o <= wanted;
    if (clearing_q) clear_q <= clear_q + 1'b1;
    clearing_q <= clearing_q && clear_q != AddrBits'(Entries - 1);
    if (!rst_ni) begin
      held_q     <= '0;
      rd_q       <= '0;
      rd_qq      <= '0;
      clear_q    <= '0;
      clearing_q <= 1'b1;
    end
  end

  // The read is registered twice: address, then data.
  logic [AddrBits-1:0] rd_index_q;
  logic [Width-1:0] rd_data;
  always_ff @(posedge clk_i) rd_index_q <= acq_index;

  ram_1r1w #(
      .Width(Width),
      .Depth(Entries)
  ) u_ram (
      .clk_i,
      .wr_en_i  (clearing_q || rel_write),
      .wr_addr_i(clearing_q ? clear_q : rel_index),
      .wr_data_i(clearing_q ? '0 : rel_data),
      .rd_en_i  (rd_q != '0),
      .rd_addr_i(rd_index_q),
      .rd_data_o(rd_data)
  );

  assign ctx_valid_o = rd_qq;
  assign ctx_data_o  = rd_data;

  `ASSERT(ReleaseWhatIsHeld, (rel_valid_i & ~held_q) == '0)
  `ASSERT(NoSecondAcquire, (acq_valid_i & acq_ready_o & held_q) == '0)

  // a asks for the context that b holds; a and b ask for the same one in the same cycle.
  `COVER_ORDERED(AsksWhileHeld, Clients, acq_valid_i[a] && held_q[b] &&
                 held_index_q[b*AddrBits+:AddrBits] == acq_index_i[a*AddrBits+:AddrBits])
  `COVER_PAIRS(AskTogether, Clients, acq_valid_i[a] && acq_valid_i[b] &&
               acq_index_i[a*AddrBits+:AddrBits] == acq_index_i[b*AddrBits+:AddrBits])
endmodule

`default_nettype wire
