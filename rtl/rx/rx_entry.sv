`default_nettype none

/// What the wire brings, as one stream of packets: RoCEv2 packets (rx_front), datagrams to groups
/// as a copy for each member (rx_multicast), and in turn with them the frames that are not RoCEv2,
/// for the RawPacket QP (rx_ethernet, rx_merge).
///
/// copied_o, and the counters in event_o: pulses. groups_o: queue pairs are attached to groups.
/// op_*: as of rx_multicast. busy_o: work that the ports do not show.
module rx_entry (
    input  wire logic                            clk_i,
    input  wire logic                            rst_ni,
    output logic                                 busy_o,
    input  wire logic [47:0]                     port_mac_i,
    input  wire rnic_pkg::ethernet_t             ethernet_i,
    input  wire logic                            enable_i,
    input  wire logic                            eth_rx_valid_i,
    input  wire rnic_pkg::frame_beat_t           eth_rx_data_i,
    input  wire logic                            op_valid_i,
    input  wire rnic_pkg::multicast_op_t         op_i,
    output logic                                 op_done_o,
    output logic [1:0]                           op_status_o,
    output logic                                 groups_o,
    output logic                                 desc_valid_o,
    input  wire logic                            desc_ready_i,
    output rnic_pkg::rx_desc_t                   desc_data_o,
    output logic                                 payload_valid_o,
    input  wire logic                            payload_ready_i,
    output rnic_pkg::payload_beat_t              payload_data_o,
    output logic [rnic_pkg::NumCounters-1:0]     event_o
);
  logic front_desc_valid, front_desc_ready, front_payload_valid, front_payload_ready, other_valid,
      other, copied, copy_busy, raw_busy, raw_taken, raw_lost, merge_busy;
  logic [1:0] desc_valid, desc_ready, payload_valid, payload_ready;
  rnic_pkg::rx_desc_t front_desc, copy_desc, raw_desc;
  rnic_pkg::payload_beat_t front_payload, copy_payload, raw_payload;
  logic [rnic_pkg::NumCounters-1:0] ev_front;

  rx_front u_rx_front (
      .clk_i,
      .rst_ni,
      .port_mac_i,
      .enable_i,
      .eth_rx_valid_i,
      .eth_rx_data_i,
      .desc_valid_o   (front_desc_valid),
      .desc_ready_i   (front_desc_ready),
      .desc_data_o    (front_desc),
      .payload_valid_o(front_payload_valid),
      .payload_ready_i(front_payload_ready),
      .payload_data_o (front_payload),
      .other_valid_o  (other_valid),
      .other_o        (other),
      .event_o        (ev_front)
  );

  rx_multicast u_rx_multicast (
      .clk_i,
      .rst_ni,
      .busy_o         (copy_busy),
      .copied_o       (copied),
      .op_valid_i,
      .op_i,
      .op_done_o,
      .op_status_o,
      .any_o          (groups_o),
      .desc_valid_i   (front_desc_valid),
      .desc_ready_o   (front_desc_ready),
      .desc_data_i    (front_desc),
      .payload_valid_i(front_payload_valid),
      .payload_ready_o(front_payload_ready),
      .payload_data_i (front_payload),
      .desc_valid_o   (desc_valid[0]),
      .desc_ready_i   (desc_ready[0]),
      .desc_data_o    (copy_desc),
      .payload_valid_o(payload_valid[0]),
      .payload_ready_i(payload_ready[0]),
      .payload_data_o (copy_payload)
  );

  rx_ethernet u_rx_ethernet (
      .clk_i,
      .rst_ni,
      .port_mac_i,
      .ethernet_i,
      .enable_i,
      .eth_rx_valid_i,
      .eth_rx_data_i,
      .other_valid_i  (other_valid),
      .other_i        (other),
      .desc_valid_o   (desc_valid[1]),
      .desc_ready_i   (desc_ready[1]),
      .desc_data_o    (raw_desc),
      .payload_valid_o(payload_valid[1]),
      .payload_ready_i(payload_ready[1]),
      .payload_data_o (raw_payload),
      .busy_o         (raw_busy),
      .taken_o        (raw_taken),
      .lost_o         (raw_lost)
  );

  rx_merge u_rx_merge (
      .clk_i,
      .rst_ni,
      .busy_o         (merge_busy),
      .desc_valid_i   (desc_valid),
      .desc_ready_o   (desc_ready),
      .desc_data_i    ({raw_desc, copy_desc}),
      .payload_valid_i(payload_valid),
      .payload_ready_o(payload_ready),
      .payload_data_i ({raw_payload, copy_payload}),
      .desc_valid_o,
      .desc_ready_i,
      .desc_data_o,
      .payload_valid_o,
      .payload_ready_i,
      .payload_data_o
  );

  // What rx_front holds shows in what it offers, and in the frames that come.
  assign busy_o = copy_busy || raw_busy || merge_busy || front_desc_valid || front_payload_valid;

  always_comb begin : events
    event_o                                  = ev_front;
    event_o[rnic_pkg::CounterMulticastCopies] = copied;
    event_o[rnic_pkg::CounterRxEthernet]      = raw_taken;
    event_o[rnic_pkg::CounterRxEthernetLost]  = raw_lost;
  end
endmodule

`default_nettype wire
