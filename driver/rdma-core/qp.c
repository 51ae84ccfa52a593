// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs: creation, states, end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rnic.h"

static void free_qp(struct rnic_qp *qp)
{
	rnic_unmap(&qp->ring);
	free(qp->sq.slots);
	free(qp->rq.wr_ids);
	free(qp);
}

static int set_up_queues(struct rnic_qp *qp,
			 const struct urnic_create_qp_resp *response,
			 const struct ibv_qp_cap *cap)
{
	struct rnic_sq *sq = &qp->sq;
	struct rnic_rq *rq = &qp->rq;

	sq->ring = qp->ring.at;
	sq->record = (const __le64 *)(qp->ring.at + response->record_at);
	sq->log_depth = response->send_log_depth;
	sq->log_stride = response->send_log_stride;
	sq->max_wr = cap->max_send_wr;
	sq->max_sge = cap->max_send_sge;
	sq->max_inline = cap->max_inline_data;
	sq->slots = calloc(1U << sq->log_depth, sizeof(*sq->slots));
	rq->ring = qp->ring.at + response->receive_at;
	rq->log_depth = response->receive_log_depth;
	rq->log_stride = response->receive_log_stride;
	rq->max_wr = cap->max_recv_wr;
	rq->max_sge = cap->max_recv_sge;
	rq->wr_ids = calloc(1U << rq->log_depth, sizeof(*rq->wr_ids));
	return sq->slots && rq->wr_ids ? 0 : ENOMEM;
}

struct ibv_qp *rnic_create_qp_ex(struct ibv_context *ibv_context,
				 struct ibv_qp_init_attr_ex *attr)
{
	struct rnic_context *context = to_rnic_context(ibv_context);
	struct urnic_create_qp_resp response = {};
	struct urnic_create_qp command = {};
	struct rnic_qp *qp = calloc(1, sizeof(*qp));
	uint32_t comp_mask = attr->comp_mask;
	int err;

	if (!qp)
		return NULL;
	err = EOPNOTSUPP;
	if (comp_mask & ~(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
			  IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		goto free;
	/* There are none, but a program may say so. */
	if (comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags)
		goto free;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		err = rnic_set_wr_ops(qp, attr->send_ops_flags);
		if (err)
			goto free;
	}
	attr->comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS;
	err = ibv_cmd_create_qp_ex(ibv_context, &qp->verbs_qp, attr,
				   &command.ibv_cmd, sizeof(command),
				   &response.ibv_resp, sizeof(response));
	attr->comp_mask = comp_mask;
	if (err)
		goto free;
	qp->signal_all = attr->sq_sig_all;
	pthread_spin_init(&qp->sq.lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&qp->rq.lock, PTHREAD_PROCESS_PRIVATE);
	err = rnic_map(ibv_context, &qp->ring, response.ring_offset,
		       response.ring_bytes);
	if (!err)
		err = set_up_queues(qp, &response, &attr->cap);
	if (err)
		goto destroy;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		qp->verbs_qp.comp_mask |= VERBS_QP_EX;
	context->qps[qp->verbs_qp.qp.qp_num % RNIC_QPS] = qp;
	return &qp->verbs_qp.qp;
destroy:
	ibv_cmd_destroy_qp(&qp->verbs_qp.qp);
free:
	free_qp(qp);
	errno = err;
	return NULL;
}

struct ibv_qp *rnic_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex attr_ex = {};
	struct ibv_qp *qp;

	memcpy(&attr_ex, attr, sizeof(*attr));
	attr_ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr_ex.pd = pd;
	qp = rnic_create_qp_ex(pd->context, &attr_ex);
	if (qp)
		memcpy(attr, &attr_ex, sizeof(*attr));
	return qp;
}

static void forget_completions(struct rnic_qp *qp)
{
	rnic_cq_forget(to_rnic_cq(qp->verbs_qp.qp.send_cq), qp->verbs_qp.qp.qp_num);
	rnic_cq_forget(to_rnic_cq(qp->verbs_qp.qp.recv_cq), qp->verbs_qp.qp.qp_num);
}

/* The device's indexes are 0 again, and the driver has zeroed the record. */
static void reset_queues(struct rnic_qp *qp)
{
	forget_completions(qp);
	pthread_spin_lock(&qp->sq.lock);
	qp->sq.producer = 0;
	qp->sq.retired = 0;
	qp->sq.oldest = 0;
	qp->sq.last_record = 0;
	pthread_spin_unlock(&qp->sq.lock);
	pthread_spin_lock(&qp->rq.lock);
	qp->rq.producer = 0;
	qp->rq.oldest = 0;
	pthread_spin_unlock(&qp->rq.lock);
}

int rnic_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_modify_qp command = {};
	int err = ibv_cmd_modify_qp(qp, attr, mask, &command, sizeof(command));

	if (!err && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		reset_queues(to_rnic_qp(qp));
	return err;
}

int rnic_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp command = {};

	return ibv_cmd_query_qp(qp, attr, mask, init_attr, &command,
				sizeof(command));
}

int rnic_destroy_qp(struct ibv_qp *ibv_qp)
{
	struct rnic_context *context = to_rnic_context(ibv_qp->context);
	struct rnic_qp *qp = to_rnic_qp(ibv_qp);
	struct rnic_qp **place = &context->qps[ibv_qp->qp_num % RNIC_QPS];
	int err = ibv_cmd_destroy_qp(ibv_qp);

	if (err)
		return err;
	/* Another one may have its index by now. */
	__atomic_compare_exchange_n(place, &qp, NULL, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	qp = to_rnic_qp(ibv_qp);
	/* Takes the locks of the CQs, so that nobody polls for it behind that. */
	forget_completions(qp);
	free_qp(qp);
	return 0;
}
