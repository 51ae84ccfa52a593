`default_nettype none
`include "assert.svh"

/// WQE windows: gathers the WQE that a process writes to its UAR page, and posts it when its last
/// segment is there.
///
/// A write at offset 0 begins a WQE: its first word tells the size (wqe_control.size, 1 to 16 units
/// of 16 bytes). Every further write continues where the one before ended. A processor may send the
/// pieces of a line in any order, so a WQE whose pieces come otherwise is told by its first word
/// alone (whole 0; docs/decisions.md 52): as soon as a write does not continue it, and at once if
/// pieces came before its beginning, or it has any other size: it is malformed, and has to be told
/// to fail. These pieces, and what is written beyond the size, are ignored. A process that stops
/// half way holds up nobody: each UAR has its own 256 bytes.
/// in: writes to the window only, of 1, 2, 4 or 8 words (in_log_words_i), naturally aligned
/// (in_addr_i is the offset in the window), at most one every 2 cycles. A WQE that arrives as one
/// write is offered 2 cycles after it was accepted; others come out of the RAM, 2 cycles a line.
module wqe_window (
    input  wire logic            clk_i,
    input  wire logic            rst_ni,
    input  wire logic            in_valid_i,
    output logic                 in_ready_o,
    input  wire logic [6:0]      in_uar_i,
    input  wire logic [7:3]      in_addr_i,
    input  wire logic [1:0]      in_log_words_i,
    input  wire logic [511:0]    in_data_i,
    output logic                 push_valid_o,
    input  wire logic            push_ready_i,
    output rnic_pkg::wqe_push_t  push_data_o
);
  localparam int unsigned Uars = 32'd1 << rnic_pkg::UarIndexBits;
  localparam int unsigned MaxUnits = rnic_pkg::UarWqeWindowBytes / 16;

  // Idle: takes a write. Look: the UAR's progress is known; store the write, if no WQE has to be
  // told first that it does not continue. Fetch: read a stored line. Give: pass it on.
  typedef enum logic [1:0] {
    Idle,
    Look,
    Fetch,
    Give
  } state_e;
  state_e state_q, state_d;

  logic [6:0] uar_q;
  logic [4:0] at_q;  // first word of the write, in 8 bytes
  logic [1:0] log_words_q;
  logic [7:0] lanes;
  logic [511:0] data_q, line;

  // Progress of a UAR: words there so far and the units wanted; `open` says that they mean
  // something. `stray`: pieces came that continued nothing, since the last beginning.
  logic [Uars-1:0] open_q, stray_q;
  logic [9:0] progress;
  logic [4:0] have;
  logic [5:0] reached;
  logic [4:0] stored_units, units, units_q;
  logic [7:0] size;
  logic begins, sized, follows, complete, direct, early, lost, looking, looked, lost_q;
  logic [1:0] line_q, last_line;

  logic mid_valid, mid_ready;
  rnic_pkg::wqe_push_t mid_data;

  assign in_ready_o = state_q == Idle;
  assign looking    = state_q == Look;

  ram_1r1w #(
      .Width(10),
      .Depth(Uars)
  ) u_progress (
      .clk_i,
      .wr_en_i  (looking && !lost),
      .wr_addr_i(uar_q),
      .wr_data_i({units, reached[4:0]}),
      .rd_en_i  (in_valid_i && in_ready_o),
      .rd_addr_i(in_uar_i),
      .rd_data_o(progress)
  );

  assign {stored_units, have} = progress;
  assign size     = data_q[63:56];
  assign begins   = at_q == '0;
  assign sized    = size != '0 && size <= 8'(MaxUnits);
  assign follows  = !begins && open_q[uar_q] && at_q == have;
  assign units    = begins ? size[4:0] : stored_units;
  assign reached  = {1'b0, at_q} + (6'd1 << log_words_q);
  assign complete = (begins && !sized) || ((begins || follows) && reached >= {units, 1'b0});
  assign direct   = complete && begins;
  assign early    = begins && !complete && stray_q[uar_q];
  assign lost     = open_q[uar_q] && !follows;
  assign looked   = looking && state_d != Look;

  always_comb begin
    unique case (log_words_q)
      2'd0: lanes = 8'd1 << at_q[2:0];
      2'd1: lanes = 8'd3 << at_q[2:0];
      2'd2: lanes = 8'd15 << at_q[2:0];
      default: lanes = '1;
    endcase
  end

  // ---- Storage: eight lanes of a word, so that single words can be written --------------------
  for (genvar g = 0; g < 8; g++) begin : gen_lane
    ram_1r1w #(
        .Width(64),
        .Depth(4 * Uars)
    ) u_lane (
        .clk_i,
        .wr_en_i  (looking && !lost && lanes[g]),
        .wr_addr_i({uar_q, at_q[4:3]}),
        .wr_data_i(data_q[64*g+:64]),
        .rd_en_i  (state_q == Fetch),
        .rd_addr_i({uar_q, line_q}),
        .rd_data_o(line[64*g+:64])
    );
  end

  // ---- Posting --------------------------------------------------------------------------------
  // Lines less one; 16 units are 4 lines.
  assign last_line = 2'((units_q - 5'd1) >> 2);

  always_comb begin
    state_d       = state_q;
    mid_valid     = 1'b0;
    mid_data.uar  = uar_q;
    mid_data.data = line;
    mid_data.last = lost_q || line_q == last_line;
    mid_data.whole = !lost_q;
    unique case (state_q)
      Idle: if (in_valid_i) state_d = Look;
      Look: begin
        state_d = (complete || lost) ? Fetch : Idle;
        if (!lost && (direct || early)) begin
          mid_valid      = 1'b1;
          mid_data.data  = data_q;
          mid_data.last  = 1'b1;
          mid_data.whole = direct && sized;
          state_d        = mid_ready ? Idle : Look;
        end
      end
      Fetch: state_d = Give;
      Give: begin
        mid_valid = 1'b1;
        if (mid_ready) state_d = mid_data.last ? Idle : Fetch;
        if (mid_ready && lost_q && begins) state_d = Look;
      end
      default: state_d = Idle;
    endcase
  end

  skid_buffer #(
      .Width(rnic_pkg::WqePushBits)
  ) u_push (
      .clk_i,
      .rst_ni,
      .in_valid_i (mid_valid),
      .in_ready_o (mid_ready),
      .in_data_i  (mid_data),
      .out_valid_o(push_valid_o),
      .out_ready_i(push_ready_i),
      .out_data_o (push_data_o)
  );

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (in_ready_o) begin
      uar_q   <= in_uar_i;
      at_q    <= in_addr_i;
      log_words_q <= in_log_words_i;
      data_q  <= in_data_i;
    end
    if (looked) begin
      units_q        <= units;
      line_q         <= '0;
      lost_q         <= lost;
      open_q[uar_q]  <= !lost && !early && (begins || follows) && !complete;
      stray_q[uar_q] <= !begins && !follows;
    end
    if (state_q == Give && mid_ready) line_q <= line_q + 1'b1;
    if (!rst_ni) begin
      state_q <= Idle;
      open_q  <= '0;
      stray_q <= '0;
    end
  end

  `ASSERT_HOLD(InHold, in_valid_i, in_ready_o,
               {in_uar_i, in_addr_i, in_log_words_i, in_data_i})
  `ASSERT(Aligned, !in_valid_i || (in_addr_i[5:3] & 3'((4'd1 << in_log_words_i) - 4'd1)) == '0)
endmodule

`default_nettype wire
