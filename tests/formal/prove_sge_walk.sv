`default_nettype none

/// The pieces of a packet are its payload: their lengths add up to it, none is empty, and each lies
/// in its segment, from where the one before has ended. Segments hold enough for the packet.
module prove_sge_walk (
    input wire logic         clk_i,
    input wire logic         rst_ni,
    input wire logic         start_i,
    input wire logic [4:0]   sge_index_i,
    input wire logic [31:0]  sge_offset_i,
    input wire logic [12:0]  payload_i,
    input wire logic [511:0] line_i
);
  logic rd_en, piece_valid, done, active_q, begun_q;
  logic [2:0] rd_line;
  logic [4:0] next_index, segment_q;
  logic [31:0] next_offset, offset_q;
  logic [12:0] left_q;
  rnic_pkg::sg_piece_t piece;
  rnic_pkg::wqe_data_t sge;
  initial assume (!rst_ni);

  sge_walk u_dut (
      .clk_i,
      .rst_ni,
      .start_i,
      .inline_i         (1'b0),
      .header_segments_i(3'd1),
      .sge_index_i,
      .sge_offset_i,
      .payload_i,
      .pd_i             (24'd0),
      .rd_en_o          (rd_en),
      .rd_line_o        (rd_line),
      .line_i,
      .piece_valid_o    (piece_valid),
      .piece_data_o     (piece),
      .done_o           (done),
      .sge_index_o      (next_index),
      .sge_offset_o     (next_offset)
  );

  // Segment n of the WQE is in line (n + 1) / 4, behind the control segment.
  wire logic [4:0] place = segment_q + 5'd1;
  assign sge = line_i[{place[1:0], 7'd0}+:128];
  wire logic [31:0] there = sge.length - offset_q;
  wire logic [31:0] takes = there < {19'd0, left_q} ? there : {19'd0, left_q};
  always_comb begin
    assume (!start_i || !active_q);
    assume (!start_i || (payload_i != '0 && payload_i <= 13'd4096 && sge_index_i < 5'd16));
    // Who starts in a segment starts inside of it; there are enough of them.
    assume (!active_q || offset_q <= sge.length);
    assume (!active_q || segment_q < 5'd16);
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      segment_q <= sge_index_i;
      offset_q  <= sge_offset_i;
      left_q    <= payload_i;
    end else if (active_q) begin
      left_q <= left_q - takes[12:0];
      if (takes == there) begin
        segment_q <= segment_q + 1'b1;
        offset_q  <= '0;
      end else offset_q <= offset_q + takes;
    end
    active_q <= start_i || (active_q && takes != {19'd0, left_q});
    begun_q  <= begun_q || start_i;
    if (!rst_ni) begin
      active_q <= 1'b0;
      begun_q  <= 1'b0;
    end
  end
  always_comb begin
    if (rst_ni) begin
      Pieces: assert (piece_valid == (active_q && takes != '0));
      Length: assert (!piece_valid || {19'd0, piece.length} == takes);
      Address: assert (!piece_valid || piece.va == sge.va + {32'd0, offset_q});
      Key: assert (!piece_valid || piece.key == sge.lkey);
      Last: assert (!piece_valid || piece.last == (takes == {19'd0, left_q}));
      Done: assert (done == (active_q && takes == {19'd0, left_q}));
      Place: assert (!begun_q || (next_index == segment_q && next_offset == offset_q));
    end
  end
endmodule

`default_nettype wire
