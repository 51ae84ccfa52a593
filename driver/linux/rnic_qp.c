// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs: creation and end. */
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_mad.h>
#include <rdma/uverbs_ioctl.h>

#include "rnic_ib.h"

#define RNIC_GSI_QPN 1
#define RNIC_LINE 64

static int hw_type(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return RNIC_QP_TYPE_RC;
	case IB_QPT_UC:
		return RNIC_QP_TYPE_UC;
	case IB_QPT_UD:
	case IB_QPT_GSI:
		return RNIC_QP_TYPE_UD;
	default:
		return -EOPNOTSUPP;
	}
}

/* What is in front of data segments, at most, or of inline bytes. */
static u32 head_bytes(enum ib_qp_type type)
{
	u32 second = type == IB_QPT_UD || type == IB_QPT_GSI ?
			     sizeof(struct rnic_wqe_address) :
			     sizeof(struct rnic_wqe_remote);

	return sizeof(struct rnic_wqe_control) + second;
}

static int size_queues(struct rnic_qp *qp, struct ib_qp_init_attr *attr)
{
	const struct rnic_caps *caps = &to_rnic_dev(qp->ibqp.device)->caps;
	struct ib_qp_cap *cap = &attr->cap;
	u32 head = head_bytes(attr->qp_type);
	struct rnic_wq *sq = &qp->sq, *rq = &qp->rq;

	if (cap->max_send_wr > RNIC_MAX_WR || cap->max_recv_wr > RNIC_MAX_WR ||
	    cap->max_send_sge > caps->max_sge ||
	    cap->max_recv_sge > caps->max_sge ||
	    cap->max_inline_data > caps->max_inline)
		return -EINVAL;
	sq->log_depth = order_base_2(max_t(u32, cap->max_send_wr, 1));
	sq->max_wr = BIT(sq->log_depth);
	sq->max_sge = max_t(u32, cap->max_send_sge, 1);
	sq->max_inline = cap->max_inline_data;
	sq->log_stride = max_t(u32, RNIC_MIN_LOG_SEND_STRIDE,
			       order_base_2(head +
					    max_t(u32, sq->max_inline,
						  sq->max_sge *
						  sizeof(struct rnic_wqe_data))));
	cap->max_send_wr = sq->max_wr;
	cap->max_send_sge = sq->max_sge;
	qp->receive_at = PAGE_ALIGN(BIT(sq->log_depth + sq->log_stride));
	qp->record_at = qp->receive_at;
	if (attr->srq) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	} else {
		rq->log_depth = order_base_2(max_t(u32, cap->max_recv_wr, 1));
		rq->max_wr = BIT(rq->log_depth);
		rq->max_sge = max_t(u32, cap->max_recv_sge, 1);
		rq->log_stride = max_t(u32, RNIC_MIN_LOG_RECEIVE_STRIDE,
				       order_base_2(sizeof(struct rnic_wqe_receive) +
						    rq->max_sge *
						    sizeof(struct rnic_wqe_data)));
		cap->max_recv_wr = rq->max_wr;
		cap->max_recv_sge = rq->max_sge;
		qp->record_at += ALIGN(BIT(rq->log_depth + rq->log_stride),
				       RNIC_LINE);
	}
	return 0;
}

/* What the kernel keeps beside the slots of its own queues. */
static int alloc_slots(struct rnic_qp *qp)
{
	struct rnic_wq *sq = &qp->sq, *rq = &qp->rq;

	sq->ring = qp->ring.buf.va;
	rq->ring = qp->ring.buf.va + qp->receive_at;
	sq->slots = kvcalloc(sq->max_wr, sizeof(*sq->slots), GFP_KERNEL);
	if (rq->max_wr)
		rq->wr_ids = kvcalloc(rq->max_wr, sizeof(*rq->wr_ids),
				      GFP_KERNEL);
	return sq->slots && (rq->wr_ids || !rq->max_wr) ? 0 : -ENOMEM;
}

static void free_qp(struct rnic_dev *dev, struct rnic_qp *qp)
{
	kvfree(qp->sq.slots);
	kvfree(qp->rq.wr_ids);
	rnic_ring_free(dev, &qp->ring);
}

static int create_on_device(struct rnic_qp *qp, struct ib_qp_init_attr *attr,
			    struct ib_udata *udata)
{
	struct rnic_admin_create_qp body = {};
	dma_addr_t base = qp->ring.buf.dma;

	rnic_put(&body, RNIC_ADMIN_CREATE_QP_SQ_BASE, base);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_RETIRED_ADDRESS,
		 base + qp->record_at);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_PD, to_rnic_pd(qp->ibqp.pd)->pdn);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_UAR, rnic_uar_of(udata));
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_SEND_CQN,
		 to_rnic_cq(attr->send_cq)->cqn);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_RECEIVE_CQN,
		 to_rnic_cq(attr->recv_cq)->cqn);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_SQ_LOG_DEPTH, qp->sq.log_depth);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_SQ_LOG_STRIDE, qp->sq.log_stride);
	if (attr->srq) {
		rnic_put(&body, RNIC_ADMIN_CREATE_QP_USE_SRQ, 1);
		rnic_put(&body, RNIC_ADMIN_CREATE_QP_SRQN,
			 to_rnic_srq(attr->srq)->srqn);
	} else {
		rnic_put(&body, RNIC_ADMIN_CREATE_QP_RQ_BASE,
			 base + qp->receive_at);
		rnic_put(&body, RNIC_ADMIN_CREATE_QP_RQ_LOG_DEPTH,
			 qp->rq.log_depth);
		rnic_put(&body, RNIC_ADMIN_CREATE_QP_RQ_LOG_STRIDE,
			 qp->rq.log_stride);
	}
	/* It names DMA addresses, so it is not for processes. */
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_FAST_REGISTER, !udata);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_QP_TYPE, hw_type(attr->qp_type));
	return rnic_admin_execute(to_rnic_dev(qp->ibqp.device),
				  RNIC_ADMIN_OPCODE_CREATE_QP, qp->qpn,
				  body.word, NULL);
}

static int answer(struct rnic_qp *qp, struct ib_udata *udata)
{
	struct rnic_create_qp_resp response = {
		.ring_offset = rnic_ring_offset(&qp->ring),
		.ring_bytes = qp->ring.buf.bytes,
		.receive_at = qp->receive_at,
		.record_at = qp->record_at,
		.send_log_depth = qp->sq.log_depth,
		.send_log_stride = qp->sq.log_stride,
		.receive_log_depth = qp->rq.log_depth,
		.receive_log_stride = qp->rq.log_stride,
	};

	return rnic_respond(udata, &response, sizeof(response));
}

/* Its completion queues have it, or have it no more. */
static void tell_cqs(struct rnic_qp *qp, bool there)
{
	struct rnic_cq *cqs[] = { to_rnic_cq(qp->ibqp.send_cq),
				  to_rnic_cq(qp->ibqp.recv_cq) };
	unsigned long flags;
	int i;

	for (i = 0; i < ARRAY_SIZE(cqs); i++) {
		spin_lock_irqsave(&cqs[i]->lock, flags);
		cqs[i]->qps += there ? 1 : -1;
		/* Entries that are left are those of a process. */
		if (!there && !qp->ring.entry)
			rnic_cq_forget(cqs[i], qp->qpn, false);
		spin_unlock_irqrestore(&cqs[i]->lock, flags);
	}
}

/* The table of QPs has no place for QP1; who looks there finds it at 1. */
static int take_number(struct rnic_ibdev *ib, struct rnic_qp *qp)
{
	int err;

	qp->qpn = RNIC_GSI_QPN;
	if (qp->ibqp.qp_type == IB_QPT_GSI)
		err = xa_insert_irq(&ib->qps.xa, RNIC_GSI_QPN, qp, GFP_KERNEL);
	else
		err = rnic_table_add(&ib->qps, qp, &qp->qpn);
	if (!err)
		tell_cqs(qp, true);
	return err;
}

/*
 * Nobody who polls or handles an event has it any more when this returns, and
 * no event of a queue that was its alone is handled.
 */
static void give_back_number(struct rnic_ibdev *ib, struct rnic_qp *qp)
{
	rnic_table_remove(&ib->qps, qp->qpn);
	tell_cqs(qp, false);
	rnic_eqs_synchronize(ib->dev);
	flush_work(&ib->dev->flush);
}

int rnic_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		   struct ib_udata *udata)
{
	struct rnic_ucontext *ucontext =
		rdma_udata_to_drv_context(udata, struct rnic_ucontext,
					  ibucontext);
	struct rnic_ibdev *ib = to_rnic_ibdev(ibqp->device);
	struct rnic_qp *qp = to_rnic_qp(ibqp);
	int err;

	if (attr->create_flags || hw_type(attr->qp_type) < 0)
		return -EOPNOTSUPP;
	/* A message that is lost has taken no receive there. */
	if (attr->qp_type == IB_QPT_UC && attr->srq)
		return -EOPNOTSUPP;
	if (attr->qp_type == IB_QPT_GSI && udata)
		return -EPERM;
	err = size_queues(qp, attr);
	if (err)
		return err;
	mutex_init(&qp->mutex);
	spin_lock_init(&qp->sq.lock);
	spin_lock_init(&qp->rq.lock);
	qp->state = IB_QPS_RESET;
	qp->signal_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	err = rnic_ring_alloc(ib->dev, &qp->ring,
			      qp->record_at + sizeof(struct rnic_retired_record),
			      ucontext ? &ucontext->ibucontext : NULL);
	if (err)
		return err;
	if (!udata)
		err = alloc_slots(qp);
	if (err)
		goto free;
	err = take_number(ib, qp);
	if (err)
		goto free;
	err = create_on_device(qp, attr, udata);
	if (err)
		goto remove;
	ibqp->qp_num = qp->qpn;
	if (attr->qp_type == IB_QPT_GSI) {
		mutex_lock(&ib->gsi_mutex);
		ib->gsi = qp;
		mutex_unlock(&ib->gsi_mutex);
	}
	if (!udata)
		return 0;
	err = answer(qp, udata);
	if (!err)
		return 0;
	rnic_admin_undo(ib->dev, RNIC_ADMIN_OPCODE_DESTROY_QP, qp->qpn);
remove:
	give_back_number(ib, qp);
free:
	free_qp(ib->dev, qp);
	return err;
}

int rnic_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct rnic_ibdev *ib = to_rnic_ibdev(ibqp->device);
	struct rnic_qp *qp = to_rnic_qp(ibqp);
	int err;

	if (ibqp->qp_type == IB_QPT_GSI) {
		mutex_lock(&ib->gsi_mutex);
		ib->gsi = NULL;
		mutex_unlock(&ib->gsi_mutex);
	}
	err = rnic_admin_destroy(ib->dev, RNIC_ADMIN_OPCODE_DESTROY_QP,
				 qp->qpn);
	if (err)
		return err;
	give_back_number(ib, qp);
	free_qp(ib->dev, qp);
	return 0;
}

static int multicast(struct ib_qp *ibqp, union ib_gid *gid,
		     enum rnic_admin_opcode opcode)
{
	struct rnic_admin_multicast body = {};

	memcpy(rnic_bytes(&body, RNIC_ADMIN_MULTICAST_MGID_BYTE), gid->raw,
	       sizeof(gid->raw));
	return rnic_admin_execute(to_rnic_dev(ibqp->device), opcode,
				  to_rnic_qp(ibqp)->qpn, body.word, NULL);
}

int rnic_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	int err = multicast(ibqp, gid, RNIC_ADMIN_OPCODE_ATTACH_MULTICAST);

	/* Attached already, which the callers take for success. */
	return err == -EEXIST ? 0 : err;
}

int rnic_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	int err = multicast(ibqp, gid, RNIC_ADMIN_OPCODE_DETACH_MULTICAST);

	return rnic_failed(to_rnic_dev(ibqp->device)) ? 0 : err;
}
