// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues. An entry is there when its phase is that of the pass over
 * the ring; it is read behind a barrier, and given back behind another.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rnic.h"

#define INDEX_MASK 0xffffff

static struct rnic_cqe *entry_at(struct rnic_cq *cq, uint32_t index)
{
	uint32_t place = (index - cq->origin) & INDEX_MASK;
	struct rnic_cqe *ring = (struct rnic_cqe *)cq->ring.at;

	return &ring[place & ((1U << cq->log_depth) - 1)];
}

static bool is_there(struct rnic_cq *cq, uint32_t index)
{
	uint32_t place = (index - cq->origin) & INDEX_MASK;
	uint64_t word = le64toh(*(volatile __le64 *)
				&entry_at(cq, index)->word[7]);

	return (word >> 56 & 1) == (~(place >> cq->log_depth) & 1);
}

static void ring_cq(struct rnic_cq *cq, enum rnic_cq_arm arm)
{
	rnic_doorbell(to_rnic_context(cq->verbs_cq.cq.context),
		      RNIC_UAR_CQ_DOORBELL,
		      rnic_value(RNIC_CQ_DOORBELL_CQN, cq->cqn) |
		      rnic_value(RNIC_CQ_DOORBELL_ARM, arm) |
		      rnic_value(RNIC_CQ_DOORBELL_CONSUMER_INDEX,
				 cq->consumer));
	cq->told = cq->consumer;
}

static int set_up(struct rnic_cq *cq, struct ibv_context *context,
		  const struct rnic_create_cq_resp *response)
{
	cq->cqn = response->cqn;
	cq->log_depth = response->log_depth;
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	return rnic_map(context, &cq->ring, response->ring_offset,
			response->ring_bytes);
}

struct ibv_cq *rnic_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel, int vector)
{
	struct urnic_create_cq_resp response = {};
	struct urnic_create_cq command = {};
	struct rnic_cq *cq;
	int err;

	if (cqe < 1) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	err = ibv_cmd_create_cq(context, cqe, channel, vector, &cq->verbs_cq.cq,
				&command.ibv_cmd, sizeof(command),
				&response.ibv_resp, sizeof(response));
	if (err)
		goto free_cq;
	err = set_up(cq, context, &response.drv_payload);
	if (!err)
		return &cq->verbs_cq.cq;
	ibv_cmd_destroy_cq(&cq->verbs_cq.cq);
free_cq:
	free(cq);
	errno = err;
	return NULL;
}

struct ibv_cq_ex *rnic_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr)
{
	struct urnic_create_cq_ex_resp response = {};
	struct urnic_create_cq_ex command = {};
	struct rnic_cq *cq;
	int err = rnic_check_cq_attr(attr);

	if (err) {
		errno = err;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	err = ibv_cmd_create_cq_ex(context, attr, &cq->verbs_cq,
				   &command.ibv_cmd, sizeof(command),
				   &response.ibv_resp, sizeof(response),
				   CREATE_CQ_CMD_FLAGS_TS_IGNORED_EX);
	if (err)
		goto free_cq;
	err = set_up(cq, context, &response.drv_payload);
	if (!err) {
		rnic_set_poll_ops(&cq->verbs_cq.cq_ex);
		return &cq->verbs_cq.cq_ex;
	}
	ibv_cmd_destroy_cq(&cq->verbs_cq.cq);
free_cq:
	free(cq);
	errno = err;
	return NULL;
}

int rnic_destroy_cq(struct ibv_cq *ibv_cq)
{
	struct rnic_cq *cq = to_rnic_cq(ibv_cq);
	int err = ibv_cmd_destroy_cq(ibv_cq);

	if (err)
		return err;
	rnic_unmap(&cq->ring);
	rnic_unmap(&cq->next_ring);
	pthread_spin_destroy(&cq->lock);
	free(cq);
	return 0;
}

int rnic_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq command = {};

	return ibv_cmd_modify_cq(cq, attr, &command, sizeof(command));
}

/* When what is in the ring before has been taken. With the lock. */
static void change_over(struct rnic_cq *cq)
{
	if (!cq->next_ring.at ||
	    ((cq->consumer ^ cq->next_origin) & INDEX_MASK) != 0)
		return;
	rnic_unmap(&cq->ring);
	cq->ring = cq->next_ring;
	cq->log_depth = cq->next_log_depth;
	cq->origin = cq->next_origin;
	cq->next_ring.at = NULL;
}

static uint32_t waiting(struct rnic_cq *cq)
{
	uint32_t count = 0;

	while (count < 1U << cq->log_depth &&
	       is_there(cq, cq->consumer + count))
		count++;
	return count;
}

/*
 * The device goes on with another ring, from an index on. What was before it
 * is polled first; until then the queue is not changed again.
 */
int rnic_resize_cq(struct ibv_cq *ibv_cq, int cqe)
{
	struct urnic_resize_cq_resp response = {};
	struct ibv_resize_cq command = {};
	struct rnic_cq *cq = to_rnic_cq(ibv_cq);
	struct rnic_map ring;
	int err = 0;

	if (cqe < 1)
		return EINVAL;
	pthread_spin_lock(&cq->lock);
	change_over(cq);
	if (cq->next_ring.at)
		err = EBUSY;
	else if (waiting(cq) > (uint32_t)cqe)
		err = EINVAL;
	pthread_spin_unlock(&cq->lock);
	if (err)
		return err;
	err = ibv_cmd_resize_cq(ibv_cq, cqe, &command, sizeof(command),
				&response.ibv_resp, sizeof(response));
	if (err)
		return err;
	err = rnic_map(ibv_cq->context, &ring, response.ring_offset,
		       response.ring_bytes);
	if (err)
		return err;
	pthread_spin_lock(&cq->lock);
	cq->next_ring = ring;
	cq->next_log_depth = response.log_depth;
	cq->next_origin = response.origin;
	change_over(cq);
	pthread_spin_unlock(&cq->lock);
	return 0;
}

static void fill_receive(struct rnic_qp *qp, const struct rnic_cqe *cqe,
			 struct ibv_wc *wc)
{
	uint32_t immediate = rnic_get(cqe, RNIC_CQE_IMMEDIATE);

	wc->opcode = rnic_get(cqe, RNIC_CQE_OPCODE) ==
			     RNIC_CQE_OPCODE_RECEIVE_WRITE ?
		     IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	if (qp->verbs_qp.qp.srq)
		wc->wr_id = rnic_srq_complete(to_rnic_srq(qp->verbs_qp.qp.srq),
					      rnic_get(cqe,
						       RNIC_CQE_WQE_INDEX));
	else
		wc->wr_id = rnic_receive_completed(qp);
	if (rnic_get(cqe, RNIC_CQE_WITH_IMM)) {
		wc->wc_flags |= IBV_WC_WITH_IMM;
		wc->imm_data = htobe32(immediate);
	} else if (rnic_get(cqe, RNIC_CQE_WITH_INVALIDATE)) {
		wc->wc_flags |= IBV_WC_WITH_INV;
		wc->invalidated_rkey = immediate;
	}
	if (rnic_get(cqe, RNIC_CQE_GRH))
		wc->wc_flags |= IBV_WC_GRH;
	/* The priority of the VLAN tag; 0 without. */
	wc->sl = rnic_get(cqe, RNIC_CQE_VLAN_TCI) >> 13;
	wc->src_qp = rnic_get(cqe, RNIC_CQE_SOURCE_QPN);
}

/* False: an entry that is of nothing any more. */
static bool fill(struct rnic_cq *cq, const struct rnic_cqe *cqe,
		 struct ibv_wc *wc)
{
	struct rnic_context *context = to_rnic_context(cq->verbs_cq.cq.context);
	uint32_t qpn = rnic_get(cqe, RNIC_CQE_QPN);
	struct rnic_qp *qp = context->qps[qpn % RNIC_QPS];

	if (!qp || qp->verbs_qp.qp.qp_num != qpn)
		return false;
	memset(wc, 0, sizeof(*wc));
	wc->qp_num = qpn;
	wc->status = rnic_get(cqe, RNIC_CQE_STATUS);
	wc->vendor_err = rnic_get(cqe, RNIC_CQE_SYNDROME);
	wc->byte_len = rnic_get(cqe, RNIC_CQE_BYTE_COUNT);
	if (!rnic_get(cqe, RNIC_CQE_IS_RECEIVE))
		return rnic_send_completed(qp, cqe, wc);
	fill_receive(qp, cqe, wc);
	return true;
}

/* The next completion, if there is one. With the lock. */
bool rnic_take(struct rnic_cq *cq, struct ibv_wc *wc)
{
	for (;;) {
		struct rnic_cqe cqe;

		change_over(cq);
		if (!is_there(cq, cq->consumer))
			return false;
		/* The phase, then the rest, and the payload. */
		udma_from_device_barrier();
		cqe = *entry_at(cq, cq->consumer);
		cq->consumer = (cq->consumer + 1) & INDEX_MASK;
		if (fill(cq, &cqe, wc)) {
			cq->timestamp = rnic_get(&cqe, RNIC_CQE_TIMESTAMP);
			return true;
		}
	}
}

/* What was taken is the device's again. With the lock. */
void rnic_give_back(struct rnic_cq *cq)
{
	if (cq->consumer == cq->told)
		return;
	/* What was read, then the index that gives it back. */
	udma_from_device_barrier();
	ring_cq(cq, RNIC_CQ_ARM_NONE);
}

int rnic_poll_cq(struct ibv_cq *ibv_cq, int count, struct ibv_wc *wc)
{
	struct rnic_cq *cq = to_rnic_cq(ibv_cq);
	int done = 0;

	pthread_spin_lock(&cq->lock);
	while (done < count && rnic_take(cq, &wc[done]))
		done++;
	rnic_give_back(cq);
	pthread_spin_unlock(&cq->lock);
	return done;
}

int rnic_req_notify_cq(struct ibv_cq *ibv_cq, int solicited_only)
{
	struct rnic_cq *cq = to_rnic_cq(ibv_cq);

	pthread_spin_lock(&cq->lock);
	ring_cq(cq, solicited_only ? RNIC_CQ_ARM_SOLICITED : RNIC_CQ_ARM_ANY);
	pthread_spin_unlock(&cq->lock);
	return 0;
}

static void forget_from(struct rnic_cq *cq, uint32_t index, uint32_t qpn)
{
	for (; is_there(cq, index); index = (index + 1) & INDEX_MASK) {
		struct rnic_cqe *cqe = entry_at(cq, index);

		udma_from_device_barrier();
		/* There is no QP 0. */
		if (rnic_get(cqe, RNIC_CQE_QPN) == qpn)
			rnic_put(cqe, RNIC_CQE_QPN, 0);
	}
}

/* Entries of that QP are of nothing any more. */
void rnic_cq_forget(struct rnic_cq *cq, uint32_t qpn)
{
	struct rnic_cq after;

	pthread_spin_lock(&cq->lock);
	change_over(cq);
	forget_from(cq, cq->consumer, qpn);
	if (cq->next_ring.at) {
		after = *cq;
		after.ring = cq->next_ring;
		after.log_depth = cq->next_log_depth;
		after.origin = cq->next_origin;
		forget_from(&after, cq->next_origin, qpn);
	}
	pthread_spin_unlock(&cq->lock);
}
