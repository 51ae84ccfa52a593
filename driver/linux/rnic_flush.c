// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs of a device that has failed. They are in the error state: what
 * was posted, and what still is, completes as flushed, so that whoever waits for
 * a completion before it lets go of the device gets it (IB specification
 * 10.3.1.5). The device tells no more of them, so the driver does; of those of
 * the kernel, a process has its own way to learn of it.
 *
 * A completion queue is asked for both: first for what the device has written,
 * then for what it left.
 */
#include "rnic_ib.h"

static bool is_of_kernel(struct rnic_qp *qp)
{
	return !qp->ring.entry;
}

/* As rnic_flush, of one queue: `count` stands for any number without wc. */
static int flush_sends(struct rnic_qp *qp, int count, struct ib_wc *wc)
{
	struct rnic_wq *sq = &qp->sq;
	unsigned long flags;
	int done = 0;

	spin_lock_irqsave(&sq->lock, flags);
	for (rnic_retire_sends(qp); done < count; done++) {
		struct rnic_send_slot *slot;

		if (sq->oldest == sq->producer)
			break;
		if (!wc) {
			done = count;
			break;
		}
		slot = &sq->slots[sq->oldest & (BIT(sq->log_depth) - 1)];
		wc[done] = (struct ib_wc){
			.wr_id = slot->wr_id,
			.status = IB_WC_WR_FLUSH_ERR,
			.opcode = slot->opcode,
			.qp = &qp->ibqp,
		};
		slot->done = true;
		if (sq->retired == sq->oldest)
			sq->retired++;
		rnic_retire_sends(qp);
	}
	spin_unlock_irqrestore(&sq->lock, flags);
	return done;
}

static int flush_receives(struct rnic_qp *qp, int count, struct ib_wc *wc)
{
	struct rnic_wq *rq = &qp->rq;
	unsigned long flags;
	int done = 0;

	if (qp->ibqp.srq)
		return 0;
	spin_lock_irqsave(&rq->lock, flags);
	while (done < count && rq->oldest != rq->producer) {
		if (!wc) {
			done = count;
			break;
		}
		wc[done++] = (struct ib_wc){
			.wr_id = rq->wr_ids[rq->oldest++ &
					    (BIT(rq->log_depth) - 1)],
			.status = IB_WC_WR_FLUSH_ERR,
			.opcode = IB_WC_RECV,
			.qp = &qp->ibqp,
		};
	}
	spin_unlock_irqrestore(&rq->lock, flags);
	return done;
}

/*
 * Up to `count` completions, or, without wc, whether there are any. With the
 * lock of the CQ, and when there is no entry of the device in it.
 */
int rnic_flush(struct rnic_cq *cq, int count, struct ib_wc *wc)
{
	struct rnic_ibdev *ib = to_rnic_ibdev(cq->ibcq.device);
	struct rnic_qp *qp;
	unsigned long index;
	int done = 0;

	if (!rnic_failed(ib->dev))
		return 0;
	/* None of them is destroyed meanwhile, those of other queues neither. */
	xa_lock(&ib->qps.xa);
	xa_for_each(&ib->qps.xa, index, qp) {
		if (!is_of_kernel(qp))
			continue;
		if (qp->ibqp.send_cq == &cq->ibcq)
			done += flush_sends(qp, count - done,
					    wc ? wc + done : NULL);
		if (qp->ibqp.recv_cq == &cq->ibcq)
			done += flush_receives(qp, count - done,
					       wc ? wc + done : NULL);
		if (done == count)
			break;
	}
	xa_unlock(&ib->qps.xa);
	return done;
}

/* As the device would: once for each time that the queue was armed. */
static void tell(struct rnic_cq *cq)
{
	unsigned long flags;
	bool any;

	spin_lock_irqsave(&cq->lock, flags);
	any = cq->armed && cq->qps &&
	      (rnic_cq_has_entry(cq) || rnic_flush(cq, 1, NULL));
	if (any)
		cq->armed = false;
	spin_unlock_irqrestore(&cq->lock, flags);
	if (any)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

void rnic_flush_work(struct work_struct *work)
{
	struct rnic_dev *dev = container_of(work, struct rnic_dev, flush);
	struct rnic_ibdev *ib = READ_ONCE(dev->ib);
	unsigned long index;
	struct rnic_cq *cq;

	if (!ib || !rnic_failed(dev))
		return;
	/* None is destroyed meanwhile, and handlers expect an interrupt. */
	xa_lock_irq(&ib->cqs.xa);
	xa_for_each(&ib->cqs.xa, index, cq)
		if (cq->ibcq.comp_handler)
			tell(cq);
	xa_unlock_irq(&ib->cqs.xa);
}

/* Something was posted, or a queue armed: behind that, in any context. */
void rnic_flush_soon(struct rnic_dev *dev)
{
	/* Pairs with cut_off: either this or that one sees the other's. */
	smp_mb();
	if (rnic_failed(dev))
		queue_work(system_wq, &dev->flush);
}
