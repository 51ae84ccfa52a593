`default_nettype none

/// Completion time-out of DMA reads in cycles of the nominal clock (250 MHz), from its range in the
/// encoding of PCI Express Device Control 2. Combinational. known_o: the range is one of these; the
/// others count as the default.
///
/// It is the middle of the range, so neither another clock nor the time until an overdue read is
/// found (dma_read_tags, a few hundred cycles) takes it out of that. The default range is 50 us to
/// 50 ms, of which what is below 10 ms is not recommended (7.5.3.16): the middle of the rest.
module completion_timeout (
    input  wire logic [3:0] range_i,
    output logic            known_o,
    output logic [29:0]     cycles_o
);
  localparam logic [29:0] CyclesPerMicrosecond = 30'd250;
  localparam logic [29:0] CyclesPerMillisecond = 30'd1000 * CyclesPerMicrosecond;

  always_comb begin
    known_o  = 1'b1;
    cycles_o = 30'd30 * CyclesPerMillisecond;
    unique case (range_i)
      rnic_pkg::CompletionTimeoutRangeDefault: ;
      rnic_pkg::CompletionTimeoutRangeA1: cycles_o = 30'd75 * CyclesPerMicrosecond;
      rnic_pkg::CompletionTimeoutRangeA2: cycles_o = 30'd5500 * CyclesPerMicrosecond;
      rnic_pkg::CompletionTimeoutRangeB1: cycles_o = 30'd35_500 * CyclesPerMicrosecond;
      rnic_pkg::CompletionTimeoutRangeB2: cycles_o = 30'd137_500 * CyclesPerMicrosecond;
      rnic_pkg::CompletionTimeoutRangeC1: cycles_o = 30'd580 * CyclesPerMillisecond;
      rnic_pkg::CompletionTimeoutRangeC2: cycles_o = 30'd2250 * CyclesPerMillisecond;
      default: known_o = 1'b0;
    endcase
  end
endmodule

`default_nettype wire
