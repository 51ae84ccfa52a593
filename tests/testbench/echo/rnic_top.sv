`default_nettype none

/// Stand-in for the NIC in the test of its wrapper: the same ports, simple registers behind them.
///   0x00 scratch
///   0x08 DMA read address, 0x10 DMA write address (equal modulo 4096)
///   0x18 start: dwords in 10:0, byte enables in 23:16 (first, last), tag in 41:32: reads, then
///        writes the data to 0x10
///   0x20 start: sends a frame of this many bytes, each byte its index
///   0x28 {bytes, frames} received
///   0x30 limits of the configuration
///   0x38 status of the last completion
///   0x40 start: writes these 4 bytes to 0xFEE0_0000
///   0x48 start: an assertion fails
/// state_q: 0 nothing to do, 1 waits for the completion of its read.
module rnic_top (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic                    clk_open_i,
    input  wire logic [63:0]             time_i,
    output logic                         quiet_o,
    output logic                         quiet_timed_o,
    output logic [63:0]                  quiet_until_o,
    input  wire logic [2:0]              cfg_max_payload_i,
    input  wire logic [2:0]              cfg_max_read_req_i,
    input  wire logic                    cfg_bus_master_i,
    input  wire logic                    cfg_ext_tag_i,
    input  wire logic                    cfg_cpl_timeout_disable_i,
    input  wire logic                    dma_req_np_hold_i,
    input  wire logic                    cfg_msix_enable_i,
    input  wire logic                    cfg_msix_mask_i,
    output logic                         transactions_pending_o,
    input  wire logic                    host_req_valid_i,
    output logic                         host_req_ready_o,
    input  wire rnic_pkg::host_req_hdr_t host_req_hdr_i,
    input  wire logic [511:0]            host_req_data_i,
    input  wire logic                    host_req_last_i,
    output logic                         host_cpl_valid_o,
    input  wire logic                    host_cpl_ready_i,
    output rnic_pkg::host_cpl_hdr_t      host_cpl_hdr_o,
    output logic [511:0]                 host_cpl_data_o,
    output logic                         host_cpl_last_o,
    output logic                         dma_req_valid_o,
    input  wire logic                    dma_req_ready_i,
    output rnic_pkg::dma_req_hdr_t       dma_req_hdr_o,
    output logic [511:0]                 dma_req_data_o,
    output logic                         dma_req_last_o,
    input  wire logic                    dma_cpl_valid_i,
    output logic                         dma_cpl_ready_o,
    input  wire rnic_pkg::dma_cpl_hdr_t  dma_cpl_hdr_i,
    input  wire logic [511:0]            dma_cpl_data_i,
    input  wire logic                    dma_cpl_last_i,
    output logic                         eth_tx_valid_o,
    input  wire logic                    eth_tx_ready_i,
    output rnic_pkg::frame_beat_t        eth_tx_data_o,
    input  wire logic                    eth_rx_valid_i,
    input  wire rnic_pkg::frame_beat_t   eth_rx_data_i,
    input  wire logic                    eth_link_up_i
);
  logic [63:0] scratch_q, source_q, target_q, command_q, message_q;
  logic [31:0] frames_q, bytes_q;
  logic [2:0] status_q;
  logic read_q, write_q, signal_q, fail_q, state_q;
  logic [7:0] line_mem[4096];
  logic [12:0] beat_q;  // Offset of the present line in the page
  logic [15:0] tx_left_q, tx_done_q;

  assign host_cpl_last_o        = 1'b1;
  assign transactions_pending_o = 1'b0;
  assign {quiet_o, quiet_timed_o, quiet_until_o} = '0;

  // ---- Registers ----
  logic [2:0] toggle_q;  // Makes ready come and go
  logic [5:0] lane;
  logic [63:0] word, answer;
  assign lane = host_req_hdr_i.addr[5:0];
  assign word = host_req_data_i[{lane, 3'b0}+:64];
  assign host_req_ready_o = toggle_q[0] && !host_cpl_valid_o;
  always_comb begin : comb_answer
    case (host_req_hdr_i.addr[7:0])
      8'h00: answer = scratch_q;
      8'h28: answer = {bytes_q, frames_q};
      8'h30: answer = {52'b0, dma_req_np_hold_i, cfg_cpl_timeout_disable_i, cfg_ext_tag_i,
                      cfg_msix_mask_i, cfg_msix_enable_i, cfg_bus_master_i, cfg_max_read_req_i,
                      cfg_max_payload_i};
      8'h38: answer = {61'b0, status_q};
      default: answer = '0;
    endcase
  end

  // ---- DMA ----
  logic [12:0] dma_offset, dma_end;
  logic [12:0] cpl_bytes;
  assign cpl_bytes = {dma_cpl_hdr_i.length_dw, 2'b0} - {11'b0, dma_cpl_hdr_i.lower_addr[1:0]};
  assign dma_offset = {1'b0, target_q[11:0]};
  assign dma_end = dma_offset + {command_q[10:0], 2'b0};
  assign dma_cpl_ready_o = toggle_q[1];
  always_comb begin : comb_dma
    dma_req_valid_o = read_q || write_q || signal_q;
    dma_req_hdr_o = '0;
    dma_req_hdr_o.tlp_type = read_q ? rnic_pkg::TlpTypeMemRead : rnic_pkg::TlpTypeMemWrite;
    dma_req_hdr_o.addr = read_q ? source_q : write_q ? target_q : 64'hFEE0_0000;
    dma_req_hdr_o.length_dw = read_q || write_q ? command_q[10:0] : 11'd1;
    dma_req_hdr_o.first_be = read_q || write_q ? command_q[19:16] : 4'hF;
    dma_req_hdr_o.last_be = read_q || write_q ? command_q[23:20] : 4'h0;
    dma_req_hdr_o.tag = command_q[41:32];
    for (int i = 0; i < 64; i++) dma_req_data_o[8*i+:8] = line_mem[beat_q[11:0] + i[11:0]];
    if (!read_q && !write_q) dma_req_data_o[31:0] = message_q[31:0];
    dma_req_last_o = !write_q || beat_q + 13'd64 >= dma_end;
  end

  // ---- Ethernet ----
  always_comb begin : comb_tx
    eth_tx_valid_o = tx_left_q != 0;
    eth_tx_data_o = '0;
    for (int i = 0; i < 64; i++) eth_tx_data_o.data[8*i+:8] = tx_done_q[7:0] + i[7:0];
    eth_tx_data_o.bytes = tx_left_q > 16'd64 ? 7'd64 : tx_left_q[6:0];
    eth_tx_data_o.last = tx_left_q <= 16'd64;
  end

  always_ff @(posedge clk_i) begin
    toggle_q <= toggle_q + 3'd1;
    if (host_cpl_valid_o && host_cpl_ready_i) host_cpl_valid_o <= 1'b0;
    if (host_req_valid_i && host_req_ready_o && host_req_last_i) begin
      if (host_req_hdr_i.tlp_type == rnic_pkg::TlpTypeMemWrite) begin
        case (host_req_hdr_i.addr[7:0])
          8'h00: scratch_q <= word;
          8'h08: source_q <= word;
          8'h10: target_q <= word;
          8'h18: begin
            command_q <= word;
            read_q <= 1'b1;
            beat_q <= {1'b0, source_q[11:6], 6'b0};
          end
          8'h20: tx_left_q <= word[15:0];
          8'h40: begin
            message_q <= word;
            signal_q <= 1'b1;
          end
          8'h48: fail_q <= 1'b1;
          default: ;
        endcase
      end else begin
        host_cpl_valid_o <= 1'b1;
        host_cpl_hdr_o <= '0;
        host_cpl_hdr_o.tag <= host_req_hdr_i.tag;
        host_cpl_hdr_o.requester <= host_req_hdr_i.requester;
        host_cpl_hdr_o.tc <= host_req_hdr_i.tc;
        host_cpl_hdr_o.attr <= host_req_hdr_i.attr;
        if (host_req_hdr_i.addr[11:0] < 12'h80) begin
          host_cpl_hdr_o.byte_count <= 13'd8;
          host_cpl_hdr_o.lower_addr <= host_req_hdr_i.addr[6:0];
          host_cpl_hdr_o.length_dw <= 11'd2;
          host_cpl_data_o <= {448'b0, answer} << {lane, 3'b0};
        end else begin
          host_cpl_hdr_o.status <= rnic_pkg::CplStatusUnsupportedRequest;
        end
      end
    end
    if (dma_req_valid_o && dma_req_ready_i) begin
      if (read_q) begin
        read_q  <= 1'b0;
        state_q <= 1'b1;
      end else if (write_q) begin
        beat_q <= beat_q + 13'd64;
        if (dma_req_last_o) write_q <= 1'b0;
      end else signal_q <= 1'b0;
    end
    if (dma_cpl_valid_i && dma_cpl_ready_o) begin
      status_q <= dma_cpl_hdr_i.status;
      for (int i = 0; i < 64; i++) line_mem[beat_q[11:0] + i[11:0]] <= dma_cpl_data_i[8*i+:8];
      if (!dma_cpl_last_i) beat_q <= beat_q + 13'd64;
      else if (cpl_bytes < dma_cpl_hdr_i.byte_count && dma_cpl_hdr_i.status == 3'd0) begin
        beat_q <= beat_q + 13'd64;  // Completions end at multiples of 64
      end else begin
        state_q <= 1'b0;
        if (dma_cpl_hdr_i.status == rnic_pkg::CplStatusSuccess) begin
          write_q <= 1'b1;
          beat_q <= {1'b0, target_q[11:6], 6'b0};
        end
      end
    end
    if (eth_tx_valid_o && eth_tx_ready_i) begin
      tx_left_q <= eth_tx_data_o.last ? '0 : tx_left_q - 16'd64;
      tx_done_q <= eth_tx_data_o.last ? '0 : tx_done_q + 16'd64;
    end
    if (eth_rx_valid_i) begin
      bytes_q <= bytes_q + {25'b0, eth_rx_data_i.bytes};
      frames_q <= frames_q + {31'b0, eth_rx_data_i.last && !eth_rx_data_i.err};
    end
    if (!rst_ni) begin
      {toggle_q, host_cpl_valid_o, read_q, write_q, signal_q, fail_q, state_q} <= '0;
      {scratch_q, frames_q, bytes_q, tx_left_q, tx_done_q} <= '0;
    end
  end

  NoFail: assert property (@(posedge clk_i) disable iff (!rst_ni) !fail_q)
  else $error("asked to fail");

  wire logic unused_inputs = ^{clk_open_i, eth_rx_data_i.data, dma_cpl_hdr_i, host_req_hdr_i,
                                    command_q, message_q, state_q, eth_link_up_i, time_i};
endmodule

`default_nettype wire
