// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Extended completion queues: one completion after the other is looked at. */
#include <errno.h>

#include "rnic.h"

#define FIELDS \
	(IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | \
	 IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL | \
	 IBV_WC_EX_WITH_DLID_PATH_BITS | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* An errno. */
int rnic_check_cq_attr(const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->cqe < 1 ||
	    attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS |
				IBV_CQ_INIT_ATTR_MASK_PD))
		return EINVAL;
	if (attr->wc_flags & ~FIELDS)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    attr->flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		return EOPNOTSUPP;
	return 0;
}

static struct rnic_cq *of(struct ibv_cq_ex *cq)
{
	return to_rnic_cq(ibv_cq_ex_to_cq(cq));
}

static int take(struct ibv_cq_ex *cq_ex)
{
	struct rnic_cq *cq = of(cq_ex);

	if (!rnic_take(cq, &cq->wc))
		return ENOENT;
	cq_ex->wr_id = cq->wc.wr_id;
	cq_ex->status = cq->wc.status;
	return 0;
}

/* Holds the lock until end_poll, unless there is nothing. */
static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	int err;

	if (attr->comp_mask)
		return EINVAL;
	pthread_spin_lock(&of(cq)->lock);
	err = take(cq);
	if (err) {
		rnic_give_back(of(cq));
		pthread_spin_unlock(&of(cq)->lock);
	}
	return err;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	rnic_give_back(of(cq));
	pthread_spin_unlock(&of(cq)->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return of(cq)->wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return of(cq)->wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return of(cq)->wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	return of(cq)->wc.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return of(cq)->wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return of(cq)->wc.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return of(cq)->wc.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *cq)
{
	return 0;
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return of(cq)->wc.sl;
}

static uint8_t read_zero(struct ibv_cq_ex *cq)
{
	return 0;
}

static uint64_t read_timestamp(struct ibv_cq_ex *cq)
{
	return of(cq)->timestamp;
}

static uint64_t read_nanoseconds(struct ibv_cq_ex *cq)
{
	uint64_t mhz = to_rnic_context(cq->context)->clock_mhz;
	uint64_t cycles = of(cq)->timestamp;

	if (!mhz)
		return 0;
	return cycles / mhz * 1000 + cycles % mhz * 1000 / mhz;
}

/* All of them: what was not asked for costs nothing here. */
void rnic_set_poll_ops(struct ibv_cq_ex *cq)
{
	cq->start_poll = start_poll;
	cq->next_poll = take;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_byte_len = read_byte_len;
	cq->read_imm_data = read_imm_data;
	cq->read_qp_num = read_qp_num;
	cq->read_src_qp = read_src_qp;
	cq->read_wc_flags = read_wc_flags;
	cq->read_slid = read_slid;
	cq->read_sl = read_sl;
	cq->read_dlid_path_bits = read_zero;
	cq->read_completion_ts = read_timestamp;
	cq->read_completion_wallclock_ns = read_nanoseconds;
}
