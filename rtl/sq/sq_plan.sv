`default_nettype none

/// Judges the WQE that is next and plans its next packet. Combinational.
///
/// step_aside_o: nothing is sent now; then bad_o says that the WQE is malformed (bad_status_o), or
/// stalled_o that it waits for what retires. Otherwise it is a memory operation (is_memory_o), or
/// the packet of desc_o, and ctx_o is the context behind it but for the place in the scatter list;
/// last_o: it ends its message. event_o: why a WQE steps aside.
module sq_plan (
    input  wire logic [7:0]             qp_i,
    input  wire rnic_pkg::send_ctx_t    ctx_i,
    input  wire rnic_pkg::wqe_control_t control_i,
    // What follows wqe_control
    input  wire logic [383:0]           header_i,
    input  wire logic [2:0]             header_segments_i,
    input  wire logic [36:0]            sum_i,
    output logic                        step_aside_o,
    output logic                        bad_o,
    output logic [7:0]                  bad_status_o,
    output logic                        stalled_o,
    output logic                        is_read_o,
    output logic                        is_memory_o,
    output logic                        last_o,
    output rnic_pkg::tx_desc_t          desc_o,
    output rnic_pkg::inflight_t         inflight_o,
    output rnic_pkg::read_slot_t        read_slot_o,
    output rnic_pkg::send_ctx_t         ctx_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  logic bad, judged, psn_room, probe;
  logic window_stall, fence_stall, read_stall, credit_stall;
  rnic_pkg::tx_desc_t packet;
  rnic_pkg::send_ctx_t packet_ctx;
  rnic_pkg::wqe_fast_register_t fast;
  rnic_pkg::wqe_address_t address;
  logic unused_bits;
  assign fast        = header_i[255:128];
  assign address     = header_i;
  assign unused_bits = ^{fast, address};
  sq_wqe_check u_check (
      .control_i,
      .ctx_i,
      .sum_i,
      .header_segments_i,
      .page_count_i(fast.page_count),
      .vlan_i      (address.vlan),
      .vlan_id_i   (address.vlan_id),
      .bad_o       (bad),
      .bad_status_o
  );
  sq_packet u_packet (
      .qp_i,
      .ctx_i,
      .control_i,
      .header_i,
      .is_read_o,
      .is_memory_o,
      .last_o,
      .psn_room_o (psn_room),
      .desc_o     (packet),
      .inflight_o,
      .read_slot_o,
      .ctx_o      (packet_ctx)
  );
  sq_gate u_gate (
      .ctx_i,
      .control_i,
      .bad_i         (bad),
      .psn_room_i    (psn_room),
      .judged_o      (judged),
      .step_aside_o,
      .stalled_o,
      .probe_o       (probe),
      .window_stall_o(window_stall),
      .fence_stall_o (fence_stall),
      .read_stall_o  (read_stall),
      .credit_stall_o(credit_stall)
  );
  assign bad_o = judged && bad;
  always_comb begin
    desc_o         = packet;
    desc_o.ack_req = packet.ack_req || probe;
    ctx_o          = packet_ctx;
    ctx_o.asked    = desc_o.ack_req;
  end
  always_comb begin
    event_o = '0;
    event_o[rnic_pkg::CounterWqeErrors]       = bad_o;
    event_o[rnic_pkg::CounterWindowStalls]    = window_stall;
    event_o[rnic_pkg::CounterFenceStalls]     = fence_stall;
    event_o[rnic_pkg::CounterReadLimitStalls] = read_stall;
    event_o[rnic_pkg::CounterCreditStalls]    = credit_stall;
  end
endmodule

`default_nettype wire
