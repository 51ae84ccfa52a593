`default_nettype none

/// The register page with what stands behind it: the counters of events, and MSI-X with its table.
///
/// Register accesses and what they set: as of bar_regs. A device is ready (ready_i) when
/// everything that clears a memory after reset says so; counters_ready_o is this block's own.
/// fatal_i: the admin queue has stopped.
///
/// msix, irq: a vector is to be signalled, of an EQ, or of the admin queue; it is sent as a DMA
/// write (msix_wr), or pending while it is masked. sent_o: a message has been handed over, a
/// pulse.
module host_regs (
    input  wire logic                             clk_i,
    input  wire logic                             rst_ni,
    input  wire logic                             clk_open_i,
    input  wire logic                             moved_i,
    output logic                                  awake_o,
    input  wire logic                             ready_i,
    input  wire logic                             fatal_i,
    input  wire logic                             link_up_i,
    input  wire logic                             quiet_i,
    input  wire logic                             reg_req_valid_i,
    output logic                                  reg_req_ready_o,
    input  wire rnic_pkg::reg_req_t               reg_req_data_i,
    output logic                                  reg_rsp_valid_o,
    output logic [63:0]                           reg_rsp_data_o,
    output logic                                  device_enable_o,
    output logic [29:0]                           completion_timeout_o,
    output logic [47:0]                           port_mac_o,
    output rnic_pkg::ethernet_t                   ethernet_o,
    input  wire logic [63:0]                      time_i,
    output logic [63:0]                           cycles_o,
    output logic [63:0]                           command_base_o,
    output logic [63:0]                           completion_base_o,
    output rnic_pkg::reg_admin_config_t           admin_config_o,
    output logic                                  restart_o,
    output logic [15:0]                           producer_index_o,
    output logic                                  counters_ready_o,
    input  wire logic [rnic_pkg::NumCounters-1:0] event_i,
    input  wire logic                             cfg_msix_enable_i,
    input  wire logic                             cfg_msix_mask_i,
    input  wire logic                             msix_valid_i,
    output logic                                  msix_ready_o,
    input  wire logic                             irq_valid_i,
    output logic                                  irq_ready_o,
    input  wire logic [7:0]                       msix_vector_i,
    input  wire logic [7:0]                       irq_vector_i,
    output logic                                  msix_wr_valid_o,
    input  wire logic                             msix_wr_ready_i,
    output rnic_pkg::dma_wr_t                     msix_wr_data_o,
    output logic                                  sent_o
);
  logic table_wr_en, table_rd_en, counter_valid, counter_done;
  logic [5:0] table_index;
  logic [63:0] table_wr_data, table_rd_data, counter_data;
  logic [7:0] table_be;
  logic [rnic_pkg::MsixVectors-1:0] pending;
  logic [6:0] counter_index;

  logic regs_awake, counters_awake, msix_awake, counters_busy;
  assign awake_o = regs_awake || counters_awake || msix_awake;
  logic regs_clk;
  room_clock u_regs_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(regs_clk), .awake_o(regs_awake),
      .stir_i(|{reg_req_valid_i, reg_rsp_valid_o, counter_valid, counter_done, moved_i})
  );

  logic counters_clk;
  room_clock u_counters_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(counters_clk), .awake_o(counters_awake),
      .stir_i(|{counters_busy, event_i, counter_valid})
  );

  logic msix_clk;
  room_clock u_msix_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(msix_clk), .awake_o(msix_awake),
      .stir_i(|{table_wr_en, table_rd_en, msix_valid_i, irq_valid_i, msix_wr_valid_o, sent_o,
          moved_i})
  );

  bar_regs u_bar_regs (
      .clk_i(regs_clk),
      .rst_ni,
      .ready_i,
      .fatal_i,
      .link_up_i,
      .quiet_i,
      .reg_req_valid_i,
      .reg_req_ready_o,
      .reg_req_data_i,
      .reg_rsp_valid_o,
      .reg_rsp_data_o,
      .device_enable_o,
      .completion_timeout_o,
      .port_mac_o,
      .ethernet_o,
      .time_i,
      .cycles_o,
      .command_base_o,
      .completion_base_o(completion_base_o),
      .admin_config_o,
      .admin_restart_o  (restart_o),
      .producer_index_o,
      .table_wr_en_o    (table_wr_en),
      .table_rd_en_o    (table_rd_en),
      .table_index_o    (table_index),
      .table_wr_data_o  (table_wr_data),
      .table_be_o       (table_be),
      .table_rd_data_i  (table_rd_data),
      .pending_i        (pending),
      .counter_valid_o  (counter_valid),
      .counter_index_o  (counter_index),
      .counter_done_i   (counter_done),
      .counter_data_i   (counter_data)
  );

  counter_bank u_counter_bank (
      .clk_i(counters_clk),
      .rst_ni,
      .ready_o   (counters_ready_o),
      .busy_o    (counters_busy),
      .event_i,
      .rd_valid_i(counter_valid),
      .rd_index_i(counter_index),
      .rd_done_o (counter_done),
      .rd_count_o(counter_data)
  );

  msix u_msix (
      .clk_i(msix_clk),
      .rst_ni,
      .cfg_enable_i   (cfg_msix_enable_i),
      .cfg_mask_i     (cfg_msix_mask_i),
      .table_wr_en_i  (table_wr_en),
      .table_rd_en_i  (table_rd_en),
      .table_index_i  (table_index),
      .table_wr_data_i(table_wr_data),
      .table_be_i     (table_be),
      .table_rd_data_o(table_rd_data),
      .pending_o      (pending),
      .req_valid_i    ({msix_valid_i, irq_valid_i}),
      .req_ready_o    ({msix_ready_o, irq_ready_o}),
      .req_vector_i   ({msix_vector_i, irq_vector_i}),
      .wr_valid_o     (msix_wr_valid_o),
      .wr_ready_i     (msix_wr_ready_i),
      .wr_data_o      (msix_wr_data_o),
      .sent_o         (sent_o)
  );
endmodule

`default_nettype wire
