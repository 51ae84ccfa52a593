`default_nettype none
`include "assert.svh"

/// MSI-X: pending bits and messages (PCI Express base specification 6.1.4, 7.7.2).
///
/// Two sources ask for messages: 0 the admin queue, 1 the event queues. A request sets the pending
/// bit of its vector; a vector that is pending and not masked sends one message and clears the bit.
/// While the vector is masked, the function is masked, or MSI-X is off, requests merge in the
/// pending bit, and the message leaves when the last obstacle goes. A vector that is not held back
/// takes a new request only when the one before has been sent, so that no two of them merge. A
/// request for a vector beyond the table is dropped.
module msix (
    input  wire logic                        clk_i,
    input  wire logic                        rst_ni,
    input  wire logic                        cfg_enable_i,
    input  wire logic                        cfg_mask_i,
    // Table, as in msix_table
    input  wire logic                        table_wr_en_i,
    input  wire logic                        table_rd_en_i,
    input  wire logic [5:0]                  table_index_i,
    input  wire logic [63:0]                 table_wr_data_i,
    input  wire logic [7:0]                  table_be_i,
    output logic [63:0]                      table_rd_data_o,
    output logic [rnic_pkg::MsixVectors-1:0] pending_o,
    input  wire logic [1:0]                  req_valid_i,
    output logic [1:0]                       req_ready_o,
    input  wire logic [15:0]                 req_vector_i,
    output logic                             wr_valid_o,
    input  wire logic                        wr_ready_i,
    output rnic_pkg::dma_wr_t                wr_data_o,
    output logic                             sent_o
);
  localparam int unsigned N = rnic_pkg::MsixVectors;

  // Idle: choose a vector. Fetch: read its entry. Check: entry there; give up if it was masked
  // meanwhile. Send: offer it.
  typedef enum logic [1:0] {
    Idle,
    Fetch,
    Check,
    Send
  } state_e;
  state_e state_q, state_d;

  logic [N-1:0] mask, pending_q, set, clear, sendable, grant;
  logic [4:0] choice, vector_q;
  logic fetch_ready;
  logic [63:0] entry_address, address_q;
  logic [31:0] entry_data, message_q;

  msix_table u_table (
      .clk_i,
      .rst_ni,
      .wr_en_i        (table_wr_en_i),
      .rd_en_i        (table_rd_en_i),
      .index_i        (table_index_i),
      .wr_data_i      (table_wr_data_i),
      .be_i           (table_be_i),
      .rd_data_o      (table_rd_data_o),
      .fetch_valid_i  (state_q == Fetch),
      .fetch_ready_o  (fetch_ready),
      .fetch_vector_i (vector_q),
      .fetch_address_o(entry_address),
      .fetch_data_o   (entry_data),
      .mask_o         (mask)
  );

  // ---- Requests -------------------------------------------------------------------------------
  assign sendable  = (cfg_enable_i && !cfg_mask_i) ? pending_q & ~mask : '0;
  assign pending_o = pending_q;

  always_comb begin : requests
    logic [7:0] wanted;
    logic known;
    set         = '0;
    req_ready_o = '0;
    for (int unsigned i = 0; i < 2; i++) begin
      wanted         = req_vector_i[8*i+:8];
      known          = wanted < 8'(N);
      // Looks at the bits that this loop has set too: both sources may name one vector in one
      // cycle.
      req_ready_o[i] = !known || !(sendable[wanted[4:0]] || set[wanted[4:0]]);
      if (req_valid_i[i] && req_ready_o[i] && known) set[wanted[4:0]] = 1'b1;
    end
  end

  // ---- Messages -------------------------------------------------------------------------------
  rr_arbiter #(
      .N(N)
  ) u_choose (
      .clk_i,
      .rst_ni,
      .request_i(sendable),
      .advance_i(state_q == Idle),
      .grant_o  (grant)
  );

  always_comb begin
    choice = '0;
    for (int unsigned i = 0; i < N; i++) begin
      if (grant[i]) choice = choice | 5'(i);
    end
  end

  always_comb begin
    state_d = state_q;
    clear   = '0;
    unique case (state_q)
      Idle:  if (sendable != '0) state_d = Fetch;
      Fetch: if (fetch_ready) state_d = Check;
      Check: begin
        state_d = Idle;
        if (sendable[vector_q]) begin
          state_d         = Send;
          clear[vector_q] = 1'b1;
        end
      end
      Send:    if (wr_ready_i) state_d = Idle;
      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q   <= state_d;
    pending_q <= (pending_q & ~clear) | set;
    if (state_q == Idle) vector_q <= choice;
    if (state_q == Check) begin
      address_q <= {entry_address[63:2], 2'b00};
      message_q <= entry_data;
    end
    if (!rst_ni) begin
      state_q   <= Idle;
      pending_q <= '0;
    end
  end

  // The message is an aligned dword: every lane of the line carries it.
  assign wr_valid_o = state_q == Send;
  assign sent_o     = wr_valid_o && wr_ready_i;
  always_comb begin
    wr_data_o        = '0;
    wr_data_o.addr   = address_q;
    wr_data_o.length = 13'd4;
    wr_data_o.data   = {16{message_q}};
    wr_data_o.last   = 1'b1;
  end

  logic [1:0] unused_address;
  assign unused_address = entry_address[1:0];

  `ASSERT_HOLD(WriteHold, wr_valid_o, wr_ready_i, wr_data_o)
  `ASSERT_HOLD(AdminHold, req_valid_i[0], req_ready_o[0], req_vector_i[7:0])
  `ASSERT_HOLD(EventHold, req_valid_i[1], req_ready_o[1], req_vector_i[15:8])
endmodule

`default_nettype wire
