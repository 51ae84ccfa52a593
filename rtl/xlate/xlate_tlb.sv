`default_nettype none
`include "assert.svh"

/// TLB: 64-byte lines of page lists, 4 ways of Sets sets.
///
/// A look-up takes three cycles: key_i; then hit_o; then line_o. A fill writes the tag at once and
/// the line a cycle later, which is when the look-ups that saw the old tag have read the old line.
/// The victim is a free way, else the ways in turn.
module xlate_tlb #(
    parameter int unsigned KeyBits = 56,
    parameter int unsigned IndexBits = 14,
    parameter int unsigned GenBits = 8,
    parameter int unsigned Sets = 128
) (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    input  wire logic [KeyBits-1:0] key_i,
    output logic                    hit_o,         // A cycle later
    output logic [511:0]            line_o,        // Two cycles later, when hit_o
    input  wire logic               fill_i,
    input  wire logic [KeyBits-1:0] fill_key_i,
    input  wire logic [511:0]       fill_line_i,
    input  wire logic               flush_i
);
  localparam int unsigned Ways = 4;
  localparam int unsigned SetBits = $clog2(Sets);

  if (2 * SetBits > IndexBits) begin : gen_bad_sets
    $fatal(1, "xlate_tlb: too many sets for the hash");
  end

  // Set: low bits of the line number, spread by the MPT index so that small regions do not meet in
  // one set.
  logic [SetBits-1:0] set, fill_set;
  assign set = key_i[IndexBits+GenBits+:SetBits] ^ key_i[SetBits-1:0] ^ key_i[2*SetBits-1:SetBits];
  assign fill_set = fill_key_i[IndexBits+GenBits+:SetBits] ^ fill_key_i[SetBits-1:0] ^
      fill_key_i[2*SetBits-1:SetBits];

  logic [Sets-1:0] valid_q[Ways];
  logic [Ways-1:0] valid_here_q, match, used, victim, turn_q;
  logic [KeyBits-1:0] key_q;
  logic [SetBits-1:0] set_q;
  logic [1:0] way, victim_way, fill_way_q;

  for (genvar w = 0; w < Ways; w++) begin : gen_way
    logic [KeyBits-1:0] tag;
    ram_1r1w #(
        .Width(KeyBits),
        .Depth(Sets)
    ) u_tags (
        .clk_i,
        .wr_en_i  (fill_i && victim[w]),
        .wr_addr_i(fill_set),
        .wr_data_i(fill_key_i),
        .rd_en_i  (1'b1),
        .rd_addr_i(set),
        .rd_data_o(tag)
    );
    assign match[w] = valid_here_q[w] && tag == key_q;
    assign used[w]  = valid_q[w][fill_set];

    always_ff @(posedge clk_i) begin
      // Read with the tag: a way that is filled now must not be matched with its old tag.
      valid_here_q[w] <= valid_q[w][set];
      if (fill_i && victim[w]) valid_q[w][fill_set] <= 1'b1;
      if (!rst_ni || flush_i) valid_q[w] <= '0;
    end
  end

  assign victim     = used == '1 ? turn_q : ~used & (used + Ways'(1));
  assign victim_way = {victim[3] || victim[2], victim[3] || victim[1]};
  assign way        = match[0] ? 2'd0 : match[1] ? 2'd1 : match[2] ? 2'd2 : 2'd3;
  assign hit_o      = match != '0;

  logic fill_q;
  logic [SetBits-1:0] fill_set_q;
  logic [511:0] fill_line_q;
  always_ff @(posedge clk_i) begin
    key_q       <= key_i;
    set_q       <= set;
    fill_q      <= fill_i;
    fill_set_q  <= fill_set;
    fill_way_q  <= victim_way;
    fill_line_q <= fill_line_i;
    if (fill_i) turn_q <= {turn_q[2:0], turn_q[3]};
    if (!rst_ni) begin
      fill_q <= 1'b0;
      turn_q <= Ways'(1);
    end
  end

  ram_1r1w #(
      .Width(512),
      .Depth(Ways * Sets)
  ) u_lines (
      .clk_i,
      .wr_en_i  (fill_q),
      .wr_addr_i({fill_way_q, fill_set_q}),
      .wr_data_i(fill_line_q),
      .rd_en_i  (hit_o),
      .rd_addr_i({way, set_q}),
      .rd_data_o(line_o)
  );

  `ASSERT(OneVictim, $onehot(victim))
endmodule

`default_nettype wire
