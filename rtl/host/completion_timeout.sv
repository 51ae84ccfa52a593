`default_nettype none

/// Completion time-out of DMA reads in cycles of the nominal clock (250 MHz), from its range in the
/// encoding of PCI Express Device Control 2. Combinational. known_o: the range is one of these; the
/// others count as the default.
module completion_timeout (
    input  wire logic [3:0] range_i,
    output logic            known_o,
    output logic [29:0]     cycles_o
);
  localparam logic [29:0] CyclesPerMillisecond = 30'd250_000;

  always_comb begin
    known_o  = 1'b1;
    cycles_o = 30'd50 * CyclesPerMillisecond;
    unique case (range_i)
      rnic_pkg::CompletionTimeoutRangeDefault: ;
      rnic_pkg::CompletionTimeoutRangeA1: cycles_o = 30'd25_000;
      rnic_pkg::CompletionTimeoutRangeA2: cycles_o = 30'd10 * CyclesPerMillisecond;
      rnic_pkg::CompletionTimeoutRangeB1: ;
      rnic_pkg::CompletionTimeoutRangeB2: cycles_o = 30'd200 * CyclesPerMillisecond;
      rnic_pkg::CompletionTimeoutRangeC1: cycles_o = 30'd800 * CyclesPerMillisecond;
      rnic_pkg::CompletionTimeoutRangeC2: cycles_o = 30'd3000 * CyclesPerMillisecond;
      default: known_o = 1'b0;
    endcase
  end
endmodule

`default_nettype wire
