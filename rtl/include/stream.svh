// Streams by name, for modules that join rooms. The wires of stream x are called x_<member>, the
// ports x_<member>_o and x_<member>_i; a room's side of it is one word in its list of connections:
// `STREAM_OUT(x) where the room is the source, `STREAM_IN(x) where it is the sink.
//
//   STREAM      valid, ready, data            kept until accepted (docs/rtl_rules.md)
//   STREAM_QP   valid, ready, qp              the same, the data is a queue pair
//   HANDSHAKE   valid, ready                  the same, what it is about lies beside it
//   NOTICE      valid, data                   one cycle; nobody can refuse it
//   NOTICE_QP   valid, qp
//   BORROW      acq_valid, acq_ready, acq_index, ctx_valid, rel_valid, rel_ready, rel_data,
//               rel_write                     a context on loan (ctx_manager); OUT is the borrower
//
// `..._AS(port, wire): the two have different names. `STREAM(Type, x) declares the wires.
`ifndef STREAM_SVH
`define STREAM_SVH

`define STREAM(Type, x) \
  logic x``_valid, x``_ready; \
  Type x``_data

`define STREAM_OUT_AS(p, x) \
  .p``_valid_o(x``_valid), .p``_ready_i(x``_ready), .p``_data_o(x``_data)
`define STREAM_IN_AS(p, x) \
  .p``_valid_i(x``_valid), .p``_ready_o(x``_ready), .p``_data_i(x``_data)
`define STREAM_OUT(x) `STREAM_OUT_AS(x, x)
`define STREAM_IN(x) `STREAM_IN_AS(x, x)

`define STREAM_QP_OUT(x) .x``_valid_o(x``_valid), .x``_ready_i(x``_ready), .x``_qp_o(x``_qp)
`define STREAM_QP_IN(x) .x``_valid_i(x``_valid), .x``_ready_o(x``_ready), .x``_qp_i(x``_qp)

`define HANDSHAKE_OUT_AS(p, x) .p``_valid_o(x``_valid), .p``_ready_i(x``_ready)
`define HANDSHAKE_IN_AS(p, x) .p``_valid_i(x``_valid), .p``_ready_o(x``_ready)
`define HANDSHAKE_OUT(x) `HANDSHAKE_OUT_AS(x, x)
`define HANDSHAKE_IN(x) `HANDSHAKE_IN_AS(x, x)

`define NOTICE_OUT(x) .x``_valid_o(x``_valid), .x``_data_o(x``_data)
`define NOTICE_IN(x) .x``_valid_i(x``_valid), .x``_data_i(x``_data)
`define NOTICE_QP_OUT_AS(p, x) .p``_valid_o(x``_valid), .p``_qp_o(x``_qp)
`define NOTICE_QP_OUT(x) `NOTICE_QP_OUT_AS(x, x)
`define NOTICE_QP_IN(x) .x``_valid_i(x``_valid), .x``_qp_i(x``_qp)

`define BORROW_OUT(x) \
  .x``_acq_valid_o(x``_acq_valid), .x``_acq_ready_i(x``_acq_ready), \
  .x``_acq_index_o(x``_acq_index), .x``_ctx_valid_i(x``_ctx_valid), \
  .x``_rel_valid_o(x``_rel_valid), .x``_rel_ready_i(x``_rel_ready), \
  .x``_rel_data_o(x``_rel_data), .x``_rel_write_o(x``_rel_write)
`define BORROW_IN(x) \
  .x``_acq_valid_i(x``_acq_valid), .x``_acq_ready_o(x``_acq_ready), \
  .x``_acq_index_i(x``_acq_index), .x``_ctx_valid_o(x``_ctx_valid), \
  .x``_rel_valid_i(x``_rel_valid), .x``_rel_ready_o(x``_rel_ready), \
  .x``_rel_data_i(x``_rel_data), .x``_rel_write_i(x``_rel_write)

`endif
