`default_nettype none

/// Answer to QueryCapabilities: what the NIC was built with.
module admin_capabilities (
    output rnic_pkg::admin_capabilities_t capabilities_o
);
  localparam logic [7:0] MaxMtu = 8'd5;
  localparam logic [15:0] ClockMhz = 16'd250;

  always_comb begin
    capabilities_o                     = '0;
    capabilities_o.log_max_qp          = rnic_pkg::QpIndexBits[7:0];
    capabilities_o.log_max_cq          = rnic_pkg::CqIndexBits[7:0];
    capabilities_o.log_max_eq          = rnic_pkg::EqIndexBits[7:0];
    capabilities_o.log_max_mr          = rnic_pkg::MptIndexBits[7:0];
    capabilities_o.log_max_mw          = rnic_pkg::MptIndexBits[7:0];
    capabilities_o.window_type1        = 1'b1;
    capabilities_o.window_type2        = 1'b1;
    capabilities_o.max_fast_pages      = rnic_pkg::MaxFastPages[15:0];
    capabilities_o.log_max_queue_depth = rnic_pkg::MaxLogQueueDepth[7:0];
    capabilities_o.log_max_srq         = rnic_pkg::SrqIndexBits[7:0];
    capabilities_o.log_max_srq_depth   = rnic_pkg::MaxLogQueueDepth[7:0];
    capabilities_o.log_max_cq_depth    = rnic_pkg::MaxLogCqDepth[7:0];
    capabilities_o.log_max_eq_depth    = rnic_pkg::MaxLogEqDepth[7:0];
    capabilities_o.max_sge             = rnic_pkg::MaxSge[7:0];
    capabilities_o.max_inline          = rnic_pkg::MaxInlineBytes[15:0];
    capabilities_o.max_rd_atomic       = rnic_pkg::MaxReadsOutstanding[7:0];
    capabilities_o.max_mtu             = MaxMtu;
    capabilities_o.uar_count           = (16'd1 << rnic_pkg::UarIndexBits) - 16'd1;
    capabilities_o.msix_vectors        = rnic_pkg::MsixVectors[15:0];
    capabilities_o.max_message         = rnic_pkg::MaxMessageBytes;
    capabilities_o.clock_mhz           = ClockMhz;
    capabilities_o.max_multicast_groups = rnic_pkg::MulticastGroups[15:0];
    capabilities_o.list_lines           = rnic_pkg::ListLines[15:0];
  end
endmodule

`default_nettype wire
