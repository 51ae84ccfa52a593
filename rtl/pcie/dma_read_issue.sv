`default_nettype none
`include "assert.svh"

/// Front of the DMA read engine: cuts the clients' requests into read TLPs, clients in turn, one
/// TLP a cycle.
///
/// A TLP leaves when its client has room for it in its ring of the reorder buffer and may take a
/// tag. Every client has `Reserve` tags for itself; the others are shared (of 64 tags, or 32
/// without ext_tag_i). Lines are given out in the order of the client's requests. issue_first,
/// issue_last: the TLP begins, ends request `issue_rid` of its client.
module dma_read_issue #(
    parameter int unsigned Clients = 2,
    parameter int unsigned Requests = 32,
    parameter int unsigned LineBits = 10,
    parameter int unsigned Reserve = 4,
    parameter logic [Clients*LineBits-1:0] RingBase = '0,
    parameter logic [Clients*LineBits-1:0] RingLast = '0,
    localparam int unsigned ClientBits = Clients > 1 ? $clog2(Clients) : 1,
    localparam int unsigned RidBits = $clog2(Requests)
) (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic [6:0]             max_lines_i,   // Lines of the longest TLP, 1 to 8
    input  wire logic [Clients-1:0]     rd_req_valid_i,
    output logic [Clients-1:0]          rd_req_ready_o,
    input  wire logic [Clients*rnic_pkg::DmaRdReqBits-1:0] rd_req_data_i,
    input  wire logic                   tag_valid_i,
    output logic                        tag_ready_o,
    input  wire logic [7:0]             tag_i,
    input  wire logic                   ext_tag_i,     // 64 tags; otherwise 32
    input  wire logic [6:0]             parked_i,      // Tags out of service
    input  wire logic [Clients-1:0]     can_begin_i,   // The client's queue takes another request
    output logic [Clients-1:0]          issue_o,       // A TLP of this client is issued
    output logic                        issue_first_o,
    output logic                        issue_last_o,
    output logic [7:0]                  issue_tag_o,
    output logic [ClientBits-1:0]       issue_client_o,
    output logic [RidBits-1:0]          issue_rid_o,
    output logic [LineBits-1:0]         issue_line_o,  // Where its first line goes
    output logic [6:0]                  issue_lower_o, // Low bits of the address of its first byte
    output logic [12:0]                 issue_left_o,  // Bytes of the request from here on
    output logic [9:0]                  issue_bytes_o, // Bytes of the TLP
    input  wire logic [Clients-1:0]     finish_i,      // A TLP of this client has ended
    input  wire logic [Clients-1:0]     freed_i,       // The client has got lines
    input  wire logic [6:0]             freed_lines_i,
    output logic                        tlp_valid_o,
    input  wire logic                   tlp_ready_i,
    output rnic_pkg::dma_req_hdr_t      tlp_hdr_o
);
  localparam int unsigned Tags = 64;
  localparam int unsigned FewTags = 32;
  localparam int unsigned Shared = Tags - Reserve * Clients;
  localparam int unsigned FewShared = FewTags - Reserve * Clients;
  localparam int unsigned SlotLines = 8;

  logic [Clients-1:0] valid_q, begun_q, over, room, eligible, grant, take;
  logic [63:0] addr_q[Clients];
  logic [12:0] left_q[Clients];
  logic [RidBits-1:0] rid_q[Clients];
  logic [LineBits-1:0] line_q[Clients];
  logic [LineBits:0] free_q[Clients];
  logic [6:0] held_q[Clients];
  logic [63:0] addr;
  logic [6:0] shared_q, lines;
  logic [12:0] bytes;
  logic mid_ready, issue, cut_last, begun, shared_left, shared_take, shared_give;
  logic [LineBits-1:0] line_end, line_base, line_next;
  rnic_pkg::dma_req_hdr_t hdr;

  assign shared_left = shared_q + parked_i < (ext_tag_i ? 7'(Shared) : 7'(FewShared));
  always_comb begin
    for (int unsigned i = 0; i < Clients; i++) begin
      over[i]     = held_q[i] >= 7'(Reserve);
      room[i]     = free_q[i] >= (LineBits + 1)'(SlotLines) && (!over[i] || shared_left);
      eligible[i] = valid_q[i] && room[i] && (begun_q[i] || can_begin_i[i]);
    end
  end

  rr_arbiter #(
      .N(Clients)
  ) u_clients (
      .clk_i,
      .rst_ni,
      .request_i(eligible),
      .advance_i(issue),
      .grant_o  (grant)
  );
  assign issue       = eligible != '0 && tag_valid_i && mid_ready;
  assign issue_o     = issue ? grant : '0;
  assign tag_ready_o = issue;
  assign issue_tag_o = tag_i;

  always_comb begin
    begun          = 1'b0;
    issue_client_o = '0;
    issue_rid_o    = '0;
    addr           = '0;
    issue_left_o   = '0;
    issue_line_o   = '0;
    line_end       = '0;
    line_base      = '0;
    for (int unsigned i = 0; i < Clients; i++) begin
      if (grant[i]) begin
        begun          = begun | begun_q[i];
        issue_client_o = issue_client_o | ClientBits'(i);
        issue_rid_o    = issue_rid_o | rid_q[i];
        addr           = addr | addr_q[i];
        issue_left_o   = issue_left_o | left_q[i];
        issue_line_o   = issue_line_o | line_q[i];
        line_end       = line_end | RingLast[i*LineBits+:LineBits];
        line_base      = line_base | RingBase[i*LineBits+:LineBits];
      end
    end
  end
  assign issue_first_o = !begun;
  assign issue_last_o  = cut_last;
  assign issue_lower_o = addr[6:0];
  assign issue_bytes_o = bytes[9:0];

  dma_cut u_cut (
      .addr_i     (addr[11:0]),
      .left_i     (issue_left_o),
      .max_lines_i,
      .bytes_o    (bytes),
      .lines_o    (lines),
      .length_dw_o(hdr.length_dw),
      .first_be_o (hdr.first_be),
      .last_be_o  (hdr.last_be),
      .last_o     (cut_last)
  );
  assign hdr.tlp_type = rnic_pkg::TlpTypeMemRead;
  assign hdr.addr     = {addr[63:2], 2'b00};
  assign hdr.tag      = {2'b00, tag_i};

  // Where the client's next TLP goes; room for a whole slot was checked, so it wraps at most once.
  logic [LineBits-1:0] to_end;
  assign to_end    = line_end - issue_line_o;
  assign line_next = {{LineBits - 7{1'b0}}, lines} > to_end ?
      line_base + {{LineBits - 7{1'b0}}, lines} - to_end - LineBits'(1) :
      issue_line_o + {{LineBits - 7{1'b0}}, lines};

  // A client's next request is taken in the cycle in which the last TLP of the one before is
  // issued.
  assign take           = rd_req_valid_i & rd_req_ready_o;
  assign rd_req_ready_o = ~valid_q | (cut_last ? issue_o : '0);

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Clients; i++) begin
      if (issue_o[i]) begin
        addr_q[i]  <= {addr[63:6], 6'd0} + {51'd0, lines, 6'd0};
        left_q[i]  <= issue_left_o - bytes;
        line_q[i]  <= line_next;
        begun_q[i] <= !cut_last;
        if (cut_last) begin
          valid_q[i] <= 1'b0;
          rid_q[i]   <= rid_q[i] + 1'b1;
        end
      end
      if (take[i]) begin
        {left_q[i], addr_q[i]} <= rd_req_data_i[i*rnic_pkg::DmaRdReqBits+:rnic_pkg::DmaRdReqBits];
        valid_q[i]             <= 1'b1;
      end
      free_q[i] <= free_q[i] - (issue_o[i] ? {{LineBits - 6{1'b0}}, lines} : '0) +
          (freed_i[i] ? {{LineBits - 6{1'b0}}, freed_lines_i} : '0);
      held_q[i] <= held_q[i] + {6'd0, issue_o[i]} - {6'd0, finish_i[i]};
      if (!rst_ni) begin
        rid_q[i]  <= '0;
        line_q[i] <= RingBase[i*LineBits+:LineBits];
        free_q[i] <= {1'b0, RingLast[i*LineBits+:LineBits] - RingBase[i*LineBits+:LineBits]} +
            (LineBits + 1)'(1);
        held_q[i] <= '0;
      end
    end
    shared_q <= shared_q + {6'd0, shared_take} - {6'd0, shared_give};
    if (!rst_ni) begin
      valid_q  <= '0;
      begun_q  <= '0;
      shared_q <= '0;
    end
  end

  always_comb begin
    shared_take = (issue_o & over) != '0;
    shared_give = 1'b0;
    for (int unsigned i = 0; i < Clients; i++) begin
      if (finish_i[i] && held_q[i] + {6'd0, issue_o[i]} > 7'(Reserve)) shared_give = 1'b1;
    end
  end

  skid_buffer #(
      .Width(rnic_pkg::DmaReqHdrBits)
  ) u_tlp (
      .clk_i,
      .rst_ni,
      .in_valid_i (issue),
      .in_ready_o (mid_ready),
      .in_data_i  (hdr),
      .out_valid_o(tlp_valid_o),
      .out_ready_i(tlp_ready_i),
      .out_data_o (tlp_hdr_o)
  );

  `ASSERT(SlotLimit, !issue || (bytes <= 13'd512 && bytes != '0 && lines <= 7'(SlotLines)))
endmodule

`default_nettype wire
