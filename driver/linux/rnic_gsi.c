// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QP1 and the addresses of the port. It is there before the port has an IP
 * address, and a UD QP has the addresses that it got on the way to RTR. So when
 * they change it goes through RESET, and what was posted is posted again: its
 * user, the core, sees nothing of it.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "rnic_ib.h"

#define RNIC_DRAIN_POLLS 1000
#define RNIC_DRAIN_MS 10

void rnic_gsi_addresses_changed(struct rnic_ibdev *ib)
{
	queue_work(system_long_wq, &ib->gsi_work);
}

static bool has_those_addresses(struct rnic_qp *qp,
				const struct rnic_admin_modify_qp *next)
{
	unsigned int bytes = RNIC_ADMIN_MODIFY_QP_DEST_IP_BYTE +
			     sizeof(union ib_gid) -
			     RNIC_ADMIN_MODIFY_QP_SOURCE_IP_BYTE;

	return !memcmp(rnic_bytes(&qp->attr, RNIC_ADMIN_MODIFY_QP_SOURCE_IP_BYTE),
		       rnic_bytes(next, RNIC_ADMIN_MODIFY_QP_SOURCE_IP_BYTE),
		       bytes);
}

/* Returns the index of the next request. */
static u16 set_paused(struct rnic_wq *wq, bool paused)
{
	unsigned long flags;
	u16 next;

	spin_lock_irqsave(&wq->lock, flags);
	wq->paused = paused;
	next = wq->producer;
	spin_unlock_irqrestore(&wq->lock, flags);
	return next;
}

/*
 * Datagrams leave without anybody's answer, and the core asks for a completion
 * of each and polls it.
 */
static int wait_for_sends(struct rnic_qp *qp, u16 until)
{
	int polls = RNIC_DRAIN_POLLS;

	while (READ_ONCE(qp->sq.oldest) != until) {
		if (!polls-- || rnic_failed(to_rnic_dev(qp->ibqp.device)))
			return -ETIMEDOUT;
		msleep(RNIC_DRAIN_MS);
	}
	return 0;
}

/*
 * The device's indexes begin with 0 again: what is posted from `first` on moves
 * to the front of the ring, where it is its request number 0. With the lock of
 * the queue.
 */
static void move_to_front(struct rnic_wq *wq, u16 first, u8 *copy,
			  unsigned int index_field)
{
	u32 mask = BIT(wq->log_depth) - 1;
	size_t stride = BIT(wq->log_stride);
	u16 index;

	memcpy(copy, wq->ring, stride << wq->log_depth);
	for (index = first; index != wq->producer; index++) {
		u16 to = index - first;
		u8 *wqe = wq->ring + (to & mask) * stride;

		memcpy(wqe, copy + ((u16)(index - wq->base) & mask) * stride,
		       stride);
		rnic_put_words((__le64 *)wqe, index_field, to);
	}
	wq->base = first;
}

static int tell_state(struct rnic_qp *qp, struct rnic_admin_modify_qp *next,
		      enum ib_qp_state state, u32 mask)
{
	rnic_put(next, RNIC_ADMIN_MODIFY_QP_NEXT_STATE, state);
	rnic_put(next, RNIC_ADMIN_MODIFY_QP_ATTR_MASK, mask | IB_QP_STATE);
	return rnic_tell_qp(qp, next);
}

static void restart_queues(struct rnic_qp *qp, u16 first_send, u8 *copy)
{
	struct rnic_cq *cq = to_rnic_cq(qp->ibqp.recv_cq);
	__le64 *record = qp->ring.buf.va + qp->record_at;
	struct rnic_wq *sq = &qp->sq, *rq = &qp->rq;
	unsigned long flags;
	u32 arrived;

	spin_lock_irqsave(&sq->lock, flags);
	move_to_front(sq, first_send, copy, RNIC_WQE_CONTROL_WQE_INDEX);
	sq->last_record = 0;
	*record = 0;
	spin_unlock_irqrestore(&sq->lock, flags);
	/* Receives that were flushed, and what was posted meanwhile. */
	spin_lock_irqsave(&cq->lock, flags);
	arrived = rnic_cq_forget(cq, qp->qpn, true);
	spin_lock(&rq->lock);
	move_to_front(rq, rq->oldest + arrived, copy,
		      RNIC_WQE_RECEIVE_WQE_INDEX);
	spin_unlock(&rq->lock);
	spin_unlock_irqrestore(&cq->lock, flags);
}

static int go_through_reset(struct rnic_qp *qp,
			    struct rnic_admin_modify_qp *next, u8 *copy)
{
	u16 first_send = set_paused(&qp->sq, true);
	int err;

	set_paused(&qp->rq, true);
	err = wait_for_sends(qp, first_send);
	if (err)
		return err;
	err = tell_state(qp, next, IB_QPS_RESET, 0);
	if (err)
		return err;
	restart_queues(qp, first_send, copy);
	err = tell_state(qp, next, IB_QPS_INIT,
			 IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);
	if (!err)
		err = tell_state(qp, next, IB_QPS_RTR,
				 IB_QP_AV | IB_QP_PATH_MTU);
	if (!err)
		err = tell_state(qp, next, IB_QPS_RTS, IB_QP_SQ_PSN);
	return err;
}

static void resume(struct rnic_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->rq.lock, flags);
	qp->rq.paused = false;
	rnic_ring_receives(qp);
	spin_unlock_irqrestore(&qp->rq.lock, flags);
	spin_lock_irqsave(&qp->sq.lock, flags);
	qp->sq.paused = false;
	rnic_ring_sends(qp);
	spin_unlock_irqrestore(&qp->sq.lock, flags);
}

static int change_addresses(struct rnic_qp *qp)
{
	struct rnic_admin_modify_qp next = qp->attr;
	u8 *copy;
	int err;

	/* On the way to RTR it will get them. */
	if (qp->state != IB_QPS_RTS)
		return 0;
	err = rnic_put_own_addresses(qp, &next);
	/* Without any it keeps those that it has. */
	if (err || has_those_addresses(qp, &next))
		return 0;
	copy = kvmalloc(max(BIT(qp->sq.log_depth + qp->sq.log_stride),
			    BIT(qp->rq.log_depth + qp->rq.log_stride)),
			GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	err = go_through_reset(qp, &next, copy);
	resume(qp);
	kvfree(copy);
	return err;
}

void rnic_gsi_work(struct work_struct *work)
{
	struct rnic_ibdev *ib = container_of(work, struct rnic_ibdev, gsi_work);
	struct rnic_qp *qp;
	int err = 0;

	mutex_lock(&ib->gsi_mutex);
	qp = ib->gsi;
	if (qp) {
		mutex_lock(&qp->mutex);
		err = change_addresses(qp);
		mutex_unlock(&qp->mutex);
	}
	mutex_unlock(&ib->gsi_mutex);
	if (err && !rnic_failed(ib->dev))
		ibdev_err(&ib->ibdev, "QP1 has not got new addresses: %pe\n", ERR_PTR(err));
}
