`default_nettype none
`include "assert.svh"

/// Moves the payload of each packet to lane 0 and cuts padding and ICRC off.
///
/// Input: beats of rx_parse; payload_words_i (2 to 22), payload_length_i, grh_i and ipv6_i are read
/// with the first beat of a frame. With grh_i the first ten words of what payload_words_i points to
/// are replaced by the IP header. A line leaves when the beat that completes it is here, or at once
/// behind the last beat of the frame; the line of a last beat comes out four cycles after it, no
/// line of the frame comes later, and none of the next frame sooner.
module rx_front_align (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    input  wire logic         in_valid_i,
    input  wire logic         in_first_i,
    input  wire logic         in_last_i,
    input  wire logic [511:0] in_data_i,
    input  wire logic [4:0]   payload_words_i,
    input  wire logic [12:0]  payload_length_i,
    input  wire logic         grh_i,
    input  wire logic         ipv6_i,
    output logic              out_valid_o,
    output logic              out_last_o,
    output logic [6:0]        out_bytes_o,
    output logic [511:0]      out_data_o
);
  // ---- Rotate so that the payload starts in lane 0 ----
  // held_: the beat whose line may need the next beat.
  logic held_valid_q, held_first_q, held_last_q, held_skip_q, held_grh_q, step;
  logic [3:0] held_turn_q;
  logic [12:0] held_length_q, left, left_q;
  logic [511:0] rotated, held_q, line;
  logic [319:0] grh_q;

  byte_rotate u_rotate (
      .data_i  (in_data_i),
      .amount_i({payload_words_i[3:0], 2'b00}),
      .data_o  (rotated)
  );

  always_comb begin
    for (int unsigned i = 0; i < 16; i++) begin
      line[32*i+:32] = (5'(i) + {1'b0, held_turn_q} > 5'd15) ? rotated[32*i+:32] :
          held_q[32*i+:32];
    end
    if (held_first_q && held_grh_q) line[319:0] = grh_q;
  end

  // ---- One line for each step, from the beat in which the payload starts on ----
  logic line_valid, line_last;
  logic [6:0] line_bytes;
  assign step       = held_valid_q && (held_last_q || in_valid_i);
  assign left       = held_first_q ? held_length_q : left_q;
  assign line_valid = step && left != '0 && !(held_first_q && held_skip_q);
  assign line_last  = left <= 13'd64;
  assign line_bytes = line_last ? left[6:0] : 7'd64;

  always_ff @(posedge clk_i) begin
    if (in_valid_i) begin
      held_q        <= rotated;
      held_first_q  <= in_first_i;
      held_last_q   <= in_last_i;
      held_skip_q   <= payload_words_i[4];
      held_turn_q   <= payload_words_i[3:0];
      held_length_q <= payload_length_i;
      held_grh_q    <= grh_i;
      grh_q         <= ipv6_i ? in_data_i[319:0] : {in_data_i[159:0], 160'd0};
    end
    if (step) left_q <= line_valid ? (line_last ? '0 : left - 13'd64) : left;
    held_valid_q <= in_valid_i || (held_valid_q && !step);
    if (!rst_ni) held_valid_q <= 1'b0;
  end

  // ---- Delay, to end with the ICRC of the packet ----
  localparam int unsigned Delay = 3;
  logic [Delay-1:0] valid_q;
  logic [519:0] line_q[Delay];
  always_ff @(posedge clk_i) begin
    line_q[0] <= {line_last, line_bytes, line};
    for (int unsigned i = 1; i < Delay; i++) line_q[i] <= line_q[i-1];
    valid_q <= {valid_q[Delay-2:0], line_valid};
    if (!rst_ni) valid_q <= '0;
  end
  assign out_valid_o = valid_q[Delay-1];
  assign {out_last_o, out_bytes_o, out_data_o} = line_q[Delay-1];
endmodule

`default_nettype wire
