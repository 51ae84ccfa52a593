`default_nettype none

/// Time-outs of DMA reads: when each read left, which one is overdue, and when to look for one.
///
/// sent_i: the read of a slot leaves. outstanding_i: the slots whose reads are not answered. A
/// sweep looks at the slots, one a cycle, from scan_o, and a cycle later, at look_o, judges:
/// overdue_o. It goes on from the earliest deadline of those outstanding until none is overdue, so
/// a time-out is seen within two sweeps; its last round finds the next deadline. keep_i: it goes on
/// in any case. Between sweeps nothing changes here, and the clock may stand still (rest_o).
///
/// Time comes from outside (cycles_i). While disable_i is 1 (Completion Timeout Disable, PCI
/// Express 7.5.3.16) none is overdue, and the time of reads stands still: one that was on its way
/// has the rest of its time afterwards.
module dma_read_timeout (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic [63:0] cycles_i,
    input  wire logic [29:0] timeout_i,  // In cycles
    input  wire logic        disable_i,
    input  wire logic        keep_i,
    input  wire logic [63:0] outstanding_i,
    input  wire logic        sent_i,
    input  wire logic [5:0]  sent_slot_i,
    output logic             scan_valid_o,
    output logic [5:0]       scan_o,
    output logic [5:0]       look_o,
    output logic             overdue_o,
    output rnic_pkg::rest_t  rest_o
);
  localparam int unsigned TimeBits = 30;

  // ---- Time of reads ----------------------------------------------------------------------------
  logic [TimeBits-1:0] now, offset_q, stopped_q;
  logic disabled_q;
  assign now = disabled_q ? stopped_q : cycles_i[TimeBits-1:0] - offset_q;

  always_ff @(posedge clk_i) begin
    disabled_q <= disable_i;
    if (disable_i && !disabled_q) stopped_q <= now;
    if (!disable_i && disabled_q) offset_q <= cycles_i[TimeBits-1:0] - stopped_q;
    if (!rst_ni) begin
      disabled_q <= 1'b0;
      offset_q   <= '0;
    end
  end

  // ---- Sweep ------------------------------------------------------------------------------------
  logic [TimeBits-1:0] earliest_q, since, stamp, age, found_q, found;
  logic [5:0] scan_q, look_q;
  logic due, look_valid_q, was_out_q, live, first, found_valid_q, found_valid;

  // No read left before earliest_q that is still outstanding.
  assign since        = now - earliest_q;
  assign due          = outstanding_i != '0 && !disable_i && !disabled_q && since > timeout_i;
  assign scan_valid_o = due || keep_i;
  assign scan_o       = scan_q;
  assign look_o       = look_q;

  ram_1r1w #(
      .Width(TimeBits),
      .Depth(64)
  ) u_stamps (
      .clk_i,
      .wr_en_i  (sent_i),
      .wr_addr_i(sent_slot_i),
      .wr_data_i(now),
      .rd_en_i  (scan_valid_o),
      .rd_addr_i(scan_q),
      .rd_data_o(stamp)
  );

  // A slot sent in the very cycle of the look still shows its old time: it was not outstanding
  // then.
  assign live      = was_out_q && outstanding_i[look_q];
  assign age       = now - stamp;
  assign overdue_o = live && age > timeout_i && !disable_i && !disabled_q;

  // The oldest of the round.
  assign first = look_q == '0;
  always_comb begin
    found       = found_q;
    found_valid = found_valid_q && !first;
    if (live && (!found_valid || age > now - found_q)) found = stamp;
    if (live) found_valid = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    scan_q       <= scan_valid_o ? scan_q + 1'b1 : '0;
    look_valid_q <= scan_valid_o;
    if (scan_valid_o) look_q <= scan_q;
    was_out_q <= scan_valid_o && outstanding_i[scan_q];
    if (look_valid_q) begin
      found_q       <= found;
      found_valid_q <= found_valid;
      if (look_q == '1) earliest_q <= found_valid ? found : now;
    end
    if (!rst_ni) begin
      scan_q       <= '0;
      look_valid_q <= 1'b0;
      was_out_q    <= 1'b0;
    end
  end

  // ---- When the next sweep begins ---------------------------------------------------------------
  logic [TimeBits-1:0] left;
  assign left            = timeout_i - since;
  assign rest_o.busy     = scan_valid_o || look_valid_q || disable_i != disabled_q;
  assign rest_o.timed    = outstanding_i != '0 && !disable_i;
  assign rest_o.deadline = cycles_i[42:0] + 43'(left) + 43'd1;

  logic unused_bits;
  assign unused_bits = ^cycles_i[63:43];
endmodule

`default_nettype wire
