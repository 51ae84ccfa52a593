`default_nettype none

/// What the plan of a packet tells the done stage. unread_i: its WQE could not be read. lost_i: the
/// tag of the WQE of an SRQ that it takes is not known. Combinational.
module rx_place_packet (
    input  wire rnic_pkg::rx_plan_t plan_i,
    input  wire logic               unread_i,
    input  wire logic               lost_i,
    output rnic_pkg::rx_done_t      done_o
);
  always_comb begin : packet
    done_o            = '0;
    done_o.qp         = plan_i.qp;
    done_o.qpn        = plan_i.qpn;
    done_o.action     = plan_i.action;
    done_o.psn        = plan_i.psn;
    done_o.syndrome   = plan_i.syndrome;
    done_o.ack_req    = plan_i.ack_req;
    done_o.msg_last   = plan_i.msg_last;
    done_o.solicited  = plan_i.solicited;
    done_o.wqe_idx    = plan_i.wqe_idx;
    done_o.srq        = plan_i.srq;
    done_o.takes      = plan_i.takes;
    done_o.srqn       = plan_i.srqn;
    done_o.wqe_unread = unread_i;
    done_o.wqe_lost   = lost_i;
    done_o.byte_count = plan_i.byte_count;
    done_o.key        = plan_i.key;
    done_o.va         = plan_i.va;
    done_o.target     = plan_i.target;
    done_o.write_imm       = plan_i.write_imm;
    done_o.with_imm        = plan_i.with_imm;
    done_o.with_invalidate = plan_i.with_invalidate;
    done_o.immediate       = plan_i.immediate;
    done_o.atomic          = plan_i.atomic;
    done_o.fetch_add       = plan_i.fetch_add;
    done_o.swap_add        = plan_i.swap_add;
    done_o.compare         = plan_i.compare;
    done_o.pd              = plan_i.pd;
    done_o.unreliable      = plan_i.unreliable;
    done_o.take            = plan_i.take;
    done_o.grh             = plan_i.grh;
    done_o.source_qpn      = plan_i.source_qpn;
    done_o.vlan            = plan_i.vlan;
    done_o.vlan_tci        = plan_i.vlan_tci;
    done_o.l3_ok           = plan_i.l3_ok;
    done_o.l4_ok           = plan_i.l4_ok;
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, plan_i};
endmodule

`default_nettype wire
