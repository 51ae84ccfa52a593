// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting by the kernel: a request is built in its slot of the ring, then the
 * doorbell is rung. (The window for WQEs is for processes.)
 */
#include "rnic_ib.h"

/*
 * A slot is free when its request has retired and, unless it was silent, its
 * completion was polled, which needs what is kept beside the slot.
 */
static void retire(struct rnic_wq *sq, u16 index)
{
	u16 known = sq->retired - sq->oldest;
	u16 offered = index - sq->oldest;
	u16 taken = sq->producer - sq->oldest;

	if (offered > known && offered <= taken)
		sq->retired = index;
	while (sq->oldest != sq->retired) {
		struct rnic_send_slot *slot =
			&sq->slots[sq->oldest & (BIT(sq->log_depth) - 1)];

		if (!slot->silent && !slot->done)
			break;
		sq->oldest++;
	}
}

/* Silent requests that retire are told in a record. */
static void read_record(struct rnic_qp *qp)
{
	const __le64 *record = qp->ring.buf.va + qp->record_at;
	u16 index = le64_to_cpu(READ_ONCE(*record));

	/* It stands still while completions tell the same: only news count. */
	if (index == qp->sq.last_record)
		return;
	qp->sq.last_record = index;
	/* The record, then the slots that it says are free. */
	dma_rmb();
	retire(&qp->sq, index + qp->sq.base);
}

/* What the device has told of is free. With the lock of the queue. */
void rnic_retire_sends(struct rnic_qp *qp)
{
	read_record(qp);
	retire(&qp->sq, qp->sq.retired);
}

static bool has_slot(struct rnic_qp *qp)
{
	struct rnic_wq *sq = &qp->sq;

	if ((u16)(sq->producer - sq->oldest) >= sq->max_wr)
		read_record(qp);
	return (u16)(sq->producer - sq->oldest) < sq->max_wr;
}

/* With the lock of the queue. */
void rnic_ring_sends(struct rnic_qp *qp)
{
	struct rnic_wq *sq = &qp->sq;

	if (sq->paused)
		return;
	/* writeq orders the ring before the doorbell. */
	rnic_ring(to_rnic_dev(qp->ibqp.device), RNIC_UAR_SEND_DOORBELL,
		  rnic_value(RNIC_SEND_DOORBELL_QPN, qp->qpn) |
		  rnic_value(RNIC_SEND_DOORBELL_PRODUCER_INDEX,
			     (u16)(sq->producer - sq->base)));
}

void rnic_ring_receives(struct rnic_qp *qp)
{
	struct rnic_wq *rq = &qp->rq;

	if (rq->paused)
		return;
	rnic_ring(to_rnic_dev(qp->ibqp.device), RNIC_UAR_RECEIVE_DOORBELL,
		  rnic_value(RNIC_RECEIVE_DOORBELL_QPN, qp->qpn) |
		  rnic_value(RNIC_RECEIVE_DOORBELL_PRODUCER_INDEX,
			     (u16)(rq->producer - rq->base)));
}

static int post_send_one(struct rnic_qp *qp, const struct ib_send_wr *wr)
{
	bool silent = !qp->signal_all && !(wr->send_flags & IB_SEND_SIGNALED);
	struct rnic_wq *sq = &qp->sq;
	struct rnic_send_slot *slot;
	u64 length;
	int err;

	err = rnic_check_send(qp, wr, &length);
	if (err)
		return err;
	if (!has_slot(qp))
		return -ENOMEM;
	slot = &sq->slots[sq->producer & (BIT(sq->log_depth) - 1)];
	slot->opcode = rnic_build_send(qp, wr, length, silent);
	slot->wr_id = wr->wr_id;
	slot->silent = silent;
	slot->done = false;
	sq->producer++;
	return 0;
}

int rnic_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr)
{
	struct rnic_qp *qp = to_rnic_qp(ibqp);
	struct rnic_wq *sq = &qp->sq;
	unsigned long flags;
	u16 before;
	int err = 0;

	spin_lock_irqsave(&sq->lock, flags);
	before = sq->producer;
	if (qp->state < IB_QPS_RTS)
		err = -EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = post_send_one(qp, wr);
		if (err)
			break;
	}
	if (err)
		*bad_wr = wr;
	if (sq->producer != before)
		rnic_ring_sends(qp);
	spin_unlock_irqrestore(&sq->lock, flags);
	rnic_flush_soon(to_rnic_dev(ibqp->device));
	return err;
}

static int post_recv_one(struct rnic_qp *qp, const struct ib_recv_wr *wr)
{
	struct rnic_wq *rq = &qp->rq;

	if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
		return -EINVAL;
	if ((u16)(rq->producer - rq->oldest) >= rq->max_wr)
		return -ENOMEM;
	rnic_build_receive(rnic_slot_at(rq, rq->producer),
			   rq->producer - rq->base, 0, wr);
	rq->wr_ids[rq->producer & (BIT(rq->log_depth) - 1)] = wr->wr_id;
	rq->producer++;
	return 0;
}

int rnic_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr)
{
	struct rnic_qp *qp = to_rnic_qp(ibqp);
	struct rnic_wq *rq = &qp->rq;
	unsigned long flags;
	u16 before;
	int err = 0;

	spin_lock_irqsave(&rq->lock, flags);
	before = rq->producer;
	if (qp->state == IB_QPS_RESET || ibqp->srq)
		err = -EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = post_recv_one(qp, wr);
		if (err)
			break;
	}
	if (err)
		*bad_wr = wr;
	if (rq->producer != before)
		rnic_ring_receives(qp);
	spin_unlock_irqrestore(&rq->lock, flags);
	rnic_flush_soon(to_rnic_dev(ibqp->device));
	return err;
}

/* With the lock of the CQ. False: nothing was posted there. */
bool rnic_send_completed(struct rnic_qp *qp, const struct rnic_cqe *cqe,
			 struct ib_wc *wc)
{
	struct rnic_wq *sq = &qp->sq;
	u16 index = rnic_get(cqe, RNIC_CQE_WQE_INDEX) + sq->base;
	struct rnic_send_slot *slot =
		&sq->slots[index & (BIT(sq->log_depth) - 1)];
	unsigned long flags;
	bool known;

	spin_lock_irqsave(&sq->lock, flags);
	known = (u16)(index - sq->oldest) < (u16)(sq->producer - sq->oldest) &&
		!slot->done;
	if (known) {
		wc->wr_id = slot->wr_id;
		wc->opcode = slot->opcode;
		slot->done = true;
		read_record(qp);
		retire(sq, rnic_get(cqe, RNIC_CQE_RETIRED_INDEX) + sq->base);
	}
	spin_unlock_irqrestore(&sq->lock, flags);
	return known;
}

/* Receives complete in the order of their posting. */
u64 rnic_receive_completed(struct rnic_qp *qp)
{
	struct rnic_wq *rq = &qp->rq;
	unsigned long flags;
	u64 wr_id;

	spin_lock_irqsave(&rq->lock, flags);
	wr_id = rq->wr_ids[rq->oldest++ & (BIT(rq->log_depth) - 1)];
	spin_unlock_irqrestore(&rq->lock, flags);
	return wr_id;
}

/* The device's indexes are 0 again, and nothing is posted. */
void rnic_wq_reset(struct rnic_qp *qp)
{
	struct rnic_wq *queues[] = { &qp->sq, &qp->rq };
	__le64 *record = qp->ring.buf.va + qp->record_at;
	unsigned long flags;
	int i;

	for (i = 0; i < ARRAY_SIZE(queues); i++) {
		struct rnic_wq *wq = queues[i];

		spin_lock_irqsave(&wq->lock, flags);
		wq->base = 0;
		wq->producer = 0;
		wq->oldest = 0;
		wq->retired = 0;
		wq->last_record = 0;
		spin_unlock_irqrestore(&wq->lock, flags);
	}
	*record = 0;
}
