`default_nettype none
`include "assert.svh"

/// Register page (BAR0 page 0): identity, control, admin queue set-up, port; the way to the MSI-X
/// table and the counters.
///
/// One access at a time. A write takes effect in the cycle in which it is accepted, byte by byte;
/// unknown offsets read zero and ignore writes. A read is answered after 2 cycles, a counter after
/// at most 6 (its bank takes turns). The admin queue's indexes belong to admin_queue; writing
/// AdminConfig clears the producer index here and pulses admin_restart_o.
module bar_regs (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        ready_i,
    input  wire logic        fatal_i,
    input  wire logic        link_up_i,
    input  wire logic        quiet_i,
    input  wire logic        reg_req_valid_i,
    output logic             reg_req_ready_o,
    input  wire rnic_pkg::reg_req_t reg_req_data_i,
    output logic             reg_rsp_valid_o,
    output logic [63:0]      reg_rsp_data_o,
    output logic             device_enable_o,
    output logic [29:0]      completion_timeout_o,
    output logic [47:0]      port_mac_o,
    output rnic_pkg::ethernet_t ethernet_o,
    input  wire logic [63:0] time_i,
    output logic [63:0]      cycles_o,
    // Admin queue
    output logic [63:0]      command_base_o,
    output logic [63:0]      completion_base_o,
    output rnic_pkg::reg_admin_config_t admin_config_o,
    output logic             admin_restart_o,
    output logic [15:0]      producer_index_o,
    // MSI-X table, data one cycle after rd_en
    output logic             table_wr_en_o,
    output logic             table_rd_en_o,
    output logic [5:0]       table_index_o,
    output logic [63:0]      table_wr_data_o,
    output logic [7:0]       table_be_o,
    input  wire logic [63:0] table_rd_data_i,
    input  wire logic [rnic_pkg::MsixVectors-1:0] pending_i,
    // Counters: held until done
    output logic             counter_valid_o,
    output logic [6:0]       counter_index_o,
    input  wire logic        counter_done_i,
    input  wire logic [63:0] counter_data_i
);
  // Idle: takes an access. Read: the address is known, the table has its word. Answer:
  // reg_rsp_valid_o.
  typedef enum logic [1:0] {
    Idle,
    Read,
    Answer
  } state_e;
  state_e state_q, state_d;

  logic accept, write;
  logic [63:0] bits;
  logic [11:0] addr, addr_q;
  logic is_table, read_table, read_counter;
  logic [63:0] answer_d, answer_q;

  logic enable_q, irq_enable_q, range_known;
  logic [3:0] range_q;
  logic [29:0] unused_timeout;
  logic unused_known;
  logic [63:0] reset_time_q, command_base_q, completion_base_q;
  logic [47:0] mac_q;
  logic [26:0] ethernet_q;
  logic [63:0] groups_q;
  logic [3:0] log_depth_q;
  logic [7:0] irq_vector_q;
  logic [15:0] producer_q;
  rnic_pkg::reg_admin_config_t config_value;
  rnic_pkg::reg_identity_t identity;

  assign reg_req_ready_o = state_q == Idle;
  assign accept          = reg_req_valid_i && reg_req_ready_o;
  assign addr            = reg_req_data_i.addr;
  assign write           = accept && reg_req_data_i.write;
  assign is_table        = addr[11:9] == rnic_pkg::RegMsixTable[11:9];
  assign read_table      = addr_q[11:9] == rnic_pkg::RegMsixTable[11:9];
  assign read_counter    = addr_q[11:10] == rnic_pkg::RegCounterBase[11:10];

  always_comb begin
    for (int unsigned b = 0; b < 8; b++) bits[8*b+:8] = {8{reg_req_data_i.be[b]}};
  end

  // ---- Writes ---------------------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    admin_restart_o <= write && addr == rnic_pkg::RegAdminConfig && reg_req_data_i.be != '0;
    if (write) begin
      // Kept bits come from the register, the others from the bus.
      unique case (addr)
        rnic_pkg::RegDeviceControl: if (bits[0]) enable_q <= reg_req_data_i.data[0];
        rnic_pkg::RegCompletionTimeout:
        if (bits[0] && range_known) range_q <= reg_req_data_i.data[3:0];
        rnic_pkg::RegAdminCommandBase:
        command_base_q <= (command_base_q & ~bits) | (reg_req_data_i.data & bits);
        rnic_pkg::RegAdminCompletionBase:
        completion_base_q <= (completion_base_q & ~bits) | (reg_req_data_i.data & bits);
        rnic_pkg::RegAdminConfig: begin
          if (bits[0]) {irq_vector_q[3:0], log_depth_q} <= reg_req_data_i.data[7:0];
          if (bits[8]) {irq_enable_q, irq_vector_q[7:4]} <= reg_req_data_i.data[12:8];
          if (reg_req_data_i.be != '0) producer_q <= '0;
        end
        rnic_pkg::RegAdminDoorbell:
        producer_q <= (producer_q & ~bits[15:0]) | (reg_req_data_i.data[15:0] & bits[15:0]);
        rnic_pkg::RegPortMac:
        mac_q <= (mac_q & ~bits[47:0]) | (reg_req_data_i.data[47:0] & bits[47:0]);
        rnic_pkg::RegPortEthernet:
        ethernet_q <= (ethernet_q & ~bits[26:0]) | (reg_req_data_i.data[26:0] & bits[26:0]);
        rnic_pkg::RegPortGroups: groups_q <= (groups_q & ~bits) | (reg_req_data_i.data & bits);
        default: ;
      endcase
    end
    if (!rst_ni) begin
      reset_time_q      <= time_i + 64'd1;
      enable_q          <= 1'b0;
      range_q           <= rnic_pkg::CompletionTimeoutRangeDefault;
      command_base_q    <= '0;
      completion_base_q <= '0;
      log_depth_q       <= '0;
      irq_vector_q      <= '0;
      irq_enable_q      <= 1'b0;
      producer_q        <= '0;
      mac_q             <= '0;
      ethernet_q        <= '0;
      groups_q          <= '0;
      admin_restart_o   <= 1'b0;
    end
  end

  completion_timeout u_timeout (
      .range_i (range_q),
      .known_o (unused_known),
      .cycles_o(completion_timeout_o)
  );
  completion_timeout u_new_timeout (
      .range_i (reg_req_data_i.data[3:0]),
      .known_o (range_known),
      .cycles_o(unused_timeout)
  );

  assign table_wr_en_o     = write && is_table;
  assign table_rd_en_o     = accept && !reg_req_data_i.write && is_table;
  assign table_index_o     = addr[8:3];
  assign table_wr_data_o   = reg_req_data_i.data;
  assign table_be_o        = reg_req_data_i.be;
  assign device_enable_o   = enable_q;
  assign port_mac_o        = mac_q;
  assign ethernet_o        = {groups_q, ethernet_q};
  assign cycles_o          = time_i - reset_time_q;
  assign command_base_o    = command_base_q;
  assign completion_base_o = completion_base_q;
  assign producer_index_o  = producer_q;
  assign admin_config_o    = config_value;
  always_comb begin
    config_value                  = '0;
    config_value.log_depth        = log_depth_q;
    config_value.interrupt_vector = irq_vector_q;
    config_value.interrupt_enable = irq_enable_q;
    identity                      = '0;
    identity.magic                = rnic_pkg::DeviceMagic;
    identity.vendor_id            = rnic_pkg::PciVendorId[15:0];
    identity.device_id            = rnic_pkg::PciDeviceId[15:0];
  end

  // ---- Reads ----------------------------------------------------------------------------------
  // Block headers are {next offset, version, type}.
  localparam logic [15:0] Version = rnic_pkg::BlockVersion[15:0];

  always_comb begin
    answer_d = '0;
    unique case (addr_q)
      rnic_pkg::RegIdentityHeader:
      answer_d = {20'd0, rnic_pkg::RegAdminHeader, Version, rnic_pkg::BlockTypeIdentity[15:0]};
      rnic_pkg::RegIdentity: answer_d = identity;
      rnic_pkg::RegDeviceControl: answer_d = {63'd0, enable_q};
      rnic_pkg::RegDeviceStatus: answer_d = {61'd0, quiet_i, fatal_i, ready_i};
      rnic_pkg::RegCompletionTimeout: answer_d = {60'd0, range_q};
      rnic_pkg::RegCycleCounter: answer_d = cycles_o;
      rnic_pkg::RegAdminHeader:
      answer_d = {20'd0, rnic_pkg::RegPortHeader, Version, rnic_pkg::BlockTypeAdmin[15:0]};
      rnic_pkg::RegAdminCommandBase: answer_d = command_base_q;
      rnic_pkg::RegAdminCompletionBase: answer_d = completion_base_q;
      rnic_pkg::RegAdminConfig: answer_d = config_value;
      rnic_pkg::RegAdminDoorbell: answer_d = {48'd0, producer_q};
      rnic_pkg::RegPortHeader:
      answer_d = {20'd0, rnic_pkg::RegMsixHeader, Version, rnic_pkg::BlockTypePort[15:0]};
      rnic_pkg::RegPortMac: answer_d = {16'd0, mac_q};
      rnic_pkg::RegPortEthernet: answer_d = {37'd0, ethernet_q};
      rnic_pkg::RegPortGroups: answer_d = groups_q;
      rnic_pkg::RegPortStatus: answer_d = {63'd0, link_up_i};
      rnic_pkg::RegMsixHeader:
      answer_d = {20'd0, rnic_pkg::RegCountersHeader, Version, rnic_pkg::BlockTypeMsix[15:0]};
      rnic_pkg::RegCountersHeader:
      answer_d = {32'd0, Version, rnic_pkg::BlockTypeCounters[15:0]};
      rnic_pkg::RegMsixPending: answer_d = {32'd0, pending_i};
      default: begin
        if (read_table) answer_d = table_rd_data_i;
        if (read_counter && counter_done_i) answer_d = counter_data_i;
      end
    endcase
  end

  // The names stop before the page does: what lies between counter NumCounters and the end of its
  // block reads zero.
  assign counter_valid_o = state_q == Read && read_counter &&
      {1'b0, addr_q[9:3]} < 8'(rnic_pkg::NumCounters);
  assign counter_index_o = addr_q[9:3];

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Idle:    if (accept && !reg_req_data_i.write) state_d = Read;
      Read:    if (!counter_valid_o || counter_done_i) state_d = Answer;
      Answer:  state_d = Idle;
      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (accept) addr_q <= {addr[11:3], 3'b000};
    if (state_q == Read) answer_q <= answer_d;
    if (!rst_ni) state_q <= Idle;
  end

  assign reg_rsp_valid_o = state_q == Answer;
  assign reg_rsp_data_o  = answer_q;

  `ASSERT(CounterAnswersRead, !counter_done_i || counter_valid_o)
endmodule

`default_nettype wire
