// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues. */
#include <linux/if_vlan.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "rnic_ib.h"

static u32 entries_for(int cqe)
{
	return roundup_pow_of_two(max(cqe, 1));
}

static struct rnic_cqe *entry_at(struct rnic_cq *cq, u32 index)
{
	struct rnic_cqe *ring = cq->ring.buf.va;

	return &ring[index & (BIT(cq->log_depth) - 1)];
}

static bool is_there(struct rnic_cq *cq, u32 index)
{
	u64 phase = ~(index >> cq->log_depth) & 1;

	return rnic_phase(entry_at(cq, index)->word) == phase;
}

/* With the lock of the CQ. */
bool rnic_cq_has_entry(struct rnic_cq *cq)
{
	return is_there(cq, cq->consumer);
}

static void ring_cq(struct rnic_cq *cq, enum rnic_cq_arm arm)
{
	rnic_ring(to_rnic_dev(cq->ibcq.device), RNIC_UAR_CQ_DOORBELL,
		  rnic_value(RNIC_CQ_DOORBELL_CQN, cq->cqn) |
		  rnic_value(RNIC_CQ_DOORBELL_ARM, arm) |
		  rnic_value(RNIC_CQ_DOORBELL_CONSUMER_INDEX, cq->consumer));
}

static u8 eqn_for(struct rnic_dev *dev, u32 vector)
{
	return dev->vectors == 1 ? 0 : 1 + vector % (dev->vectors - 1);
}

static int answer(struct rnic_cq *cq, struct ib_udata *udata)
{
	struct rnic_create_cq_resp response = {
		.ring_offset = rnic_ring_offset(&cq->ring),
		.ring_bytes = cq->ring.buf.bytes,
		.cqn = cq->cqn,
		.log_depth = cq->log_depth,
	};

	return rnic_respond(udata, &response, sizeof(response));
}

int rnic_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct ib_udata *udata)
{
	struct rnic_ucontext *ucontext =
		rdma_udata_to_drv_context(udata, struct rnic_ucontext,
					  ibucontext);
	struct rnic_ibdev *ib = to_rnic_ibdev(ibcq->device);
	struct rnic_cq *cq = to_rnic_cq(ibcq);
	struct rnic_admin_create_cq body = {};
	u32 entries;
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > ibcq->device->attrs.max_cqe)
		return -EINVAL;
	entries = entries_for(attr->cqe);
	spin_lock_init(&cq->lock);
	cq->log_depth = ilog2(entries);
	err = rnic_ring_alloc(ib->dev, &cq->ring,
			      entries * sizeof(struct rnic_cqe),
			      ucontext ? &ucontext->ibucontext : NULL);
	if (err)
		return err;
	err = rnic_table_add(&ib->cqs, cq, &cq->cqn);
	if (err)
		goto free_ring;
	rnic_put(&body, RNIC_ADMIN_CREATE_CQ_BASE, cq->ring.buf.dma);
	rnic_put(&body, RNIC_ADMIN_CREATE_CQ_LOG_DEPTH, cq->log_depth);
	rnic_put(&body, RNIC_ADMIN_CREATE_CQ_EQN,
		 eqn_for(ib->dev, attr->comp_vector));
	rnic_put(&body, RNIC_ADMIN_CREATE_CQ_UAR, rnic_uar_of(udata));
	err = rnic_admin_execute(ib->dev, RNIC_ADMIN_OPCODE_CREATE_CQ, cq->cqn,
				 body.word, NULL);
	if (err)
		goto remove;
	ibcq->cqe = entries;
	if (!udata)
		return 0;
	err = answer(cq, udata);
	if (!err)
		return 0;
	rnic_admin_undo(ib->dev, RNIC_ADMIN_OPCODE_DESTROY_CQ, cq->cqn);
remove:
	rnic_table_remove(&ib->cqs, cq->cqn);
	rnic_eqs_synchronize(ib->dev);
free_ring:
	rnic_ring_free(ib->dev, &cq->ring);
	return err;
}

int rnic_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct rnic_ibdev *ib = to_rnic_ibdev(ibcq->device);
	struct rnic_cq *cq = to_rnic_cq(ibcq);
	int err = rnic_admin_destroy(ib->dev, RNIC_ADMIN_OPCODE_DESTROY_CQ,
				     cq->cqn);

	if (err)
		return err;
	rnic_table_remove(&ib->cqs, cq->cqn);
	/* No handler of an event has it any more. */
	rnic_eqs_synchronize(ib->dev);
	rnic_ring_free(ib->dev, &cq->ring);
	rnic_ring_free(ib->dev, &cq->last_ring);
	return 0;
}

int rnic_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct rnic_admin_modify_cq body = {};

	rnic_put(&body, RNIC_ADMIN_MODIFY_CQ_COUNT, count);
	rnic_put(&body, RNIC_ADMIN_MODIFY_CQ_PERIOD, period);
	return rnic_admin_execute(to_rnic_dev(ibcq->device),
				  RNIC_ADMIN_OPCODE_MODIFY_CQ,
				  to_rnic_cq(ibcq)->cqn, body.word, NULL);
}

/*
 * Of processes only: the entries before the answered index are in the ring
 * before, which stays until the next change or the end. The core lets nobody
 * else change or destroy the queue meanwhile.
 */
int rnic_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct rnic_ucontext *ucontext =
		rdma_udata_to_drv_context(udata, struct rnic_ucontext,
					  ibucontext);
	struct rnic_ibdev *ib = to_rnic_ibdev(ibcq->device);
	struct rnic_cq *cq = to_rnic_cq(ibcq);
	struct rnic_admin_resize_cq body = {};
	struct rnic_admin_queue_state state;
	struct rnic_resize_cq_resp response = {};
	struct rnic_ring ring;
	u32 entries;
	int err;

	if (!ucontext)
		return -EOPNOTSUPP;
	if (cqe < 1 || cqe > ibcq->device->attrs.max_cqe)
		return -EINVAL;
	entries = entries_for(cqe);
	err = rnic_ring_alloc(ib->dev, &ring, entries * sizeof(struct rnic_cqe),
			      &ucontext->ibucontext);
	if (err)
		return err;
	rnic_put(&body, RNIC_ADMIN_RESIZE_CQ_BASE, ring.buf.dma);
	rnic_put(&body, RNIC_ADMIN_RESIZE_CQ_LOG_DEPTH, ilog2(entries));
	err = rnic_admin_execute(ib->dev, RNIC_ADMIN_OPCODE_RESIZE_CQ, cq->cqn,
				 body.word, state.word);
	if (err) {
		rnic_ring_free(ib->dev, &ring);
		return err;
	}
	rnic_ring_free(ib->dev, &cq->last_ring);
	cq->last_ring = cq->ring;
	cq->ring = ring;
	cq->log_depth = ilog2(entries);
	ibcq->cqe = entries;
	response.ring_offset = rnic_ring_offset(&cq->ring);
	response.ring_bytes = cq->ring.buf.bytes;
	response.origin = rnic_get(&state, RNIC_ADMIN_QUEUE_STATE_PRODUCER_INDEX);
	response.log_depth = cq->log_depth;
	return rnic_respond(udata, &response, sizeof(response));
}

static u32 opcode_of_receive(const struct rnic_cqe *cqe)
{
	return rnic_get(cqe, RNIC_CQE_OPCODE) ==
		       RNIC_CQE_OPCODE_RECEIVE_WRITE ?
		       IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV;
}

/* A tag of VID 0 gives a priority, and no VLAN. */
static void fill_vlan(u16 tci, struct ib_wc *wc)
{
	wc->sl = tci >> VLAN_PRIO_SHIFT;
	wc->vlan_id = tci & VLAN_VID_MASK;
	if (wc->vlan_id)
		wc->wc_flags |= IB_WC_WITH_VLAN;
}

static void fill_receive(struct rnic_qp *qp, const struct rnic_cqe *cqe,
			 struct ib_wc *wc)
{
	u32 immediate = rnic_get(cqe, RNIC_CQE_IMMEDIATE);

	wc->opcode = opcode_of_receive(cqe);
	if (qp->ibqp.srq)
		wc->wr_id = rnic_srq_complete(to_rnic_srq(qp->ibqp.srq),
					      rnic_get(cqe,
						       RNIC_CQE_WQE_INDEX));
	else
		wc->wr_id = rnic_receive_completed(qp);
	if (rnic_get(cqe, RNIC_CQE_WITH_IMM)) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = cpu_to_be32(immediate);
	} else if (rnic_get(cqe, RNIC_CQE_WITH_INVALIDATE)) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = immediate;
	}
	if (rnic_get(cqe, RNIC_CQE_GRH))
		wc->wc_flags |= IB_WC_GRH;
	if (rnic_get(cqe, RNIC_CQE_VLAN))
		fill_vlan(rnic_get(cqe, RNIC_CQE_VLAN_TCI), wc);
	wc->src_qp = rnic_get(cqe, RNIC_CQE_SOURCE_QPN);
	wc->port_num = RNIC_PORT;
}

static bool is_flushed_receive(const struct rnic_cqe *cqe)
{
	return rnic_get(cqe, RNIC_CQE_IS_RECEIVE) &&
	       rnic_get(cqe, RNIC_CQE_STATUS) == RNIC_CQE_STATUS_WR_FLUSH_ERR;
}

/* False: an entry that is of nothing any more. */
static bool fill(struct rnic_ibdev *ib, const struct rnic_cqe *cqe,
		 struct ib_wc *wc)
{
	u32 qpn = rnic_get(cqe, RNIC_CQE_QPN);
	struct rnic_qp *qp = rnic_table_find(&ib->qps, qpn);

	if (!qp || qp->qpn != qpn)
		return false;
	/* QP1 on its way through RESET: it is posted again (rnic_gsi.c). */
	if (READ_ONCE(qp->rq.paused) && is_flushed_receive(cqe))
		return false;
	memset(wc, 0, sizeof(*wc));
	wc->qp = &qp->ibqp;
	wc->status = rnic_get(cqe, RNIC_CQE_STATUS);
	wc->vendor_err = rnic_get(cqe, RNIC_CQE_SYNDROME);
	wc->byte_len = rnic_get(cqe, RNIC_CQE_BYTE_COUNT);
	if (!rnic_get(cqe, RNIC_CQE_IS_RECEIVE))
		return rnic_send_completed(qp, cqe, wc);
	fill_receive(qp, cqe, wc);
	return true;
}

int rnic_poll_cq(struct ib_cq *ibcq, int count, struct ib_wc *wc)
{
	struct rnic_ibdev *ib = to_rnic_ibdev(ibcq->device);
	struct rnic_cq *cq = to_rnic_cq(ibcq);
	unsigned long flags;
	u32 before;
	int done = 0;

	spin_lock_irqsave(&cq->lock, flags);
	before = cq->consumer;
	while (done < count && is_there(cq, cq->consumer)) {
		struct rnic_cqe cqe;

		/* The phase, then the rest, and the payload. */
		dma_rmb();
		cqe = *entry_at(cq, cq->consumer++);
		if (fill(ib, &cqe, &wc[done]))
			done++;
	}
	if (done < count)
		done += rnic_flush(cq, count - done, wc + done);
	if (cq->consumer != before) {
		/* What was read, then the index that gives it back. */
		mb();
		ring_cq(cq, RNIC_CQ_ARM_NONE);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return done;
}

/*
 * The device fires at once for what came since the last event, so no event is
 * missed, whatever the caller asks for.
 */
int rnic_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct rnic_cq *cq = to_rnic_cq(ibcq);
	bool solicited = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	unsigned long irq_flags;

	spin_lock_irqsave(&cq->lock, irq_flags);
	cq->armed = true;
	ring_cq(cq, solicited ? RNIC_CQ_ARM_SOLICITED : RNIC_CQ_ARM_ANY);
	spin_unlock_irqrestore(&cq->lock, irq_flags);
	rnic_flush_soon(to_rnic_dev(ibcq->device));
	return 0;
}

/*
 * The device has told of it. In the interrupt, which may come long after the
 * entry: the core is through with a queue when it has no queue pair any more.
 */
void rnic_cq_event(struct rnic_cq *cq)
{
	unsigned long flags;
	bool wanted;

	if (!cq->ibcq.comp_handler)
		return;
	spin_lock_irqsave(&cq->lock, flags);
	cq->armed = false;
	wanted = cq->ring.entry || cq->qps;
	spin_unlock_irqrestore(&cq->lock, flags);
	if (wanted)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/*
 * Entries of that QP are of nothing any more; or only those of receives that
 * were flushed. Returns how many receives are left. With the lock of the CQ.
 */
u32 rnic_cq_forget(struct rnic_cq *cq, u32 qpn, bool flushed_receives_only)
{
	u32 index, left = 0;

	for (index = cq->consumer; is_there(cq, index); index++) {
		struct rnic_cqe *cqe = entry_at(cq, index);

		/* The phase, then the rest. */
		dma_rmb();
		if (rnic_get(cqe, RNIC_CQE_QPN) != qpn)
			continue;
		if (flushed_receives_only && !is_flushed_receive(cqe)) {
			left += rnic_get(cqe, RNIC_CQE_IS_RECEIVE);
			continue;
		}
		/* There is no QP 0. */
		rnic_put(cqe, RNIC_CQE_QPN, 0);
	}
	return left;
}
