`default_nettype none

/// Any one word of what goes in and comes out in order: the solver chooses it (watch_i). next_o: it
/// is the next to leave, and must leave as data_o. inside_o: words inside.
module watched_word #(
    parameter int unsigned Width = 8,
    parameter int unsigned CountBits = 4
) (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic             watch_i,
    input  wire logic             push_i,
    input  wire logic [Width-1:0] data_i,
    input  wire logic             pop_i,
    output logic [CountBits-1:0]  inside_o,
    output logic                  next_o,
    output logic [Width-1:0]      data_o
);
  // ahead_q: words that leave before it.
  logic watched_q;
  logic [CountBits-1:0] ahead_q;
  assign next_o = watched_q && ahead_q == '0;

  always_ff @(posedge clk_i) begin
    inside_o <= inside_o + CountBits'(push_i) - CountBits'(pop_i);
    if (watched_q && pop_i) ahead_q <= ahead_q - 1'b1;
    if (next_o && pop_i) watched_q <= 1'b0;
    if (!watched_q && watch_i && push_i) begin
      watched_q <= 1'b1;
      data_o    <= data_i;
      ahead_q   <= inside_o - CountBits'(pop_i);
    end
    if (!rst_ni) begin
      inside_o  <= '0;
      watched_q <= 1'b0;
    end
  end

  always_comb begin
    if (rst_ni) Inside: assert (!watched_q || ahead_q < inside_o);
  end
endmodule

`default_nettype wire
