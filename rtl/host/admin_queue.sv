`default_nettype none
`include "assert.svh"

/// Admin queue: fetches commands ahead (admin_fetch), has them executed one by one in their order,
/// and passes the completions on (admin_answer): while one is executed, the next are on their way
/// in and those before on their way out.
///
/// While the device is not enabled none is begun. A command that cannot be read stops the queue for
/// good (fatal_o), when its turn comes: what the host wanted is unknown. restart_i (a write to
/// AdminConfig) resets the indexes once the command under way, if any, has ended, those that were
/// fetched are dropped and completions have left. exec_valid_o is held with command_o until
/// exec_done_i, which comes with status and result.
module admin_queue (
    input  wire logic                        clk_i,
    input  wire logic                        rst_ni,
    input  wire logic                        enable_i,
    input  wire logic [63:0]                 command_base_i,
    input  wire logic [63:0]                 completion_base_i,
    input  wire rnic_pkg::reg_admin_config_t config_i,
    input  wire logic                        restart_i,
    input  wire logic [15:0]                 producer_index_i,
    output logic                             fatal_o,
    output logic                             executed_o,
    output logic                             exec_valid_o,
    output rnic_pkg::admin_command_t         command_o,
    input  wire logic                        exec_done_i,
    input  wire logic [7:0]                  exec_status_i,
    input  wire logic [383:0]                exec_result_i,
    output logic                             rd_req_valid_o,
    input  wire logic                        rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t            rd_req_data_o,
    input  wire logic                        rd_rsp_valid_i,
    output logic                             rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t       rd_rsp_data_i,
    output logic                             wr_valid_o,
    input  wire logic                        wr_ready_i,
    output rnic_pkg::dma_wr_t                wr_data_o,
    input  wire logic                        wr_done_i,
    output logic                             irq_valid_o,
    input  wire logic                        irq_ready_i,
    output logic [7:0]                       irq_vector_o
);
  // First, Second: takes the lines of a command. Execute: a verb works. Complete: passes the
  // completion on. Fatal: stays.
  typedef enum logic [2:0] {
    First,
    Second,
    Execute,
    Complete,
    Fatal
  } state_e;
  state_e state_q, state_d;

  logic [15:0] consumer_q, asked, index, pass;
  logic [3:0] log_depth;
  logic restart, restart_q, begin_again, taken, failed, fetch_idle, answer_ready, answer_empty;
  logic [1023:0] command_q;
  rnic_pkg::admin_command_t command;
  rnic_pkg::admin_completion_t completion_d, completion_q;
  logic [63:0] address_q;
  logic irq_q;
  logic [7:0] irq_vector_q;

  // Rings have at most 256 entries.
  assign log_depth = (config_i.log_depth > 4'd8) ? 4'd8 : config_i.log_depth;
  assign index     = consumer_q & ~(16'hFFFF << log_depth);
  assign pass      = consumer_q >> log_depth;
  assign restart   = restart_i || restart_q;

  // A command is two lines. A read that has failed is answered with one.
  assign failed = rd_rsp_data_i.last != (state_q == Second);
  assign taken  = rd_rsp_valid_i && rd_rsp_ready_o && rd_rsp_data_i.last;
  // What was fetched before a restart is dropped. Nobody waits for the completion of the command
  // under way, and the ring may be another.
  assign begin_again = restart_q && state_q == First && asked == '0 && fetch_idle && answer_empty;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      First, Second: begin
        if (rd_rsp_valid_i && rd_rsp_ready_o) begin
          if (failed) state_d = restart ? First : Fatal;
          else if (state_q == First) state_d = Second;
          else state_d = restart ? First : Execute;
        end
      end
      Execute:  if (exec_done_i) state_d = restart ? First : Complete;
      Complete: if (answer_ready) state_d = First;
      Fatal:    state_d = Fatal;
      default:  state_d = First;
    endcase
  end

  always_comb begin
    completion_d                = '0;
    completion_d.status         = exec_status_i;
    completion_d.opcode         = command.opcode;
    completion_d.command_id     = command.command_id;
    completion_d.consumer_index = consumer_q + 1'b1;
    completion_d.result         = exec_result_i;
    completion_d.phase          = !pass[0];
  end

  // The registers may be written at any time: what is offered comes from copies.
  always_ff @(posedge clk_i) begin
    if (rd_rsp_valid_i && state_q == First) command_q[511:0] <= rd_rsp_data_i.data;
    if (rd_rsp_valid_i && state_q == Second) command_q[1023:512] <= rd_rsp_data_i.data;
    if (executed_o) begin
      address_q    <= {completion_base_i[63:12], 12'd0} + {42'd0, index, 6'd0};
      completion_q <= completion_d;
      irq_q        <= config_i.interrupt_enable;
      irq_vector_q <= config_i.interrupt_vector;
    end
  end

  always_ff @(posedge clk_i) begin
    state_q   <= state_d;
    restart_q <= restart_i || (restart_q && !begin_again);
    if (begin_again) consumer_q <= '0;
    else if (executed_o || (taken && restart)) consumer_q <= consumer_q + 1'b1;
    if (!rst_ni) begin
      state_q    <= First;
      restart_q  <= 1'b0;
      consumer_q <= '0;
    end
  end

  assign fatal_o        = state_q == Fatal;
  assign exec_valid_o   = state_q == Execute;
  assign executed_o     = exec_valid_o && exec_done_i;
  assign command        = command_q;
  assign command_o      = command;
  assign rd_rsp_ready_o = (state_q == First && (enable_i || restart)) || state_q == Second;

  admin_fetch u_fetch (
      .clk_i,
      .rst_ni,
      .enable_i,
      .stop_i     (restart || fatal_o),
      .clear_i    (begin_again),
      .base_i     (command_base_i),
      .log_depth_i(log_depth),
      .producer_index_i,
      .consumer_i (consumer_q),
      .asked_o    (asked),
      .idle_o     (fetch_idle),
      .rd_req_valid_o,
      .rd_req_ready_i,
      .rd_req_data_o
  );

  admin_answer u_answer (
      .clk_i,
      .rst_ni,
      .in_valid_i     (state_q == Complete),
      .in_ready_o     (answer_ready),
      .in_address_i   (address_q),
      .in_completion_i(completion_q),
      .in_irq_i       (irq_q),
      .in_irq_vector_i(irq_vector_q),
      .empty_o        (answer_empty),
      .wr_valid_o,
      .wr_ready_i,
      .wr_data_o,
      .wr_done_i,
      .irq_valid_o,
      .irq_ready_i,
      .irq_vector_o
  );

  logic unused_bits;
  assign unused_bits = &{1'b0, config_i, completion_base_i, rd_rsp_data_i, pass};

  `ASSERT(AnswersWereAsked, !rd_rsp_valid_i || asked != '0)
endmodule

`default_nettype wire
