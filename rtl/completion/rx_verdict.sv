`default_nettype none
`include "assert.svh"

/// What a placed packet calls for: which commands, and what is in them. Combinational.
///
/// NAK codes: InfiniBand specification 9.7.5.2.8 (AETH syndrome) and 9.9.3 (responder behaviour). A
/// request whose payload has no place is answered with remote access error (RDMA WRITE and READ;
/// remote operational error, if it is our own page list that could not be read), or for a SEND with
/// invalid request (receive buffer too short) or remote operational error (the responder's own
/// scatter list is bad). A SEND with invalidate whose key may not be invalidated (refused_i) is
/// answered with remote access error, and its Receive fails. On UC and UD nothing is answered; a
/// datagram that is too long for the WQE it took of an SRQ fails that Receive, not the QP (9.9.3,
/// class E). A WQE of an SRQ that a refused WRITE with immediate data has taken completes with a
/// flush, as those of a queue of its own do when the QP goes to the error state. An error that
/// fails a Receive is told by its CQE (told), unless the WQE is lost. A sequence error, an RNR NAK
/// or a gap among the responses is no failure: the requester sends again.
module rx_verdict (
    input  wire rnic_pkg::rx_done_t done_i,
    // The invalidation that a SEND asked for was refused
    input  wire logic               refused_i,
    // The packet uses up a receive WQE, with this status
    output logic                    need_ctx_o,
    output logic [7:0]              receive_status_o,
    // Receive WQEs that were taken are given back; with need_ctx_o
    output logic                    give_back_o,
    output logic                    need_rsp_o,
    output rnic_pkg::rsp_cmd_t      rsp_cmd_o,
    output logic                    need_retire_o,
    output rnic_pkg::retire_cmd_t   retire_o,
    output logic                    need_error_o,
    output rnic_pkg::qp_error_t     error_o
);
  logic access_fault, own_fault, receive_fault, response_fault, bad_receive, taken;
  logic [7:0] local_status, nak_status, nak_syndrome, fault_detail;

  // The requester's own fault at a Read's data, or the responder's at a SEND's: what it is called
  // locally. Memory that the host's side of PCIe does not give us is fatal, whatever lay in it.
  always_comb begin
    if (done_i.overflow) local_status = rnic_pkg::CqeStatusLocLenErr;
    else if (done_i.wqe_unread || own_fault) local_status = rnic_pkg::CqeStatusFatalErr;
    else if (done_i.bad_wqe) local_status = rnic_pkg::CqeStatusLocQpOpErr;
    else local_status = rnic_pkg::CqeStatusLocProtErr;
  end

  // A NAK as the completion status of the request that got it. Codes not defined for RC are bad
  // responses.
  always_comb begin
    unique case (done_i.syndrome)
      rnic_pkg::AethSyndromeNakPsn:               nak_status = rnic_pkg::CqeStatusRetryExcErr;
      rnic_pkg::AethSyndromeNakInvalidRequest:    nak_status = rnic_pkg::CqeStatusRemInvReqErr;
      rnic_pkg::AethSyndromeNakRemoteAccess:      nak_status = rnic_pkg::CqeStatusRemAccessErr;
      rnic_pkg::AethSyndromeNakRemoteOperational: nak_status = rnic_pkg::CqeStatusRemOpErr;
      default: begin
        nak_status = (done_i.syndrome[7:5] == rnic_pkg::AethSyndromeRnrNak[7:5]) ?
                     rnic_pkg::CqeStatusRnrRetryExcErr : rnic_pkg::CqeStatusBadRespErr;
      end
    endcase
  end

  // A message that uses an SRQ's WQE for its tag only can be hit by a bad WQE too.
  assign bad_receive    = done_i.bad_wqe && done_i.target != rnic_pkg::PlaceTargetResponse;
  assign access_fault   = done_i.fault && !bad_receive &&
                          (done_i.target == rnic_pkg::PlaceTargetWrite ||
                           done_i.target == rnic_pkg::PlaceTargetCheckRead ||
                           done_i.target == rnic_pkg::PlaceTargetCheckAtomic);
  // A page list that cannot be read is our own fault: the peer asked for what it may (9.9.3).
  assign own_fault      = done_i.status == rnic_pkg::XlateStatusPageListError;
  assign taken          = access_fault && done_i.srq && done_i.takes;
  assign receive_fault  = done_i.fault &&
                          (bad_receive || done_i.target == rnic_pkg::PlaceTargetReceive);
  assign response_fault = done_i.fault && done_i.target == rnic_pkg::PlaceTargetResponse;
  assign fault_detail   = {4'd0, done_i.status};

  always_comb begin
    if (access_fault && !own_fault) nak_syndrome = rnic_pkg::AethSyndromeNakRemoteAccess;
    else if (access_fault) nak_syndrome = rnic_pkg::AethSyndromeNakRemoteOperational;
    else if (!receive_fault) nak_syndrome = done_i.syndrome;
    else if (done_i.overflow) nak_syndrome = rnic_pkg::AethSyndromeNakInvalidRequest;
    else nak_syndrome = rnic_pkg::AethSyndromeNakRemoteOperational;
  end

  always_comb begin : p_verdict
    need_ctx_o       = receive_fault || taken;
    receive_status_o = rnic_pkg::CqeStatusSuccess;
    if (receive_fault) receive_status_o = local_status;
    else if (taken) receive_status_o = rnic_pkg::CqeStatusWrFlushErr;
    give_back_o      = 1'b0;
    need_rsp_o       = access_fault || (receive_fault && !done_i.unreliable);
    need_retire_o    = response_fault;
    need_error_o     = access_fault ||
                       (receive_fault && !(done_i.unreliable && done_i.overflow));

    rsp_cmd_o          = '0;
    rsp_cmd_o.qp       = done_i.qp;
    rsp_cmd_o.command  = rnic_pkg::RspCommandNak;
    rsp_cmd_o.psn      = done_i.psn;
    rsp_cmd_o.ack_req  = done_i.ack_req;
    rsp_cmd_o.msg_last = done_i.msg_last;
    rsp_cmd_o.syndrome = nak_syndrome;
    rsp_cmd_o.va       = done_i.va;
    rsp_cmd_o.key      = done_i.key;
    rsp_cmd_o.length   = done_i.byte_count;
    rsp_cmd_o.last_psn = done_i.immediate[23:0];
    rsp_cmd_o.fetch_add = done_i.fetch_add;
    rsp_cmd_o.swap_add  = done_i.swap_add;
    rsp_cmd_o.compare   = done_i.compare;

    retire_o          = '0;
    retire_o.qp       = done_i.qp;
    retire_o.command  = rnic_pkg::RetireCommandRefuse;
    retire_o.psn      = done_i.psn;
    retire_o.status   = local_status;
    retire_o.syndrome = response_fault ? fault_detail : done_i.syndrome;
    retire_o.with_credits = !done_i.fault && done_i.with_imm;
    {retire_o.limited, retire_o.lsn} = done_i.immediate[24:0];

    error_o        = '0;
    error_o.qp     = done_i.qp;
    if (receive_fault) error_o.status = local_status;
    else if (own_fault) error_o.status = rnic_pkg::CqeStatusFatalErr;
    else error_o.status = rnic_pkg::CqeStatusRemAccessErr;
    error_o.responder = 1'b1;
    error_o.told   = receive_fault && !done_i.wqe_lost;

    if (!done_i.fault) begin
      unique case (done_i.action)
        rnic_pkg::RxActionExecuted: begin
          need_rsp_o        = 1'b1;
          rsp_cmd_o.command = rnic_pkg::RspCommandExecuted;
        end
        rnic_pkg::RxActionReceiveDone: begin
          need_ctx_o        = 1'b1;
          need_rsp_o        = !done_i.unreliable;
          rsp_cmd_o.command = rnic_pkg::RspCommandExecuted;
          if (refused_i) begin
            receive_status_o   = rnic_pkg::CqeStatusLocProtErr;
            rsp_cmd_o.command  = rnic_pkg::RspCommandNak;
            rsp_cmd_o.syndrome = rnic_pkg::AethSyndromeNakRemoteAccess;
            need_error_o       = 1'b1;
            error_o.status     = rnic_pkg::CqeStatusLocProtErr;
            error_o.told       = 1'b1;
          end
        end
        rnic_pkg::RxActionReceiveFlush: begin
          need_ctx_o       = 1'b1;
          receive_status_o = rnic_pkg::CqeStatusWrFlushErr;
        end
        rnic_pkg::RxActionGiveBack: begin
          need_ctx_o  = 1'b1;
          give_back_o = 1'b1;
        end
        rnic_pkg::RxActionReadRequest: begin
          need_rsp_o        = 1'b1;
          rsp_cmd_o.command = done_i.atomic ? rnic_pkg::RspCommandAtomic :
                                              rnic_pkg::RspCommandRead;
        end
        rnic_pkg::RxActionNak: begin
          need_rsp_o     = !done_i.unreliable;
          error_o.status = nak_status;
          need_error_o   = done_i.syndrome == rnic_pkg::AethSyndromeNakInvalidRequest ||
                           done_i.syndrome == rnic_pkg::AethSyndromeNakRemoteAccess ||
                           done_i.syndrome == rnic_pkg::AethSyndromeNakRemoteOperational;
        end
        rnic_pkg::RxActionAck: begin
          need_retire_o    = 1'b1;
          retire_o.command = rnic_pkg::RetireCommandAck;
          retire_o.status  = rnic_pkg::CqeStatusSuccess;
        end
        rnic_pkg::RxActionReadDone: begin
          need_retire_o    = 1'b1;
          retire_o.command = rnic_pkg::RetireCommandReadDone;
          retire_o.status  = rnic_pkg::CqeStatusSuccess;
        end
        rnic_pkg::RxActionNakReceived: begin
          need_retire_o   = 1'b1;
          retire_o.status = nak_status;
          if (done_i.syndrome == rnic_pkg::AethSyndromeNakPsn ||
              done_i.syndrome[7:5] == rnic_pkg::AethSyndromeRnrNak[7:5]) begin
            retire_o.command = rnic_pkg::RetireCommandRetry;
          end
        end
        rnic_pkg::RxActionGap: begin
          need_retire_o     = 1'b1;
          retire_o.command  = rnic_pkg::RetireCommandRetry;
          retire_o.syndrome = rnic_pkg::AethSyndromeNakPsn;
        end
        rnic_pkg::RxActionBadResponse: begin
          need_retire_o   = 1'b1;
          retire_o.status = rnic_pkg::CqeStatusBadRespErr;
        end
        default: begin
        end
      endcase
    end
  end

  logic unused_done;
  assign unused_done = &{1'b0, done_i.qpn, done_i.wqe_idx, done_i.solicited, done_i.write_imm,
      done_i.with_invalidate, done_i.immediate[31:25],
      done_i.srqn, done_i.pd, done_i.take, done_i.grh, done_i.source_qpn, done_i.vlan,
      done_i.vlan_tci, done_i.l3_ok, done_i.l4_ok};
endmodule

`default_nettype wire
