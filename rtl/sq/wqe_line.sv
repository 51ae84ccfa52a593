`default_nettype none

/// First line of a WQE in the buffer ring of its queue pair: (index * stride / 64) mod 8.
module wqe_line (
    input  wire logic [2:0] index_i,
    input  wire logic [3:0] log_stride_i,
    output logic [2:0]      line_o
);
  always_comb begin
    unique case (log_stride_i)
      4'd6:    line_o = index_i;
      4'd7:    line_o = {index_i[1:0], 1'b0};
      4'd8:    line_o = {index_i[0], 2'b00};
      default: line_o = 3'd0;
    endcase
  end
endmodule

`default_nettype wire
