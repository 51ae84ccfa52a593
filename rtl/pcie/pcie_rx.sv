`default_nettype none
`include "assert.svh"

/// Decoder of host requests: what a TLP asks for decides where it goes.
///
///   page 0, one dword or aligned quadword      reg_req; a read also leaves a completion order
///   UAR register, aligned 8-byte write         uar_req
///   UAR window, aligned write of 8 to 64 bytes uar_req (write combining may cut a line)
///   UAR page, read of any length               completion order for zeros
///   any other non-posted request               completion order for an error, counted
///   any other posted request, poisoned writes  dropped, counted
/// A dword write without enabled bytes has no effect (PCI Express base specification 2.2.5) and is
/// not counted.
module pcie_rx (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic                    host_req_valid_i,
    output logic                         host_req_ready_o,
    input  wire rnic_pkg::host_req_hdr_t host_req_hdr_i,
    input  wire logic [511:0]            host_req_data_i,
    input  wire logic                    host_req_last_i,
    output logic                         reg_req_valid_o,
    input  wire logic                    reg_req_ready_i,
    output rnic_pkg::reg_req_t           reg_req_data_o,
    output logic                         uar_req_valid_o,
    input  wire logic                    uar_req_ready_i,
    output rnic_pkg::uar_req_t           uar_req_data_o,
    // Completion order: zeros and Unsupported Request are answered as they are, else by the next
    // register response.
    output logic                         order_valid_o,
    input  wire logic                    order_ready_i,
    output logic                         order_zeros_o,
    output rnic_pkg::host_cpl_hdr_t      order_hdr_o,
    output logic                         unsupported_o
);
  localparam int unsigned BarBits = rnic_pkg::UarIndexBits + 12;

  typedef enum logic [2:0] {
    Drop,
    Ignore,
    Refuse,
    RegWrite,
    RegRead,
    UarWrite,
    UarRead
  } route_e;
  route_e route;

  rnic_pkg::host_req_hdr_t hdr;
  logic head_q, accept, page0, uar, dword, quadword, all_bytes, piece, to_window, doorbell;
  logic reg_valid, reg_ready, uar_ready;
  rnic_pkg::reg_req_t reg_req;
  rnic_pkg::uar_req_t uar_req;

  assign hdr         = host_req_hdr_i;
  assign page0       = hdr.addr[63:12] == '0;
  assign uar         = hdr.addr[63:BarBits] == '0 && !page0;
  assign dword       = hdr.length_dw == 11'd1 && hdr.last_be == '0;
  assign quadword    = hdr.length_dw == 11'd2 && !hdr.addr[2] && hdr.first_be != '0 &&
      hdr.last_be != '0;
  assign all_bytes   = hdr.first_be == '1 && hdr.last_be == '1;
  assign to_window   = hdr.addr[11:8] == rnic_pkg::UarWqeWindow[11:8];
  assign doorbell    = hdr.addr[11:3] <= rnic_pkg::UarSrqDoorbell[11:3];
  assign piece       = (hdr.length_dw == 11'd4 && hdr.addr[3:0] == '0) ||
      (hdr.length_dw == 11'd8 && hdr.addr[4:0] == '0) ||
      (hdr.length_dw == 11'd16 && hdr.addr[5:0] == '0);

  always_comb begin
    unique case (hdr.tlp_type)
      rnic_pkg::TlpTypeMemRead: begin
        route = Refuse;
        if (page0 && (dword || quadword)) route = RegRead;
        if (uar) route = UarRead;
      end
      rnic_pkg::TlpTypeMemWrite: begin
        route = Drop;
        if (page0 && (dword || quadword)) route = (dword && hdr.first_be == '0) ? Ignore : RegWrite;
        if (uar && all_bytes &&
            ((quadword && (doorbell || to_window)) || (piece && to_window))) begin
          route = UarWrite;
        end
        if (hdr.poisoned) route = Drop;
      end
      rnic_pkg::TlpTypeOther: route = Refuse;
      default: route = Drop;
    endcase
  end

  // The first beat decides; the others of a request that is not taken are swallowed.
  always_comb begin
    unique case (route)
      RegWrite: host_req_ready_o = reg_ready;
      RegRead: host_req_ready_o = reg_ready && order_ready_i;
      UarWrite: host_req_ready_o = uar_ready;
      UarRead, Refuse: host_req_ready_o = order_ready_i;
      default: host_req_ready_o = 1'b1;
    endcase
    if (!head_q) host_req_ready_o = 1'b1;
  end
  assign accept        = host_req_valid_i && host_req_ready_o;
  assign unsupported_o = accept && head_q && (route == Drop || route == Refuse);
  assign order_valid_o = accept && head_q &&
      (route == RegRead || route == UarRead || route == Refuse);
  assign reg_valid     = host_req_valid_i && head_q &&
      (route == RegWrite || (route == RegRead && order_ready_i));
  assign order_zeros_o = route == UarRead;

  always_ff @(posedge clk_i) begin
    if (accept) head_q <= host_req_last_i;
    if (!rst_ni) head_q <= 1'b1;
  end

  always_comb begin
    reg_req.write = route == RegWrite;
    reg_req.addr  = {hdr.addr[11:3], 3'b000};
    reg_req.data  = host_req_data_i[{hdr.addr[5:3], 6'd0}+:64];
    reg_req.be    = hdr.addr[2] ? {hdr.first_be, 4'h0} : {hdr.last_be, hdr.first_be};
    uar_req.uar   = hdr.addr[BarBits-1:12];
    uar_req.addr  = {hdr.addr[11:3], 3'b000};
    unique case (hdr.length_dw)
      11'd4: uar_req.log_words = 2'd1;
      11'd8: uar_req.log_words = 2'd2;
      11'd16: uar_req.log_words = 2'd3;
      default: uar_req.log_words = 2'd0;
    endcase
    uar_req.data  = host_req_data_i;
  end

  // Completion fields (PCI Express base specification 2.2.9, tables 2-38 and 2-39): byte count from
  // the first to the last enabled byte; a read without enabled bytes counts as one byte. Tag,
  // requester, traffic class and attributes are those of the request.
  logic [1:0] lead, trail;
  logic [3:1] end_be;
  always_comb begin
    end_be = hdr.length_dw == 11'd1 ? hdr.first_be[3:1] : hdr.last_be[3:1];
    lead   = hdr.first_be[0] ? 2'd0 : hdr.first_be[1] ? 2'd1 : hdr.first_be[2] ? 2'd2 : 2'd3;
    trail  = end_be[3] ? 2'd0 : end_be[2] ? 2'd1 : end_be[1] ? 2'd2 : 2'd3;
    if (hdr.first_be == '0) lead = 2'd0;
    order_hdr_o.status     = rnic_pkg::CplStatusSuccess;
    order_hdr_o.tag        = hdr.tag;
    order_hdr_o.requester  = hdr.requester;
    order_hdr_o.byte_count = {hdr.length_dw, 2'b00} - {11'd0, lead} - {11'd0, trail};
    order_hdr_o.lower_addr = {hdr.addr[6:2], lead};
    order_hdr_o.length_dw  = hdr.length_dw;
    order_hdr_o.tc         = hdr.tc;
    order_hdr_o.attr       = hdr.attr;
    if (route == Refuse) begin
      order_hdr_o.status    = rnic_pkg::CplStatusUnsupportedRequest;
      order_hdr_o.length_dw = '0;
    end
    if (hdr.tlp_type == rnic_pkg::TlpTypeOther) begin
      order_hdr_o.byte_count = 13'd4;
      order_hdr_o.lower_addr = '0;
    end
  end

  skid_buffer #(
      .Width(rnic_pkg::RegReqBits)
  ) u_reg (
      .clk_i,
      .rst_ni,
      .in_valid_i (reg_valid),
      .in_ready_o (reg_ready),
      .in_data_i  (reg_req),
      .out_valid_o(reg_req_valid_o),
      .out_ready_i(reg_req_ready_i),
      .out_data_o (reg_req_data_o)
  );

  skid_buffer #(
      .Width(rnic_pkg::UarReqBits)
  ) u_uar (
      .clk_i,
      .rst_ni,
      .in_valid_i (host_req_valid_i && head_q && route == UarWrite),
      .in_ready_o (uar_ready),
      .in_data_i  (uar_req),
      .out_valid_o(uar_req_valid_o),
      .out_ready_i(uar_req_ready_i),
      .out_data_o (uar_req_data_o)
  );

  `ASSERT_HOLD(HostRequestHold, host_req_valid_i, host_req_ready_o,
               {host_req_hdr_i, host_req_data_i, host_req_last_i})
endmodule

`default_nettype wire
