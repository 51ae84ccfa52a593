// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues: a request has a tag, which is free when its completion
 * was polled.
 */
#include <errno.h>
#include <stdlib.h>

#include "rnic.h"

static int alloc_tags(struct rnic_srq *srq)
{
	uint32_t slots = 1U << srq->log_depth;
	uint32_t i;

	srq->wr_ids = calloc(slots, sizeof(*srq->wr_ids));
	srq->free_tags = calloc(slots, sizeof(*srq->free_tags));
	if (!srq->wr_ids || !srq->free_tags)
		return ENOMEM;
	for (i = 0; i < slots; i++)
		srq->free_tags[i] = i;
	srq->free_count = slots;
	return 0;
}

static void free_srq(struct rnic_srq *srq)
{
	rnic_unmap(&srq->ring);
	free(srq->wr_ids);
	free(srq->free_tags);
	free(srq);
}

struct ibv_srq *rnic_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr)
{
	struct urnic_create_srq_resp response = {};
	struct urnic_create_srq command = {};
	struct rnic_srq *srq = calloc(1, sizeof(*srq));
	int err;

	if (!srq)
		return NULL;
	err = ibv_cmd_create_srq(pd, &srq->ibv_srq, attr, &command.ibv_cmd,
				 sizeof(command), &response.ibv_resp,
				 sizeof(response));
	if (err)
		goto free;
	srq->srqn = response.srqn;
	srq->log_depth = response.log_depth;
	srq->log_stride = response.log_stride;
	srq->max_sge = attr->attr.max_sge;
	pthread_spin_init(&srq->lock, PTHREAD_PROCESS_PRIVATE);
	err = rnic_map(pd->context, &srq->ring, response.ring_offset,
		       response.ring_bytes);
	if (!err)
		err = alloc_tags(srq);
	if (!err)
		return &srq->ibv_srq;
	ibv_cmd_destroy_srq(&srq->ibv_srq);
free:
	free_srq(srq);
	errno = err;
	return NULL;
}

int rnic_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq command = {};

	return ibv_cmd_modify_srq(srq, attr, mask, &command, sizeof(command));
}

int rnic_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq command = {};

	return ibv_cmd_query_srq(srq, attr, &command, sizeof(command));
}

int rnic_destroy_srq(struct ibv_srq *srq)
{
	int err = ibv_cmd_destroy_srq(srq);

	if (!err)
		free_srq(to_rnic_srq(srq));
	return err;
}

int rnic_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	*number = to_rnic_srq(srq)->srqn;
	return 0;
}

static int post_one(struct rnic_srq *srq, const struct ibv_recv_wr *wr)
{
	uint32_t slot = srq->producer & ((1U << srq->log_depth) - 1);
	uint16_t tag;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->max_sge)
		return EINVAL;
	if (!srq->free_count)
		return ENOMEM;
	tag = srq->free_tags[--srq->free_count];
	srq->wr_ids[tag] = wr->wr_id;
	rnic_build_receive(srq->ring.at + ((size_t)slot << srq->log_stride),
			   srq->producer, tag, wr);
	srq->producer++;
	return 0;
}

int rnic_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr)
{
	struct rnic_srq *srq = to_rnic_srq(ibv_srq);
	uint16_t before;
	int err = 0;

	pthread_spin_lock(&srq->lock);
	before = srq->producer;
	for (; wr; wr = wr->next) {
		err = post_one(srq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	if (srq->producer != before)
		rnic_doorbell(to_rnic_context(ibv_srq->context),
			      RNIC_UAR_SRQ_DOORBELL,
			      rnic_value(RNIC_SRQ_DOORBELL_SRQN, srq->srqn) |
			      rnic_value(RNIC_SRQ_DOORBELL_PRODUCER_INDEX,
					 srq->producer));
	pthread_spin_unlock(&srq->lock);
	return err;
}

/* With the lock of a CQ. */
uint64_t rnic_srq_complete(struct rnic_srq *srq, uint16_t tag)
{
	uint64_t wr_id;

	tag &= (1U << srq->log_depth) - 1;
	pthread_spin_lock(&srq->lock);
	wr_id = srq->wr_ids[tag];
	srq->free_tags[srq->free_count++] = tag;
	pthread_spin_unlock(&srq->lock);
	return wr_id;
}
