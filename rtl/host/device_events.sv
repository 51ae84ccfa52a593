`default_nettype none
`include "assert.svh"

/// Events of the device and of its port, to EQ 0: the admin queue has stopped (DeviceFatal), the
/// link came up or went down (PortActive, PortError).
///
/// The host is told of every change of the link since it enabled the device, in order; of one that
/// is undone before the event before it has been taken, and of what happens while the device is
/// disabled, it is told nothing: PortStatus and DeviceStatus say what is.
module device_events (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    input  wire logic               enable_i,
    input  wire logic               fatal_i,
    input  wire logic               link_up_i,
    output logic                    eqe_valid_o,
    input  wire logic               eqe_ready_i,
    output rnic_pkg::eqe_req_t      eqe_data_o
);
  // What the host has been told.
  logic told_fatal_q, told_link_q, valid_q, taken;
  logic [7:0] type_q;

  assign eqe_valid_o = valid_q;
  assign taken       = valid_q && eqe_ready_i;
  always_comb begin
    eqe_data_o            = '0;
    eqe_data_o.event_type = type_q;
    if (type_q != rnic_pkg::EqeTypeDeviceFatal) eqe_data_o.number = 24'd1;
  end

  always_ff @(posedge clk_i) begin
    if (!enable_i) begin
      told_fatal_q <= fatal_i;
      told_link_q  <= link_up_i;
    end else if (!valid_q) begin
      if (fatal_i && !told_fatal_q) begin
        valid_q      <= 1'b1;
        type_q       <= rnic_pkg::EqeTypeDeviceFatal;
        told_fatal_q <= 1'b1;
      end else if (link_up_i != told_link_q) begin
        valid_q     <= 1'b1;
        type_q      <= link_up_i ? rnic_pkg::EqeTypePortActive : rnic_pkg::EqeTypePortError;
        told_link_q <= link_up_i;
      end
    end
    if (taken) valid_q <= 1'b0;
    if (!rst_ni) begin
      valid_q      <= 1'b0;
      type_q       <= '0;
      told_fatal_q <= 1'b0;
      told_link_q  <= 1'b0;
    end
  end

  `ASSERT_HOLD(EqeHold, eqe_valid_o, eqe_ready_i, eqe_data_o)
endmodule

`default_nettype wire
