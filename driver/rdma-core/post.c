// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting. The WQE always goes to the ring. With few requests outstanding it is
 * also written to the window of the UAR, which counts as its doorbell and saves
 * the fetch; otherwise the doorbell is rung, once for a list.
 */
#include <errno.h>
#include <string.h>

#include "rnic.h"
#include "rnic_segment.h"

#define SEGMENT 16
/* With more ahead the device would not take the copy in the window. */
#define WINDOW_OUTSTANDING 8

struct operation {
	uint8_t opcode;
	uint8_t completion;
	/* What the transport services have. */
	bool uc;
	bool ud;
};

static const struct operation operations[] = {
	[IBV_WR_RDMA_WRITE] = { RNIC_WQE_OPCODE_WRITE, IBV_WC_RDMA_WRITE,
				.uc = true },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { RNIC_WQE_OPCODE_WRITE_IMMEDIATE,
					 IBV_WC_RDMA_WRITE, .uc = true },
	[IBV_WR_SEND] = { RNIC_WQE_OPCODE_SEND, IBV_WC_SEND, .uc = true,
			  .ud = true },
	[IBV_WR_SEND_WITH_IMM] = { RNIC_WQE_OPCODE_SEND_IMMEDIATE, IBV_WC_SEND,
				   .uc = true, .ud = true },
	[IBV_WR_RDMA_READ] = { RNIC_WQE_OPCODE_READ, IBV_WC_RDMA_READ },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { RNIC_WQE_OPCODE_COMPARE_SWAP,
					IBV_WC_COMP_SWAP },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { RNIC_WQE_OPCODE_FETCH_ADD,
					  IBV_WC_FETCH_ADD },
	[IBV_WR_LOCAL_INV] = { RNIC_WQE_OPCODE_LOCAL_INVALIDATE,
			       IBV_WC_LOCAL_INV },
	[IBV_WR_BIND_MW] = { RNIC_WQE_OPCODE_BIND_WINDOW2, IBV_WC_BIND_MW },
	[IBV_WR_SEND_WITH_INV] = { RNIC_WQE_OPCODE_SEND_INVALIDATE,
				   IBV_WC_SEND },
};

static bool has_data(const struct ibv_send_wr *wr)
{
	return wr->opcode != IBV_WR_LOCAL_INV && wr->opcode != IBV_WR_BIND_MW;
}

static bool is_atomic(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static uint8_t *put_sge(uint8_t *at, const struct ibv_sge *sge)
{
	return rnic_put_data(at, sge->addr, sge->length, sge->lkey);
}

static uint8_t *put_atomic(uint8_t *at, const struct ibv_send_wr *wr)
{
	bool swap = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	at = rnic_put_remote(at, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
	return rnic_put_atomic(at, swap ? wr->wr.atomic.swap :
				   wr->wr.atomic.compare_add,
			       wr->wr.atomic.compare_add);
}

/* As rdma_calc_flow_label of the kernel, for an address without one. */
static uint32_t flow_label(uint32_t qpn, uint32_t other)
{
	uint64_t mixed = (uint64_t)qpn * other;

	mixed ^= mixed >> 20;
	mixed ^= mixed >> 40;
	return mixed & 0xfffff;
}

static uint8_t *put_address(uint8_t *at, const struct ibv_send_wr *wr,
			    uint32_t qpn)
{
	struct rnic_wqe_address address = to_rnic_ah(wr->wr.ud.ah)->address;

	rnic_put(&address, RNIC_WQE_ADDRESS_DEST_QPN, wr->wr.ud.remote_qpn);
	rnic_put(&address, RNIC_WQE_ADDRESS_QKEY, wr->wr.ud.remote_qkey);
	if (!rnic_get(&address, RNIC_WQE_ADDRESS_FLOW_LABEL))
		rnic_put(&address, RNIC_WQE_ADDRESS_FLOW_LABEL,
			 flow_label(qpn, wr->wr.ud.remote_qpn));
	return rnic_put_segment(at, address.word, sizeof(address));
}

static uint8_t *put_bind(uint8_t *at, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	struct rnic_wqe_range range = {};
	struct rnic_wqe_bind bind = {};

	rnic_put(&range, RNIC_WQE_RANGE_VA, info->addr);
	rnic_put(&range, RNIC_WQE_RANGE_LENGTH, info->length);
	at = rnic_put_segment(at, range.word, sizeof(range));
	rnic_put(&bind, RNIC_WQE_BIND_MR_KEY, info->mr ? info->mr->lkey : 0);
	rnic_put(&bind, RNIC_WQE_BIND_REMOTE_READ,
		 !!(info->mw_access_flags & IBV_ACCESS_REMOTE_READ));
	rnic_put(&bind, RNIC_WQE_BIND_REMOTE_WRITE,
		 !!(info->mw_access_flags & IBV_ACCESS_REMOTE_WRITE));
	rnic_put(&bind, RNIC_WQE_BIND_REMOTE_ATOMIC,
		 !!(info->mw_access_flags & IBV_ACCESS_REMOTE_ATOMIC));
	return rnic_put_segment(at, bind.word, sizeof(bind));
}

static uint8_t *put_head(uint8_t *at, const struct rnic_qp *qp,
			 const struct ibv_send_wr *wr)
{
	if (qp->verbs_qp.qp.qp_type == IBV_QPT_UD)
		return put_address(at, wr, qp->verbs_qp.qp.qp_num);
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		return rnic_put_remote(at, wr->wr.rdma.remote_addr,
				       wr->wr.rdma.rkey);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return put_atomic(at, wr);
	case IBV_WR_BIND_MW:
		return put_bind(at, wr);
	default:
		return at;
	}
}

static uint32_t immediate_of(const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return be32toh(wr->imm_data);
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		return wr->invalidate_rkey;
	case IBV_WR_BIND_MW:
		return wr->bind_mw.rkey;
	default:
		return 0;
	}
}

static uint8_t opcode_of(const struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_BIND_MW &&
	    wr->bind_mw.mw->type == IBV_MW_TYPE_1)
		return RNIC_WQE_OPCODE_BIND_WINDOW1;
	return operations[wr->opcode].opcode;
}

static bool is_supported(const struct rnic_qp *qp, unsigned int opcode)
{
	if (opcode >= sizeof(operations) / sizeof(operations[0]))
		return false;
	switch (qp->verbs_qp.qp.qp_type) {
	case IBV_QPT_RC:
		return operations[opcode].opcode || opcode == IBV_WR_SEND;
	case IBV_QPT_UC:
		return operations[opcode].uc;
	default:
		return operations[opcode].ud;
	}
}

static int check(const struct rnic_qp *qp, const struct ibv_send_wr *wr,
		 uint64_t *length)
{
	struct rnic_context *context = to_rnic_context(qp->verbs_qp.qp.context);
	bool inlined = wr->send_flags & IBV_SEND_INLINE;
	/* Of inline data a piece a byte, and as many that are empty. */
	uint32_t most = qp->sq.max_sge + (inlined ? qp->sq.max_inline : 0);
	int i;

	*length = 0;
	if (!is_supported(qp, wr->opcode))
		return EINVAL;
	if (!has_data(wr))
		return 0;
	/* Before the list is read. */
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > most)
		return EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		*length += wr->sg_list[i].length;
	if (*length > (inlined ? qp->sq.max_inline : context->max_message))
		return EINVAL;
	if (is_atomic(wr) && (wr->num_sge != 1 || *length != 8 || inlined))
		return EINVAL;
	return 0;
}

static uint8_t *put_inline(uint8_t *at, const struct ibv_send_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		memcpy(at, (void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		at += wr->sg_list[i].length;
	}
	return at;
}

/* In its slot. Returns its bytes in whole segments. */
static size_t build(struct rnic_qp *qp, const struct ibv_send_wr *wr,
		    uint64_t length, bool silent)
{
	bool inlined = wr->send_flags & IBV_SEND_INLINE && length;
	struct rnic_wqe_control control = {};
	struct rnic_sq *sq = &qp->sq;
	uint32_t slot = sq->producer & ((1U << sq->log_depth) - 1);
	uint8_t *wqe = sq->ring + ((size_t)slot << sq->log_stride);
	uint8_t *at = put_head(wqe + sizeof(control), qp, wr);
	int i;

	if (inlined) {
		at = put_inline(at, wr);
		while ((at - wqe) % SEGMENT)
			*at++ = 0;
	} else if (has_data(wr)) {
		for (i = 0; i < wr->num_sge; i++)
			at = put_sge(at, &wr->sg_list[i]);
	}
	rnic_put(&control, RNIC_WQE_CONTROL_OPCODE, opcode_of(wr));
	rnic_put(&control, RNIC_WQE_CONTROL_SILENT, silent);
	rnic_put(&control, RNIC_WQE_CONTROL_FENCE,
		 !!(wr->send_flags & IBV_SEND_FENCE));
	rnic_put(&control, RNIC_WQE_CONTROL_SOLICITED,
		 !!(wr->send_flags & IBV_SEND_SOLICITED));
	rnic_put(&control, RNIC_WQE_CONTROL_INLINE_DATA, inlined);
	rnic_put(&control, RNIC_WQE_CONTROL_WQE_INDEX, sq->producer);
	rnic_put(&control, RNIC_WQE_CONTROL_QPN, qp->verbs_qp.qp.qp_num);
	rnic_put(&control, RNIC_WQE_CONTROL_SIZE, (at - wqe) / SEGMENT);
	rnic_put(&control, RNIC_WQE_CONTROL_IMMEDIATE, immediate_of(wr));
	rnic_put(&control, RNIC_WQE_CONTROL_LENGTH, length);
	rnic_put_segment(wqe, control.word, sizeof(control));
	return at - wqe;
}

/* A slot is free when its request has retired and its completion was polled. */
static void retire(struct rnic_sq *sq, uint16_t index)
{
	uint16_t known = sq->retired - sq->oldest;
	uint16_t offered = index - sq->oldest;
	uint16_t taken = sq->producer - sq->oldest;

	if (offered > known && offered <= taken)
		sq->retired = index;
	while (sq->oldest != sq->retired) {
		struct rnic_slot *slot =
			&sq->slots[sq->oldest & ((1U << sq->log_depth) - 1)];

		if (!slot->silent && !slot->done)
			break;
		sq->oldest++;
	}
}

/* It stands still while completions tell the same: only news count. */
static void read_record(struct rnic_sq *sq)
{
	uint16_t index = le64toh(*(const volatile __le64 *)sq->record);

	if (index == sq->last_record)
		return;
	sq->last_record = index;
	/* The record, then the slots that it says are free. */
	udma_from_device_barrier();
	retire(sq, index);
}

static bool has_slot(struct rnic_sq *sq)
{
	if ((uint16_t)(sq->producer - sq->oldest) >= sq->max_wr)
		read_record(sq);
	return (uint16_t)(sq->producer - sq->oldest) < sq->max_wr;
}

/* Into the ring; the device is not told. With the lock. An errno. */
int rnic_add_send(struct rnic_qp *qp, const struct ibv_send_wr *wr,
		  size_t *bytes)
{
	bool silent = !qp->signal_all && !(wr->send_flags & IBV_SEND_SIGNALED);
	struct rnic_sq *sq = &qp->sq;
	struct rnic_slot *slot;
	uint64_t length;
	int err;

	err = check(qp, wr, &length);
	if (err)
		return err;
	if (!has_slot(sq))
		return ENOMEM;
	*bytes = build(qp, wr, length, silent);
	slot = &sq->slots[sq->producer & ((1U << sq->log_depth) - 1)];
	slot->wr_id = wr->wr_id;
	slot->opcode = operations[wr->opcode].completion;
	slot->silent = silent;
	slot->done = false;
	sq->producer++;
	return 0;
}

static bool few_outstanding(struct rnic_sq *sq)
{
	if ((uint16_t)(sq->producer - sq->retired) > WINDOW_OUTSTANDING)
		read_record(sq);
	return (uint16_t)(sq->producer - sq->retired) <= WINDOW_OUTSTANDING;
}

/*
 * Pieces of 8 bytes in ascending order; the last one posts it. The fence in
 * front lets the ring be seen first, from where the device may take it all the
 * same; the one behind keeps the next burst, or a doorbell, behind this one.
 */
static void push(struct rnic_context *context, const uint8_t *wqe, size_t bytes)
{
	const __le64 *from = (const __le64 *)wqe;
	uint8_t *to = context->uar + RNIC_UAR_WQE_WINDOW;
	size_t at;

	pthread_spin_lock(&context->window_lock);
	mmio_wc_start();
	for (at = 0; at < bytes; at += sizeof(*from))
		mmio_write64_le(to + at, *from++);
	mmio_flush_writes();
	pthread_spin_unlock(&context->window_lock);
}

/* The device is told of those from `before` on. With the lock. */
void rnic_publish(struct rnic_qp *qp, uint16_t before, size_t last_bytes)
{
	struct rnic_context *context = to_rnic_context(qp->verbs_qp.qp.context);
	struct rnic_sq *sq = &qp->sq;
	uint32_t slot = before & ((1U << sq->log_depth) - 1);

	if (sq->producer == before)
		return;
	if ((uint16_t)(sq->producer - before) == 1 &&
	    last_bytes <= RNIC_UAR_WQE_WINDOW_BYTES && few_outstanding(sq)) {
		push(context, sq->ring + ((size_t)slot << sq->log_stride),
		     last_bytes);
		return;
	}
	rnic_doorbell(context, RNIC_UAR_SEND_DOORBELL,
		      rnic_value(RNIC_SEND_DOORBELL_QPN, qp->verbs_qp.qp.qp_num) |
		      rnic_value(RNIC_SEND_DOORBELL_PRODUCER_INDEX,
				 sq->producer));
}

int rnic_post_send(struct ibv_qp *ibv_qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr)
{
	struct rnic_qp *qp = to_rnic_qp(ibv_qp);
	size_t bytes = 0;
	uint16_t before;
	int err = 0;

	pthread_spin_lock(&qp->sq.lock);
	before = qp->sq.producer;
	if (ibv_qp->state < IBV_QPS_RTS)
		err = EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = rnic_add_send(qp, wr, &bytes);
		if (err)
			break;
	}
	if (err)
		*bad_wr = wr;
	rnic_publish(qp, before, bytes);
	pthread_spin_unlock(&qp->sq.lock);
	return err;
}

void rnic_build_receive(uint8_t *wqe, uint16_t index, uint16_t tag,
			const struct ibv_recv_wr *wr)
{
	struct rnic_wqe_receive head = {};
	int i;

	rnic_put(&head, RNIC_WQE_RECEIVE_SGE_COUNT, wr->num_sge);
	rnic_put(&head, RNIC_WQE_RECEIVE_WQE_INDEX, index);
	rnic_put(&head, RNIC_WQE_RECEIVE_TAG, tag);
	wqe = rnic_put_segment(wqe, head.word, sizeof(head));
	for (i = 0; i < wr->num_sge; i++)
		wqe = put_sge(wqe, &wr->sg_list[i]);
}

static int post_receive(struct rnic_rq *rq, const struct ibv_recv_wr *wr)
{
	uint32_t slot = rq->producer & ((1U << rq->log_depth) - 1);

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	if ((uint16_t)(rq->producer - rq->oldest) >= rq->max_wr)
		return ENOMEM;
	rnic_build_receive(rq->ring + ((size_t)slot << rq->log_stride),
			   rq->producer, 0, wr);
	rq->wr_ids[slot] = wr->wr_id;
	rq->producer++;
	return 0;
}

int rnic_post_recv(struct ibv_qp *ibv_qp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr)
{
	struct rnic_qp *qp = to_rnic_qp(ibv_qp);
	struct rnic_rq *rq = &qp->rq;
	uint16_t before;
	int err = 0;

	pthread_spin_lock(&rq->lock);
	before = rq->producer;
	if (ibv_qp->srq || ibv_qp->state == IBV_QPS_RESET)
		err = EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = post_receive(rq, wr);
		if (err)
			break;
	}
	if (err)
		*bad_wr = wr;
	if (rq->producer != before)
		rnic_doorbell(to_rnic_context(ibv_qp->context),
			      RNIC_UAR_RECEIVE_DOORBELL,
			      rnic_value(RNIC_RECEIVE_DOORBELL_QPN,
					 ibv_qp->qp_num) |
			      rnic_value(RNIC_RECEIVE_DOORBELL_PRODUCER_INDEX,
					 rq->producer));
	pthread_spin_unlock(&rq->lock);
	return err;
}

/* With the lock of the CQ. False: nothing was posted there. */
bool rnic_send_completed(struct rnic_qp *qp, const struct rnic_cqe *cqe,
			 struct ibv_wc *wc)
{
	struct rnic_sq *sq = &qp->sq;
	uint16_t index = rnic_get(cqe, RNIC_CQE_WQE_INDEX);
	struct rnic_slot *slot = &sq->slots[index & ((1U << sq->log_depth) - 1)];
	bool known;

	pthread_spin_lock(&sq->lock);
	known = (uint16_t)(index - sq->oldest) <
			(uint16_t)(sq->producer - sq->oldest) &&
		!slot->done;
	if (known) {
		wc->wr_id = slot->wr_id;
		wc->opcode = slot->opcode;
		slot->done = true;
		read_record(sq);
		retire(sq, rnic_get(cqe, RNIC_CQE_RETIRED_INDEX));
	}
	pthread_spin_unlock(&sq->lock);
	/* A bind fails in a way of its own. */
	if (known && wc->opcode == IBV_WC_BIND_MW &&
	    wc->status == IBV_WC_LOC_PROT_ERR)
		wc->status = IBV_WC_MW_BIND_ERR;
	return known;
}

/* Receives complete in the order of their posting. */
uint64_t rnic_receive_completed(struct rnic_qp *qp)
{
	struct rnic_rq *rq = &qp->rq;
	uint64_t wr_id;

	pthread_spin_lock(&rq->lock);
	wr_id = rq->wr_ids[rq->oldest++ & ((1U << rq->log_depth) - 1)];
	pthread_spin_unlock(&rq->lock);
	return wr_id;
}
