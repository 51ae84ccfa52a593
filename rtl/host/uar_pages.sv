`default_nettype none
`include "assert.svh"

/// UAR pages: sends each doorbell to its owner, and the writes to a WQE window to wqe_window.
///
/// What is written elsewhere in a page is dropped, and all of it while the device is not enabled,
/// what waits for its owner then too. A doorbell is offered one cycle after it was accepted.
/// Requests are taken in order: one that its owner does not take holds up those behind it.
module uar_pages (
    input  wire logic                 clk_i,
    input  wire logic                 rst_ni,
    input  wire logic                 enable_i,
    input  wire logic                 uar_req_valid_i,
    output logic                      uar_req_ready_o,
    input  wire rnic_pkg::uar_req_t   uar_req_data_i,
    // Doorbells, in the order of their registers: send, receive, CQ, EQ, SRQ
    output logic [4:0]                doorbell_valid_o,
    input  wire logic [4:0]           doorbell_ready_i,
    output logic [5*rnic_pkg::DoorbellBits-1:0] doorbell_data_o,
    output logic                      push_valid_o,
    input  wire logic                 push_ready_i,
    output rnic_pkg::wqe_push_t       push_data_o
);
  logic [11:0] addr;
  logic [63:0] word;
  logic [4:0] hit, ready;
  logic to_window, window_ready;
  rnic_pkg::doorbell_t doorbell;

  assign addr      = uar_req_data_i.addr;
  assign word      = uar_req_data_i.data[64*addr[5:3]+:64];
  assign to_window = enable_i && addr[11:8] == rnic_pkg::UarWqeWindow[11:8];

  always_comb begin
    hit = '0;
    if (enable_i && uar_req_data_i.log_words == '0) begin
      unique case (addr)
        rnic_pkg::UarSendDoorbell:    hit[0] = 1'b1;
        rnic_pkg::UarReceiveDoorbell: hit[1] = 1'b1;
        rnic_pkg::UarCqDoorbell:      hit[2] = 1'b1;
        rnic_pkg::UarEqDoorbell:      hit[3] = 1'b1;
        rnic_pkg::UarSrqDoorbell:     hit[4] = 1'b1;
        default: ;
      endcase
    end
    uar_req_ready_o = (hit & ~ready) == '0 && (!to_window || window_ready);
  end
  assign doorbell.uar   = uar_req_data_i.uar;
  assign doorbell.value = word;

  // A request is shown to its owner in the cycle in which it is taken, so that it can be dropped
  // as long as it waits.
  for (genvar g = 0; g < 5; g++) begin : gen_doorbell
    skid_buffer #(
        .Width(rnic_pkg::DoorbellBits)
    ) u_out (
        .clk_i,
        .rst_ni,
        .in_valid_i (uar_req_valid_i && hit[g] && ready[g]),
        .in_ready_o (ready[g]),
        .in_data_i  (doorbell),
        .out_valid_o(doorbell_valid_o[g]),
        .out_ready_i(doorbell_ready_i[g]),
        .out_data_o (doorbell_data_o[g*rnic_pkg::DoorbellBits+:rnic_pkg::DoorbellBits])
    );
  end

  wqe_window u_window (
      .clk_i,
      .rst_ni,
      .in_valid_i(uar_req_valid_i && to_window && window_ready),
      .in_ready_o(window_ready),
      .in_uar_i  (uar_req_data_i.uar),
      .in_addr_i (addr[7:3]),
      .in_log_words_i(uar_req_data_i.log_words),
      .in_data_i (uar_req_data_i.data),
      .push_valid_o,
      .push_ready_i,
      .push_data_o
  );

  `ASSERT_HOLD(RequestHold, uar_req_valid_i, uar_req_ready_o, uar_req_data_i)

  `COVER_EACH(DoorbellWaits, 5, uar_req_valid_i && hit[a] && !ready[a])
  `COVER(WindowWaits, uar_req_valid_i && to_window && !window_ready)
endmodule

`default_nettype wire
