// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_wr_start to ibv_wr_complete: all requests between them are posted, or
 * none. Each is put together until the next begins, because what sets its
 * address and its data comes in any order.
 */
#include <errno.h>
#include <string.h>

#include "rnic.h"

#define OPERATIONS \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
	 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | \
	 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | \
	 IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)

static struct rnic_qp *of(struct ibv_qp_ex *qp)
{
	return to_rnic_qp(&qp->qp_base);
}

/* What was put together goes into the ring. */
static void close_request(struct rnic_qp *qp)
{
	struct rnic_batch *batch = &qp->batch;

	if (batch->open && !batch->err)
		batch->err = rnic_add_send(qp, &batch->wr, &batch->bytes);
	batch->open = false;
}

static struct ibv_send_wr *begin(struct ibv_qp_ex *qp_ex,
				 enum ibv_wr_opcode opcode)
{
	struct rnic_qp *qp = of(qp_ex);
	struct ibv_send_wr *wr = &qp->batch.wr;

	close_request(qp);
	memset(wr, 0, sizeof(*wr));
	wr->wr_id = qp_ex->wr_id;
	wr->send_flags = qp_ex->wr_flags;
	wr->opcode = opcode;
	wr->sg_list = qp->batch.sges;
	qp->batch.open = true;
	return wr;
}

static void wr_start(struct ibv_qp_ex *qp_ex)
{
	struct rnic_qp *qp = of(qp_ex);

	pthread_spin_lock(&qp->sq.lock);
	qp->batch.open = false;
	qp->batch.first = qp->sq.producer;
	qp->batch.err = qp_ex->qp_base.state < IBV_QPS_RTS ? EINVAL : 0;
}

static int wr_complete(struct ibv_qp_ex *qp_ex)
{
	struct rnic_qp *qp = of(qp_ex);
	int err;

	close_request(qp);
	err = qp->batch.err;
	if (err)
		qp->sq.producer = qp->batch.first;
	else
		rnic_publish(qp, qp->batch.first, qp->batch.bytes);
	pthread_spin_unlock(&qp->sq.lock);
	return err;
}

static void wr_abort(struct ibv_qp_ex *qp_ex)
{
	struct rnic_qp *qp = of(qp_ex);

	qp->sq.producer = qp->batch.first;
	pthread_spin_unlock(&qp->sq.lock);
}

static void wr_send(struct ibv_qp_ex *qp)
{
	begin(qp, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm_data)
{
	begin(qp, IBV_WR_SEND_WITH_IMM)->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	begin(qp, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static struct ibv_send_wr *begin_rdma(struct ibv_qp_ex *qp,
				      enum ibv_wr_opcode opcode, uint32_t rkey,
				      uint64_t remote_addr)
{
	struct ibv_send_wr *wr = begin(qp, opcode);

	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = remote_addr;
	return wr;
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey,
			 uint64_t remote_addr)
{
	begin_rdma(qp, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey,
			  uint64_t remote_addr)
{
	begin_rdma(qp, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm_data)
{
	begin_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey,
		   remote_addr)->imm_data = imm_data;
}

static void begin_atomic(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode,
			 uint32_t rkey, uint64_t remote_addr,
			 uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = begin(qp, opcode);

	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	begin_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare,
		     swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey,
				uint64_t remote_addr, uint64_t add)
{
	begin_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = begin(qp, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	begin(qp, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct ibv_send_wr *wr = &of(qp)->batch.wr;

	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = remote_qpn;
	wr->wr.ud.remote_qkey = remote_qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t count,
			    const struct ibv_sge *sges)
{
	struct rnic_batch *batch = &of(qp)->batch;

	if (count > RNIC_MAX_SGE) {
		batch->err = EINVAL;
		return;
	}
	memcpy(batch->sges, sges, count * sizeof(*sges));
	batch->wr.num_sge = count;
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(qp, 1, &sge);
}

/* The pieces are the caller's again when it returns. */
static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t count,
				    const struct ibv_data_buf *pieces)
{
	struct rnic_batch *batch = &of(qp)->batch;
	size_t length = 0;
	size_t i;

	if (count > RNIC_MAX_SGE + sizeof(batch->inlined)) {
		batch->err = EINVAL;
		return;
	}
	for (i = 0; i < count; i++) {
		if (pieces[i].length > sizeof(batch->inlined) - length) {
			batch->err = ENOMEM;
			return;
		}
		memcpy(batch->inlined + length, pieces[i].addr,
		       pieces[i].length);
		length += pieces[i].length;
	}
	batch->sges[0].addr = (uintptr_t)batch->inlined;
	batch->sges[0].length = length;
	batch->wr.num_sge = 1;
	batch->wr.send_flags |= IBV_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	struct ibv_data_buf piece = { .addr = addr, .length = length };

	wr_set_inline_data_list(qp, 1, &piece);
}

/* An errno: there are operations that we have not. */
int rnic_set_wr_ops(struct rnic_qp *qp, uint64_t operations)
{
	struct ibv_qp_ex *of = &qp->verbs_qp.qp_ex;

	if (operations & ~(uint64_t)OPERATIONS)
		return EOPNOTSUPP;
	of->wr_abort = wr_abort;
	of->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	of->wr_atomic_fetch_add = wr_atomic_fetch_add;
	of->wr_bind_mw = wr_bind_mw;
	of->wr_complete = wr_complete;
	of->wr_local_inv = wr_local_inv;
	of->wr_rdma_read = wr_rdma_read;
	of->wr_rdma_write = wr_rdma_write;
	of->wr_rdma_write_imm = wr_rdma_write_imm;
	of->wr_send = wr_send;
	of->wr_send_imm = wr_send_imm;
	of->wr_send_inv = wr_send_inv;
	of->wr_set_inline_data = wr_set_inline_data;
	of->wr_set_inline_data_list = wr_set_inline_data_list;
	of->wr_set_sge = wr_set_sge;
	of->wr_set_sge_list = wr_set_sge_list;
	of->wr_set_ud_addr = wr_set_ud_addr;
	of->wr_start = wr_start;
	return 0;
}
