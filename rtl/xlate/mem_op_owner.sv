`default_nettype none
`include "assert.svh"

/// Which QP each bound type 2B window belongs to, so that the windows of one QP are found without a
/// walk over the protection table: 32 windows a row, a row a cycle.
///
/// set_valid_i is held with a window until set_ready_o: it is of set_qp_i now, or of nobody.
/// scan_valid_i is held with a QP until scan_ready_o, which comes with the next window of that QP
/// (scan_found_o), or at the end of the table (scan_end_o), or after Pause rows with neither, to
/// let other work in. The next scan goes on from there: a window that was found is found again
/// until it is set to nobody. After the end a scan begins anew. That of a QP to which no window has
/// been set since its last scan began is at its end at once: most QPs never bind one.
/// The table is empty when ready_o rises.
module mem_op_owner #(
    parameter int unsigned Pause = 128,
    localparam int unsigned IndexBits = rnic_pkg::MptIndexBits,
    localparam int unsigned QpBits = rnic_pkg::QpIndexBits
) (
    input  wire logic                 clk_i,
    input  wire logic                 rst_ni,
    output logic                      ready_o,
    input  wire logic                 set_valid_i,
    output logic                      set_ready_o,
    input  wire logic [IndexBits-1:0] set_index_i,
    input  wire logic                 set_bound_i,
    input  wire logic [QpBits-1:0]    set_qp_i,
    input  wire logic                 scan_valid_i,
    output logic                      scan_ready_o,
    input  wire logic [QpBits-1:0]    scan_qp_i,
    output logic                      scan_found_o,
    output logic                      scan_end_o,
    output logic [IndexBits-1:0]      scan_index_o
);
  localparam int unsigned Lanes = 32;
  localparam int unsigned LaneBits = $clog2(Lanes);
  localparam int unsigned RowBits = IndexBits - LaneBits;
  localparam int unsigned EntryBits = QpBits + 1;
  localparam int unsigned PauseBits = $clog2(Pause);

  if (Pause != 1 << PauseBits || Pause < 2) begin : gen_bad_pause
    $fatal(1, "mem_op_owner: Pause must be a power of two");
  end

  // Idle: waits. Modify: the row of a set is here, write it back. Scan: the row before row_q is
  // here, look at it and read row_q.
  typedef enum logic [1:0] {
    Idle,
    Modify,
    Scan
  } state_e;
  state_e state_q, state_d;

  logic [RowBits:0] row_q, row_d, last_row;
  logic [RowBits-1:0] rd_row;
  logic [Lanes*EntryBits-1:0] word, changed;
  logic [Lanes-1:0] mine;
  logic [LaneBits-1:0] lane;
  logic rd, wr, found, ended, pause, begins, under_way_q, none_q;
  // May have a window: set with each, cleared as a scan begins, so that a window which comes while
  // it goes on is found by the next.
  logic [(1 << QpBits)-1:0] any_q;

  ram_zeroed #(
      .Width(Lanes * EntryBits),
      .Depth(1 << RowBits)
  ) u_rows (
      .clk_i,
      .rst_ni,
      .ready_o,
      .wr_en_i  (wr),
      .wr_addr_i(set_index_i[IndexBits-1:LaneBits]),
      .wr_data_i(changed),
      .rd_en_i  (rd),
      .rd_addr_i(rd_row),
      .rd_data_o(word)
  );

  always_comb begin
    changed = word;
    changed[set_index_i[LaneBits-1:0]*EntryBits+:EntryBits] = {set_bound_i, set_qp_i};
    lane    = '0;
    for (int unsigned i = 0; i < Lanes; i++) begin
      mine[i] = word[i*EntryBits+:EntryBits] == {1'b1, scan_qp_i};
    end
    for (int unsigned i = Lanes; i > 0; i--) begin
      if (mine[i-1]) lane = LaneBits'(i - 1);
    end
  end

  assign last_row = row_q - 1'b1;
  assign found    = mine != '0 && !none_q;
  assign ended    = row_q[RowBits] || none_q;
  assign pause    = row_q[PauseBits-1:0] == '0;

  always_comb begin
    state_d      = state_q;
    row_d        = row_q;
    rd           = 1'b0;
    rd_row       = row_q[RowBits-1:0];
    wr           = 1'b0;
    set_ready_o  = 1'b0;
    scan_ready_o = 1'b0;
    unique case (state_q)
      Idle: begin
        if (!ready_o) begin
          state_d = Idle;
        end else if (set_valid_i) begin
          rd      = 1'b1;
          rd_row  = set_index_i[IndexBits-1:LaneBits];
          state_d = Modify;
        end else if (scan_valid_i) begin
          rd      = 1'b1;
          row_d   = row_q + 1'b1;
          state_d = Scan;
        end
      end
      Modify: begin
        wr          = 1'b1;
        set_ready_o = 1'b1;
        state_d     = Idle;
      end
      Scan: begin
        rd    = 1'b1;
        row_d = row_q + 1'b1;
        if (found || ended || pause) begin
          scan_ready_o = 1'b1;
          state_d      = Idle;
          row_d        = found ? last_row : (ended ? '0 : row_q);
        end
      end
      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    row_q   <= row_d;
    none_q  <= begins && !any_q[scan_qp_i];
    if (begins) any_q[scan_qp_i] <= 1'b0;
    if (begins) under_way_q <= 1'b1;
    else if (scan_ready_o && scan_end_o) under_way_q <= 1'b0;
    if (wr && set_bound_i) any_q[set_qp_i] <= 1'b1;
    if (!rst_ni) begin
      state_q     <= Idle;
      row_q       <= '0;
      any_q       <= '0;
      under_way_q <= 1'b0;
    end
  end

  assign begins       = state_q == Idle && state_d == Scan && !under_way_q;
  assign scan_found_o = found;
  assign scan_end_o   = ended && !found;
  assign scan_index_o = {last_row[RowBits-1:0], lane};

  logic unused_row;
  assign unused_row = last_row[RowBits];

  `ASSERT(SetHeld, state_q != Modify || set_valid_i)
  `ASSERT(ScanHeld, state_q != Scan || scan_valid_i)
endmodule

`default_nettype wire
