// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues. Requests are finished in any order, so each has a tag
 * that is free when its completion was polled; slots of the ring follow from
 * that: a request with a completion, and all before it, have been read.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "rnic_ib.h"

static int alloc_tags(struct rnic_srq *srq)
{
	u32 slots = BIT(srq->log_depth);
	u32 i;

	srq->wr_ids = kvcalloc(slots, sizeof(*srq->wr_ids), GFP_KERNEL);
	srq->free_tags = kvcalloc(slots, sizeof(*srq->free_tags), GFP_KERNEL);
	if (!srq->wr_ids || !srq->free_tags)
		return -ENOMEM;
	for (i = 0; i < slots; i++)
		srq->free_tags[i] = i;
	srq->free_count = slots;
	return 0;
}

static void free_srq(struct rnic_dev *dev, struct rnic_srq *srq)
{
	kvfree(srq->wr_ids);
	kvfree(srq->free_tags);
	rnic_ring_free(dev, &srq->ring);
}

int rnic_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init_attr,
		    struct ib_udata *udata)
{
	struct rnic_ucontext *ucontext =
		rdma_udata_to_drv_context(udata, struct rnic_ucontext,
					  ibucontext);
	struct rnic_ibdev *ib = to_rnic_ibdev(ibsrq->device);
	struct rnic_srq *srq = to_rnic_srq(ibsrq);
	struct ib_srq_attr *attr = &init_attr->attr;
	struct rnic_create_srq_resp response = {};
	struct rnic_admin_create_srq body = {};
	int err;

	if (init_attr->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > ibsrq->device->attrs.max_srq_wr ||
	    attr->max_sge > ib->dev->caps.max_sge)
		return -EINVAL;
	spin_lock_init(&srq->lock);
	srq->max_sge = max_t(u32, attr->max_sge, 1);
	srq->log_depth = order_base_2(attr->max_wr);
	srq->log_stride = max_t(u32, RNIC_MIN_LOG_RECEIVE_STRIDE,
				order_base_2(sizeof(struct rnic_wqe_receive) +
					     srq->max_sge *
					     sizeof(struct rnic_wqe_data)));
	err = rnic_ring_alloc(ib->dev, &srq->ring,
			      BIT(srq->log_depth + srq->log_stride),
			      ucontext ? &ucontext->ibucontext : NULL);
	if (err)
		return err;
	if (!udata)
		err = alloc_tags(srq);
	if (err)
		goto free;
	err = rnic_table_add(&ib->srqs, srq, &srq->srqn);
	if (err)
		goto free;
	rnic_put(&body, RNIC_ADMIN_CREATE_SRQ_BASE, srq->ring.buf.dma);
	rnic_put(&body, RNIC_ADMIN_CREATE_SRQ_PD, to_rnic_pd(ibsrq->pd)->pdn);
	rnic_put(&body, RNIC_ADMIN_CREATE_SRQ_LOG_DEPTH, srq->log_depth);
	rnic_put(&body, RNIC_ADMIN_CREATE_SRQ_LOG_STRIDE, srq->log_stride);
	rnic_put(&body, RNIC_ADMIN_CREATE_SRQ_UAR, rnic_uar_of(udata));
	rnic_put(&body, RNIC_ADMIN_CREATE_SRQ_LIMIT, attr->srq_limit);
	err = rnic_admin_execute(ib->dev, RNIC_ADMIN_OPCODE_CREATE_SRQ,
				 srq->srqn, body.word, NULL);
	if (err)
		goto remove;
	attr->max_wr = BIT(srq->log_depth);
	attr->max_sge = srq->max_sge;
	if (!udata)
		return 0;
	response.ring_offset = rnic_ring_offset(&srq->ring);
	response.ring_bytes = srq->ring.buf.bytes;
	response.srqn = srq->srqn;
	response.log_depth = srq->log_depth;
	response.log_stride = srq->log_stride;
	err = rnic_respond(udata, &response, sizeof(response));
	if (!err)
		return 0;
	rnic_admin_undo(ib->dev, RNIC_ADMIN_OPCODE_DESTROY_SRQ, srq->srqn);
remove:
	rnic_table_remove(&ib->srqs, srq->srqn);
	rnic_eqs_synchronize(ib->dev);
free:
	free_srq(ib->dev, srq);
	return err;
}

int rnic_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		    enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct rnic_srq *srq = to_rnic_srq(ibsrq);
	struct rnic_admin_modify_srq body = {};

	if (mask & IB_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > BIT(srq->log_depth))
		return -EINVAL;
	rnic_put(&body, RNIC_ADMIN_MODIFY_SRQ_SET_LIMIT, 1);
	rnic_put(&body, RNIC_ADMIN_MODIFY_SRQ_LIMIT, attr->srq_limit);
	return rnic_admin_execute(to_rnic_dev(ibsrq->device),
				  RNIC_ADMIN_OPCODE_MODIFY_SRQ, srq->srqn,
				  body.word, NULL);
}

int rnic_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct rnic_srq *srq = to_rnic_srq(ibsrq);
	struct rnic_admin_srq_state state;
	int err = rnic_admin_execute(to_rnic_dev(ibsrq->device),
				     RNIC_ADMIN_OPCODE_QUERY_SRQ, srq->srqn,
				     NULL, state.word);

	if (err)
		return err;
	attr->max_wr = BIT(srq->log_depth);
	attr->max_sge = srq->max_sge;
	attr->srq_limit = rnic_get(&state, RNIC_ADMIN_SRQ_STATE_LIMIT);
	return 0;
}

int rnic_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct rnic_ibdev *ib = to_rnic_ibdev(ibsrq->device);
	struct rnic_srq *srq = to_rnic_srq(ibsrq);
	int err = rnic_admin_destroy(ib->dev, RNIC_ADMIN_OPCODE_DESTROY_SRQ,
				     srq->srqn);

	if (err)
		return err;
	rnic_table_remove(&ib->srqs, srq->srqn);
	rnic_eqs_synchronize(ib->dev);
	free_srq(ib->dev, srq);
	return 0;
}

static int post_one(struct rnic_srq *srq, const struct ib_recv_wr *wr)
{
	u32 slot = srq->producer & (BIT(srq->log_depth) - 1);
	u16 tag;

	if (wr->num_sge < 0 || wr->num_sge > srq->max_sge)
		return -EINVAL;
	if (!srq->free_count)
		return -ENOMEM;
	tag = srq->free_tags[--srq->free_count];
	srq->wr_ids[tag] = wr->wr_id;
	rnic_build_receive(srq->ring.buf.va + ((size_t)slot << srq->log_stride),
			   srq->producer, tag, wr);
	srq->producer++;
	return 0;
}

int rnic_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr)
{
	struct rnic_srq *srq = to_rnic_srq(ibsrq);
	unsigned long flags;
	u16 before;
	int err = 0;

	spin_lock_irqsave(&srq->lock, flags);
	before = srq->producer;
	for (; wr; wr = wr->next) {
		err = post_one(srq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	if (srq->producer != before)
		/* writeq orders the ring before the doorbell. */
		rnic_ring(to_rnic_dev(ibsrq->device), RNIC_UAR_SRQ_DOORBELL,
			  rnic_value(RNIC_SRQ_DOORBELL_SRQN, srq->srqn) |
			  rnic_value(RNIC_SRQ_DOORBELL_PRODUCER_INDEX,
				     srq->producer));
	spin_unlock_irqrestore(&srq->lock, flags);
	return err;
}

/* With the lock of a CQ. */
u64 rnic_srq_complete(struct rnic_srq *srq, u16 tag)
{
	unsigned long flags;
	u64 wr_id;

	tag &= BIT(srq->log_depth) - 1;
	spin_lock_irqsave(&srq->lock, flags);
	wr_id = srq->wr_ids[tag];
	srq->free_tags[srq->free_count++] = tag;
	spin_unlock_irqrestore(&srq->lock, flags);
	return wr_id;
}
