`default_nettype none
`include "assert.svh"

/// Admin queue: fetches commands one by one, has them executed, writes completions, asks for the
/// interrupt.
///
/// Works while the device is enabled and 1 to depth commands wait; a producer index further ahead
/// than the ring is deep cannot be right and is not followed. A command that cannot be read stops
/// the queue for good (fatal_o): what the host wanted is unknown. restart_i (a write to
/// AdminConfig) resets the indexes once the command under way, if any, has ended. exec_valid_o is
/// held with command_o until exec_done_i, which comes with status and result.
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
  // Idle: waits for a command. Request: asks for its 128 bytes. First, Second: takes their lines.
  // Execute: a verb works. Complete: offers the completion. Written: waits until it has left.
  // Interrupt: asks for the message. Fatal: stays.
  typedef enum logic [3:0] {
    Idle,
    Request,
    First,
    Second,
    Execute,
    Complete,
    Written,
    Interrupt,
    Fatal
  } state_e;
  state_e state_q, state_d;

  logic [15:0] consumer_q, waiting, index, pass;
  logic [3:0] log_depth;
  logic restart_q, written_q, runs;
  logic [1023:0] command_q;
  rnic_pkg::admin_command_t command;
  rnic_pkg::admin_completion_t completion_d, completion_q;
  logic [63:0] address_q;
  logic irq_q;
  logic [7:0] irq_vector_q;

  // Rings have at most 256 entries.
  assign log_depth = (config_i.log_depth > 4'd8) ? 4'd8 : config_i.log_depth;
  assign waiting   = producer_index_i - consumer_q;
  assign runs      = enable_i && waiting != '0 && waiting <= (16'd1 << log_depth) && !restart_i &&
      !restart_q;
  assign index     = consumer_q & ~(16'hFFFF << log_depth);
  assign pass      = consumer_q >> log_depth;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Idle:    if (runs) state_d = Request;
      Request: if (rd_req_ready_i) state_d = First;
      First: begin
        if (rd_rsp_valid_i) state_d = (rd_rsp_data_i.err || rd_rsp_data_i.last) ? Fatal : Second;
      end
      Second: begin
        if (rd_rsp_valid_i) state_d = (rd_rsp_data_i.err || !rd_rsp_data_i.last) ? Fatal : Execute;
      end
      // After a restart nobody waits for the completion, and the ring may be another.
      Execute:   if (exec_done_i) state_d = (restart_i || restart_q) ? Idle : Complete;
      Complete:  if (wr_ready_i) state_d = Written;
      Written:   if (wr_done_i || written_q) state_d = irq_q ? Interrupt : Idle;
      Interrupt: if (irq_ready_i) state_d = Idle;
      Fatal:     state_d = Fatal;
      default:   state_d = Idle;
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
    if (state_q == Idle) address_q <= {command_base_i[63:12], 12'd0} + {41'd0, index, 7'd0};
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
    restart_q <= restart_i || (restart_q && state_q != Idle);
    // The last TLP may be accepted in the cycle in which the beat is.
    written_q <= state_q == Complete && wr_done_i;
    if (state_q == Idle && restart_q) consumer_q <= '0;
    else if (executed_o) consumer_q <= consumer_q + 1'b1;
    if (!rst_ni) begin
      state_q    <= Idle;
      restart_q  <= 1'b0;
      written_q  <= 1'b0;
      consumer_q <= '0;
    end
  end

  assign fatal_o      = state_q == Fatal;
  assign exec_valid_o = state_q == Execute;
  assign executed_o   = exec_valid_o && exec_done_i;
  assign command      = command_q;
  assign command_o    = command;

  assign rd_req_valid_o       = state_q == Request;
  assign rd_req_data_o.addr   = address_q;
  assign rd_req_data_o.length = 13'd128;
  assign rd_rsp_ready_o       = state_q == First || state_q == Second;

  assign wr_valid_o = state_q == Complete;
  always_comb begin
    wr_data_o.addr   = address_q;
    wr_data_o.length = 13'd64;
    wr_data_o.data   = completion_q;
    wr_data_o.last   = 1'b1;
  end
  assign irq_valid_o  = state_q == Interrupt;
  assign irq_vector_o = irq_vector_q;

  logic unused_bits;
  assign unused_bits = &{1'b0, config_i, command_base_i, completion_base_i, rd_rsp_data_i, pass};

  `ASSERT_HOLD(RequestHold, rd_req_valid_o, rd_req_ready_i, rd_req_data_o)
  `ASSERT_HOLD(WriteHold, wr_valid_o, wr_ready_i, wr_data_o)
  `ASSERT_HOLD(InterruptHold, irq_valid_o, irq_ready_i, irq_vector_o)
endmodule

`default_nettype wire
