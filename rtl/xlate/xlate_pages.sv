`default_nettype none
`include "assert.svh"

/// Translation of accesses, with every check; the pipeline of xlate.
///
/// Two ports (0: send path, 1: receive path), each a stream of xlate_req_t and, in the order of its
/// requests, xlate_rsp_t.
/// Checks, in this order, each for every request: index, tag, state, PD, QP (type 2B window),
/// right, range (65-bit arithmetic: no wrap).
/// LocalRead needs nothing but a live key of a region. A live entry translates through its page
/// list in host memory: page i of the region is the 64-bit word at page_list + 8 i; or in the lines
/// on chip, which list_wr_* writes. A TLB keeps 64-byte lines of page lists (8 pages); a miss reads
/// one line; the use of a line fetches the next one ahead.
/// Several misses may be outstanding; hits of one port do not wait for misses of the other.
/// Throughput: one answer every 4 cycles a port on hits.
///
/// Pipeline, without stalls (a request is accepted only when there is room for its answer and for a
/// miss of it):
///   accept, read the entry | check | find the page, read tags | compare, read the line | answer
///
/// The MPT has an administrative port. Any write to it drops all TLB lines of that entry (unless
/// mpt_req_keep_i); lines under way are not kept.
/// Drain: each Ok answer carries `epoch`; the DMA engines hand it back (retire_valid, retire_epoch)
/// when the DMA of that answer has been issued (a write: wr_done; a read: its data has arrived) or
/// dropped. drain_valid_i held: flips the epoch, waits until the old epoch's answers are all handed
/// back, then pulses drain_ready_o.
module xlate_pages (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    output logic                           ready_o,
    input  wire logic [1:0]                req_valid_i,
    output logic [1:0]                     req_ready_o,
    input  wire logic [2*rnic_pkg::XlateReqBits-1:0] req_data_i,
    output logic [1:0]                     rsp_valid_o,
    input  wire logic [1:0]                rsp_ready_i,
    output logic [2*rnic_pkg::XlateRspBits-1:0] rsp_data_o,
    input  wire logic [1:0]                retire_valid_i,
    input  wire logic [1:0]                retire_epoch_i,
    // Administrative port
    input  wire logic                      mpt_req_valid_i,
    output logic                           mpt_req_ready_o,
    input  wire logic                      mpt_req_write_i,
    input  wire logic                      mpt_req_keep_i,
    input  wire logic [rnic_pkg::MptIndexBits-1:0] mpt_req_index_i,
    input  wire rnic_pkg::mpt_t            mpt_req_data_i,
    output logic                           mpt_rsp_valid_o,
    output rnic_pkg::mpt_t                 mpt_rsp_data_o,
    input  wire logic                      drain_valid_i,
    output logic                           drain_ready_o,
    // Page lists
    input  wire logic                      list_wr_valid_i,
    input  wire logic [9:0]                list_wr_line_i,
    input  wire logic [511:0]              list_wr_data_i,
    output logic                           rd_req_valid_o,
    input  wire logic                      rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t          rd_req_data_o,
    input  wire logic                      rd_rsp_valid_i,
    output logic                           rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t     rd_rsp_data_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  localparam int unsigned IndexBits = rnic_pkg::MptIndexBits;
  localparam int unsigned GenBits = 8;
  localparam int unsigned PageBits = 37;
  localparam int unsigned KeyBits = PageBits - 3 + GenBits + IndexBits;
  // Answers under way at a port; lines under way for a port, and for prefetches.
  localparam int unsigned Depth = 16;
  localparam int unsigned Misses = 6;
  localparam int unsigned Prefetches = 4;
  localparam int unsigned Entries = 16;
  localparam int unsigned IdBits = $clog2(Entries);

  if (2 * Misses + Prefetches > Entries) begin : gen_bad_entries
    $fatal(1, "xlate_pages: a miss may find no entry");
  end

  // ---- Accept: look up the MPT ------------------------------------------------------------------
  logic [1:0] popped, settled, freed, refused, refused_epoch;
  logic mpt_busy, epoch, accept, port, flush;
  rnic_pkg::xlate_req_t req;

  xlate_admit #(
      .Depth (Depth),
      .Misses(Misses)
  ) u_admit (
      .clk_i,
      .rst_ni,
      .enable_i (!mpt_busy),
      .req_valid_i,
      .req_ready_o,
      .popped_i (popped),
      .settled_i(settled),
      .freed_i  (freed)
  );
  assign accept = req_ready_o != '0;
  assign port   = req_ready_o[1];
  assign req    = port ? req_data_i[rnic_pkg::XlateReqBits+:rnic_pkg::XlateReqBits] :
      req_data_i[0+:rnic_pkg::XlateReqBits];

  rnic_pkg::mpt_t b_entry;
  logic [GenBits-1:0] b_gen;
  xlate_mpt #(
      .GenBits(GenBits)
  ) u_mpt (
      .clk_i,
      .rst_ni,
      .ready_o,
      .lookup_i      (accept),
      .lookup_index_i(req.key[8+:IndexBits]),
      .busy_o        (mpt_busy),
      .entry_o       (b_entry),
      .gen_o         (b_gen),
      .flush_o       (flush),
      .mpt_req_valid_i,
      .mpt_req_ready_o,
      .mpt_req_write_i,
      .mpt_req_keep_i,
      .mpt_req_index_i,
      .mpt_req_data_i,
      .mpt_rsp_valid_o,
      .mpt_rsp_data_o
  );

  // ---- Check (stage b), find the page (stages c to e) -------------------------------------------
  logic b_valid_q, b_port_q, b_epoch_q, c_valid_q, c_port_q, c_epoch_q, c_more;
  rnic_pkg::xlate_req_t b_req_q;
  logic [3:0] c_status;
  logic [KeyBits-1:0] c_key;
  logic [2:0] c_word;
  logic [30:0] c_offset;
  logic [31:0] c_contiguous;
  logic [58:0] c_list;

  always_ff @(posedge clk_i) begin
    b_valid_q <= accept;
    b_port_q  <= port;
    b_epoch_q <= epoch;
    b_req_q   <= req;
    c_valid_q <= b_valid_q;
    c_port_q  <= b_port_q;
    c_epoch_q <= b_epoch_q;
    if (!rst_ni) begin
      b_valid_q <= 1'b0;
      c_valid_q <= 1'b0;
    end
  end

  xlate_check #(
      .GenBits (GenBits),
      .PageBits(PageBits)
  ) u_check (
      .clk_i,
      .in_req_i        (b_req_q),
      .in_entry_i      (b_entry),
      .in_gen_i        (b_gen),
      .out_status_o    (c_status),
      .out_key_o       (c_key),
      .out_word_o      (c_word),
      .out_offset_o    (c_offset),
      .out_contiguous_o(c_contiguous),
      .out_more_o      (c_more),
      .out_list_o      (c_list)
  );

  logic e_valid, e_port, e_wait, line_err, prefetch_begin, prefetch_epoch, miss, prefetch;
  logic [IdBits-1:0] e_id;
  logic [2:0] e_word, prefetch_end, prefetch_end_epoch;
  rnic_pkg::xlate_rsp_t e_rsp;
  logic [511:0] line;
  logic [1:0] want, take;
  logic [2*IdBits-1:0] want_id;
  logic [Entries-1:0] done;

  xlate_lookup #(
      .GenBits   (GenBits),
      .PageBits  (PageBits),
      .Prefetches(Prefetches),
      .Entries   (Entries)
  ) u_lookup (
      .clk_i,
      .rst_ni,
      .flush_i         (flush),
      .c_valid_i       (c_valid_q),
      .c_port_i        (c_port_q),
      .c_epoch_i       (c_epoch_q),
      .c_status_i      (c_status),
      .c_key_i         (c_key),
      .c_word_i        (c_word),
      .c_offset_i      (c_offset),
      .c_contiguous_i  (c_contiguous),
      .c_more_i        (c_more),
      .c_list_i        (c_list),
      .e_valid_o       (e_valid),
      .e_port_o        (e_port),
      .e_wait_o        (e_wait),
      .e_id_o          (e_id),
      .e_word_o        (e_word),
      .e_rsp_o         (e_rsp),
      .settled_o       (settled),
      .freed_o         (freed),
      .done_o          (done),
      .want_i          (want),
      .want_id_i       (want_id),
      .take_o          (take),
      .line_o          (line),
      .line_err_o      (line_err),
      .begin_o         (prefetch_begin),
      .begin_epoch_o   (prefetch_epoch),
      .end_o           (prefetch_end),
      .end_epoch_o     (prefetch_end_epoch),
      .event_miss_o    (miss),
      .event_prefetch_o(prefetch),
      .list_wr_valid_i,
      .list_wr_line_i,
      .list_wr_data_i,
      .rd_req_valid_o,
      .rd_req_ready_i,
      .rd_req_data_o,
      .rd_rsp_valid_i,
      .rd_rsp_ready_o,
      .rd_rsp_data_i
  );

  // ---- Answers ----------------------------------------------------------------------------------
  for (genvar p = 0; p < 2; p++) begin : gen_port
    xlate_port #(
        .Depth (Depth),
        .IdBits(IdBits)
    ) u_port (
        .clk_i,
        .rst_ni,
        .in_valid_i     (e_valid && e_port == (p == 1)),
        .in_rsp_i       (e_rsp),
        .in_wait_i      (e_wait),
        .in_id_i        (e_id),
        .in_word_i      (e_word),
        .done_i         (done),
        .want_o         (want[p]),
        .want_id_o      (want_id[p*IdBits+:IdBits]),
        .grant_i        (take[p]),
        .line_i         (line),
        .line_err_i     (line_err),
        .popped_o       (popped[p]),
        .refused_o      (refused[p]),
        .refused_epoch_o(refused_epoch[p]),
        .rsp_valid_o    (rsp_valid_o[p]),
        .rsp_ready_i    (rsp_ready_i[p]),
        .rsp_data_o     (rsp_data_o[p*rnic_pkg::XlateRspBits+:rnic_pkg::XlateRspBits])
    );
  end

  // A request ends when its DMA is handed back or it is refused, a prefetch when it is dropped or
  // its line is here.
  xlate_drain #(
      .Begins(2),
      .Ends  (7)
  ) u_drain (
      .clk_i,
      .rst_ni,
      .epoch_o      (epoch),
      .begin_i      ({prefetch_begin, accept}),
      .begin_epoch_i({prefetch_epoch, epoch}),
      .end_i        ({prefetch_end, refused, retire_valid_i}),
      .end_epoch_i  ({prefetch_end_epoch, refused_epoch, retire_epoch_i}),
      .drain_valid_i,
      .drain_ready_o
  );

  // Both ports may refuse in one cycle: an event is one pulse, so the second is kept for later.
  logic [5:0] faults_q;
  logic fault;
  assign fault = faults_q != '0;
  always_ff @(posedge clk_i) begin
    faults_q <= faults_q + {5'd0, refused[0]} + {5'd0, refused[1]} - {5'd0, fault};

    event_o                                 <= '0;
    event_o[rnic_pkg::CounterXlateRequests] <= accept;
    event_o[rnic_pkg::CounterXlateFaults]   <= fault;
    event_o[rnic_pkg::CounterTlbMisses]     <= miss;
    event_o[rnic_pkg::CounterTlbPrefetches] <= prefetch;
    if (!rst_ni) begin
      faults_q <= '0;
      event_o  <= '0;
    end
  end
endmodule

`default_nettype wire
