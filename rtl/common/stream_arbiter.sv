`default_nettype none
`include "assert.svh"

/// Merges N streams into one, round robin, a packet at a time: a stream keeps the output until it
/// sends a word with its `last` bit. Input i is bits i*Width +: Width of in_data_i. Output is a
/// skid buffer. `out_source_o` is the input that won. A grant counts from the first offer of a
/// word, so that it is the others' turn next however long that word has to wait.
module stream_arbiter #(
    parameter int unsigned N = 2,
    parameter int unsigned Width = 8,
    localparam int unsigned SourceBits = N > 1 ? $clog2(N) : 1
) (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    input  wire logic [N-1:0]       in_valid_i,
    output logic [N-1:0]            in_ready_o,
    input  wire logic [N-1:0]       in_last_i,
    input  wire logic [N*Width-1:0] in_data_i,
    output logic                    out_valid_o,
    input  wire logic               out_ready_i,
    output logic                    out_last_o,
    output logic [Width-1:0]        out_data_o,
    output logic [SourceBits-1:0]   out_source_o
);
  logic [N-1:0] rr_grant, grant, lock_q;
  logic locked_q, mid_valid, mid_ready, mid_last;
  logic [Width-1:0] mid_data;
  logic [SourceBits-1:0] mid_source;

  rr_arbiter #(
      .N(N)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .request_i(in_valid_i),
      .advance_i(mid_valid && !locked_q),
      .grant_o  (rr_grant)
  );

  assign grant      = locked_q ? lock_q : rr_grant;
  assign mid_valid  = (in_valid_i & grant) != '0;
  assign in_ready_o = mid_ready ? grant : '0;

  always_comb begin
    mid_data   = '0;
    mid_last   = 1'b0;
    mid_source = '0;
    for (int unsigned i = 0; i < N; i++) begin
      if (grant[i]) begin
        mid_data   = mid_data | in_data_i[i*Width+:Width];
        mid_last   = mid_last | in_last_i[i];
        mid_source = mid_source | SourceBits'(i);
      end
    end
  end

  // The grant is held from the first word offered, so that the output never changes its mind.
  always_ff @(posedge clk_i) begin
    if (mid_valid) begin
      locked_q <= !(mid_ready && mid_last);
      lock_q   <= grant;
    end
    if (!rst_ni) locked_q <= 1'b0;
  end

  skid_buffer #(
      .Width(Width + 1 + SourceBits)
  ) u_out (
      .clk_i,
      .rst_ni,
      .in_valid_i (mid_valid),
      .in_ready_o (mid_ready),
      .in_data_i  ({mid_source, mid_last, mid_data}),
      .out_valid_o,
      .out_ready_i,
      .out_data_o ({out_source_o, out_last_o, out_data_o})
  );
endmodule

`default_nettype wire
