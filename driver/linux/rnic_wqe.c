// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* WQEs of the kernel's, built in their slots of the rings. */
#include "rnic_ib.h"
#include "rnic_segment.h"

#define RNIC_SEGMENT 16

u8 *rnic_slot_at(struct rnic_wq *wq, u16 index)
{
	u32 slot = (u16)(index - wq->base) & (BIT(wq->log_depth) - 1);

	return wq->ring + ((size_t)slot << wq->log_stride);
}

static u8 *put_sge(u8 *at, const struct ib_sge *sge)
{
	return rnic_put_data(at, sge->addr, sge->length, sge->lkey);
}

static u8 *put_atomic(u8 *at, const struct ib_send_wr *wr)
{
	const struct ib_atomic_wr *from = atomic_wr(wr);
	bool swap = wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP;

	at = rnic_put_remote(at, from->remote_addr, from->rkey);
	return rnic_put_atomic(at, swap ? from->swap : from->compare_add,
			       from->compare_add);
}

static u8 *put_address(u8 *at, const struct ib_send_wr *wr, u32 qpn)
{
	const struct ib_ud_wr *from = ud_wr(wr);
	struct rnic_wqe_address address = to_rnic_ah(from->ah)->address;

	rnic_put(&address, RNIC_WQE_ADDRESS_DEST_QPN, from->remote_qpn);
	rnic_put(&address, RNIC_WQE_ADDRESS_QKEY, from->remote_qkey);
	if (!rnic_get(&address, RNIC_WQE_ADDRESS_FLOW_LABEL))
		rnic_put(&address, RNIC_WQE_ADDRESS_FLOW_LABEL,
			 rdma_calc_flow_label(qpn, from->remote_qpn));
	return rnic_put_segment(at, address.word, sizeof(address));
}

static u8 *put_registration(u8 *at, const struct ib_reg_wr *wr)
{
	struct rnic_mr *mr = to_rnic_mr(wr->mr);
	struct rnic_wqe_fast_register fast = {};
	struct rnic_wqe_range range = {};

	rnic_put(&range, RNIC_WQE_RANGE_VA, wr->mr->iova);
	rnic_put(&range, RNIC_WQE_RANGE_LENGTH, wr->mr->length);
	at = rnic_put_segment(at, range.word, sizeof(range));
	rnic_put(&fast, RNIC_WQE_FAST_REGISTER_PAGE_LIST, mr->list_dma);
	rnic_put(&fast, RNIC_WQE_FAST_REGISTER_FIRST_OFFSET,
		 wr->mr->iova & (wr->mr->page_size - 1));
	rnic_put(&fast, RNIC_WQE_FAST_REGISTER_PAGE_COUNT, mr->pages);
	rnic_put(&fast, RNIC_WQE_FAST_REGISTER_LOG_PAGE,
		 ilog2(wr->mr->page_size));
	rnic_put(&fast, RNIC_WQE_FAST_REGISTER_LOCAL_WRITE,
		 !!(wr->access & IB_ACCESS_LOCAL_WRITE));
	rnic_put(&fast, RNIC_WQE_FAST_REGISTER_REMOTE_READ,
		 !!(wr->access & IB_ACCESS_REMOTE_READ));
	rnic_put(&fast, RNIC_WQE_FAST_REGISTER_REMOTE_WRITE,
		 !!(wr->access & IB_ACCESS_REMOTE_WRITE));
	rnic_put(&fast, RNIC_WQE_FAST_REGISTER_REMOTE_ATOMIC,
		 !!(wr->access & IB_ACCESS_REMOTE_ATOMIC));
	return rnic_put_segment(at, fast.word, sizeof(fast));
}

static const struct {
	u8 opcode;
	u8 completion;
} operations[] = {
	[IB_WR_RDMA_WRITE] = { RNIC_WQE_OPCODE_WRITE, IB_WC_RDMA_WRITE },
	[IB_WR_RDMA_WRITE_WITH_IMM] = { RNIC_WQE_OPCODE_WRITE_IMMEDIATE,
					IB_WC_RDMA_WRITE },
	[IB_WR_SEND] = { RNIC_WQE_OPCODE_SEND, IB_WC_SEND },
	[IB_WR_SEND_WITH_IMM] = { RNIC_WQE_OPCODE_SEND_IMMEDIATE, IB_WC_SEND },
	[IB_WR_RDMA_READ] = { RNIC_WQE_OPCODE_READ, IB_WC_RDMA_READ },
	[IB_WR_ATOMIC_CMP_AND_SWP] = { RNIC_WQE_OPCODE_COMPARE_SWAP,
				       IB_WC_COMP_SWAP },
	[IB_WR_ATOMIC_FETCH_AND_ADD] = { RNIC_WQE_OPCODE_FETCH_ADD,
					 IB_WC_FETCH_ADD },
	[IB_WR_SEND_WITH_INV] = { RNIC_WQE_OPCODE_SEND_INVALIDATE, IB_WC_SEND },
	[IB_WR_LOCAL_INV] = { RNIC_WQE_OPCODE_LOCAL_INVALIDATE,
			      IB_WC_LOCAL_INV },
	[IB_WR_REG_MR] = { RNIC_WQE_OPCODE_FAST_REGISTER, IB_WC_REG_MR },
};

static bool is_supported(const struct rnic_qp *qp, enum ib_wr_opcode opcode)
{
	bool send = opcode == IB_WR_SEND || opcode == IB_WR_SEND_WITH_IMM;

	switch (qp->ibqp.qp_type) {
	case IB_QPT_RC:
		return send || (opcode < ARRAY_SIZE(operations) &&
				operations[opcode].opcode);
	case IB_QPT_UC:
		return send || opcode == IB_WR_RDMA_WRITE ||
		       opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	default:
		return send;
	}
}

static u32 immediate_of(const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return be32_to_cpu(wr->ex.imm_data);
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		return wr->ex.invalidate_rkey;
	case IB_WR_REG_MR:
		return reg_wr(wr)->key;
	default:
		return 0;
	}
}

static u8 *put_head(u8 *at, struct rnic_qp *qp, const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		return rnic_put_remote(at, rdma_wr(wr)->remote_addr,
				       rdma_wr(wr)->rkey);
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return put_atomic(at, wr);
	case IB_WR_REG_MR:
		return put_registration(at, reg_wr(wr));
	case IB_WR_LOCAL_INV:
		return at;
	default:
		if (qp->ibqp.qp_type == IB_QPT_RC ||
		    qp->ibqp.qp_type == IB_QPT_UC)
			return at;
		return put_address(at, wr, qp->qpn);
	}
}

/* Return: 0 and the bytes of the message, -EINVAL. */
int rnic_check_send(struct rnic_qp *qp, const struct ib_send_wr *wr,
		    u64 *length)
{
	bool inlined = wr->send_flags & IB_SEND_INLINE;
	int i;

	*length = 0;
	if (!is_supported(qp, wr->opcode))
		return -EINVAL;
	if (wr->opcode == IB_WR_REG_MR || wr->opcode == IB_WR_LOCAL_INV)
		return 0;
	if (wr->num_sge < 0 || wr->num_sge > qp->sq.max_sge)
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		*length += wr->sg_list[i].length;
	if (*length > (inlined ? qp->sq.max_inline :
				 to_rnic_dev(qp->ibqp.device)->caps.max_message))
		return -EINVAL;
	return 0;
}

static u8 *put_inline(u8 *at, const struct ib_send_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		memcpy(at, (void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		at += wr->sg_list[i].length;
	}
	return at;
}

/* In its slot; returns the opcode of its completion. */
u8 rnic_build_send(struct rnic_qp *qp, const struct ib_send_wr *wr, u64 length,
		   bool silent)
{
	bool inlined = length && wr->send_flags & IB_SEND_INLINE;
	bool has_data = wr->opcode != IB_WR_REG_MR &&
			wr->opcode != IB_WR_LOCAL_INV;
	struct rnic_wq *sq = &qp->sq;
	struct rnic_wqe_control control = {};
	u8 *wqe = rnic_slot_at(sq, sq->producer);
	u8 *at;
	int i;

	memset(wqe, 0, BIT(sq->log_stride));
	at = put_head(wqe + sizeof(control), qp, wr);
	if (inlined)
		at = put_inline(at, wr);
	else if (has_data)
		for (i = 0; i < wr->num_sge; i++)
			at = put_sge(at, &wr->sg_list[i]);
	rnic_put(&control, RNIC_WQE_CONTROL_OPCODE,
		 operations[wr->opcode].opcode);
	rnic_put(&control, RNIC_WQE_CONTROL_SILENT, silent);
	rnic_put(&control, RNIC_WQE_CONTROL_FENCE,
		 !!(wr->send_flags & IB_SEND_FENCE));
	rnic_put(&control, RNIC_WQE_CONTROL_SOLICITED,
		 !!(wr->send_flags & IB_SEND_SOLICITED));
	rnic_put(&control, RNIC_WQE_CONTROL_INLINE_DATA, inlined);
	rnic_put(&control, RNIC_WQE_CONTROL_WQE_INDEX,
		 (u16)(sq->producer - sq->base));
	rnic_put(&control, RNIC_WQE_CONTROL_QPN, qp->qpn);
	rnic_put(&control, RNIC_WQE_CONTROL_SIZE,
		 DIV_ROUND_UP(at - wqe, RNIC_SEGMENT));
	rnic_put(&control, RNIC_WQE_CONTROL_IMMEDIATE, immediate_of(wr));
	rnic_put(&control, RNIC_WQE_CONTROL_LENGTH, length);
	rnic_put_segment(wqe, control.word, sizeof(control));
	return operations[wr->opcode].completion;
}

void rnic_build_receive(u8 *wqe, u16 index, u16 tag,
			const struct ib_recv_wr *wr)
{
	struct rnic_wqe_receive head = {};
	u8 *at;
	int i;

	rnic_put(&head, RNIC_WQE_RECEIVE_SGE_COUNT, wr->num_sge);
	rnic_put(&head, RNIC_WQE_RECEIVE_WQE_INDEX, index);
	rnic_put(&head, RNIC_WQE_RECEIVE_TAG, tag);
	at = rnic_put_segment(wqe, head.word, sizeof(head));
	for (i = 0; i < wr->num_sge; i++)
		at = put_sge(at, &wr->sg_list[i]);
}
