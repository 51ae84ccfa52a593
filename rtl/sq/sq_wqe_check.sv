`default_nettype none

/// Judges a send WQE: `bad_o` says that it is malformed, bad_status_o with what it completes. sum_i
/// is the sum of its data segment lengths. A WQE that is to go on in the middle must still be
/// longer than what was sent of it. A memory operation has its segments and no data, and is not
/// inline; FastRegister names DMA addresses and is for the QPs that may do so, and an inline one
/// has its page list behind its segments, all of it and nothing else.
///
/// UC has no Reads, atomics and remote invalidations, UD no Writes and no memory operations either
/// (InfiniBand specification 9.4, table 37); a datagram is one packet (9.8.3), a longer one a local
/// length error (11.6.2), and its VLAN tag has not the reserved VID (IEEE 802.1Q 9.6). RawPacket
/// has SENDs without immediate data, of an Ethernet header to MaxFrameBytes, and it alone has
/// checksums to put in (ip_csum).
module sq_wqe_check (
    input  wire rnic_pkg::wqe_control_t control_i,
    input  wire rnic_pkg::send_ctx_t    ctx_i,
    input  wire logic [36:0]            sum_i,
    // As sq_header says
    input  wire logic [2:0]             header_segments_i,
    // FastRegister: pages of its list
    input  wire logic [15:0]            page_count_i,
    // UD: tag of the datagram
    input  wire logic                   vlan_i,
    input  wire logic [11:0]            vlan_id_i,
    output logic                        bad_o,
    output logic [7:0]                  bad_status_o
);
  logic known, is_send, is_read, is_atomic, is_memory, immediate, invalidate, unused_write;
  logic is_ud, is_raw, bad_service, bad_length, malformed;
  logic [7:0] stride_segments, data_segments;
  logic bad_header, bad_size, bad_data, bad_inline, bad_resume, bad_memory, bad_tag, is_fast,
      has_list;
  logic [15:0] list_segments;

  sq_decode u_decode (
      .opcode_i    (control_i.opcode),
      .known_o     (known),
      .is_send_o   (is_send),
      .is_write_o  (unused_write),
      .is_read_o   (is_read),
      .is_atomic_o (is_atomic),
      .is_memory_o (is_memory),
      .immediate_o (immediate),
      .invalidate_o(invalidate)
  );
  assign is_ud           = ctx_i.qp_type == rnic_pkg::QpTypeUd;
  assign is_raw          = ctx_i.qp_type == rnic_pkg::QpTypeRawPacket;
  assign stride_segments = 8'd4 << (ctx_i.log_stride - 4'd6);
  assign data_segments   = control_i.size - 8'(header_segments_i);

  assign bad_header = !known || control_i.qpn != ctx_i.qpn ||
                      control_i.wqe_index != ctx_i.exec_idx ||
                      (control_i.ip_csum && !is_raw) ||
                      (is_read && ctx_i.max_rd == '0) ||
                      control_i.length > rnic_pkg::MaxMessageBytes;
  assign bad_size   = control_i.size < 8'(header_segments_i) || control_i.size > stride_segments;
  assign bad_data   = data_segments > rnic_pkg::MaxSge[7:0] || sum_i != 37'(control_i.length) ||
                      (is_atomic && (data_segments != 8'd1 || control_i.length != 32'd8));
  assign bad_inline = is_read || control_i.length > rnic_pkg::MaxInlineBytes ||
                      control_i.length[11:0] > {data_segments, 4'd0};
  assign bad_resume = ctx_i.resume && control_i.length <= ctx_i.msg_off;
  // Two pages a segment.
  assign is_fast       = control_i.opcode == rnic_pkg::WqeOpcodeFastRegister;
  assign has_list      = is_fast && control_i.inline_data;
  assign list_segments = {1'b0, page_count_i[15:1]} + {15'd0, page_count_i[0]};
  assign bad_memory = is_memory && ({8'd0, data_segments} != (has_list ? list_segments : '0) ||
                      control_i.length != '0 || (control_i.inline_data && !is_fast) ||
                      (is_fast && !ctx_i.fast_register));
  assign bad_service = ctx_i.qp_type != rnic_pkg::QpTypeRc &&
                        (is_read || invalidate || ((is_ud || is_raw) && !is_send) ||
                         (is_raw && immediate));
  assign bad_length  = (is_ud && control_i.length > (32'd128 << ctx_i.mtu)) ||
                        (is_raw && (control_i.length < rnic_pkg::EthHeaderBytes ||
                                    control_i.length > rnic_pkg::MaxFrameBytes));
  assign bad_tag     = is_ud && vlan_i && vlan_id_i == rnic_pkg::ReservedVid[11:0];
  assign malformed   = bad_header || bad_size || bad_resume || bad_memory || bad_service ||
                        bad_tag || (control_i.inline_data ? bad_inline : bad_data);
  assign bad_o        = malformed || bad_length;
  assign bad_status_o = malformed ? rnic_pkg::CqeStatusLocQpOpErr : rnic_pkg::CqeStatusLocLenErr;

  logic unused_bits;
  assign unused_bits = ^{control_i, ctx_i};
endmodule

`default_nettype wire
