/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Provider of rdma-core for the rnic device. What it shares with the device is
 * in rnic_hw.h, with the driver in rnic-abi.h.
 */
#ifndef RNIC_PROVIDER_H
#define RNIC_PROVIDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <kernel-abi/rnic-abi.h>
#include <rdma/rnic-abi.h>
#include <util/compiler.h>
#include <util/mmio.h>
#include <util/udma_barrier.h>

#include "rnic_hw.h"

#define RNIC_QPS (1 << RNIC_QP_INDEX_BITS)

DECLARE_DRV_CMD(urnic_alloc_ucontext, IB_USER_VERBS_CMD_GET_CONTEXT, empty,
		rnic_alloc_ucontext_resp);
DECLARE_DRV_CMD(urnic_create_cq, IB_USER_VERBS_CMD_CREATE_CQ, empty,
		rnic_create_cq_resp);
DECLARE_DRV_CMD(urnic_create_cq_ex, IB_USER_VERBS_EX_CMD_CREATE_CQ, empty,
		rnic_create_cq_resp);
DECLARE_DRV_CMD(urnic_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ, empty,
		rnic_resize_cq_resp);
DECLARE_DRV_CMD(urnic_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ, empty,
		rnic_create_srq_resp);
DECLARE_DRV_CMD(urnic_create_qp, IB_USER_VERBS_CMD_CREATE_QP, empty,
		rnic_create_qp_resp);
DECLARE_DRV_CMD(urnic_create_ah, IB_USER_VERBS_CMD_CREATE_AH, empty,
		rnic_create_ah_resp);

struct rnic_device {
	struct verbs_device ibv_dev;
};

struct rnic_qp;

struct rnic_context {
	struct verbs_context ibv_ctx;
	/* Doorbells, and the window for WQEs, which has one writer at a time. */
	uint8_t *uar;
	pthread_spinlock_t window_lock;
	uint32_t max_message;
	uint32_t clock_mhz;
	/* By the index in the QPN; read with the lock of a CQ. */
	struct rnic_qp *qps[RNIC_QPS];
};

/* Memory of the driver's that is mapped here. */
struct rnic_map {
	uint8_t *at;
	size_t bytes;
};

struct rnic_cq {
	struct verbs_cq verbs_cq;
	pthread_spinlock_t lock;
	struct rnic_map ring;
	uint32_t cqn;
	uint8_t log_depth;
	uint32_t consumer;
	/* What the device was told of it. */
	uint32_t told;
	/* ibv_start_poll: the completion that is looked at. */
	struct ibv_wc wc;
	uint64_t timestamp;
	/* Index of the first entry in the ring. */
	uint32_t origin;
	/* The ring after this one, from that index on; null: there is none. */
	struct rnic_map next_ring;
	uint8_t next_log_depth;
	uint32_t next_origin;
};

struct rnic_srq {
	struct ibv_srq ibv_srq;
	pthread_spinlock_t lock;
	struct rnic_map ring;
	uint32_t srqn;
	uint8_t log_depth;
	uint8_t log_stride;
	uint32_t max_sge;
	uint64_t *wr_ids;
	uint16_t *free_tags;
	uint32_t free_count;
	uint16_t producer;
};

struct rnic_slot {
	uint64_t wr_id;
	uint8_t opcode;
	bool silent;
	bool done;
};

struct rnic_sq {
	pthread_spinlock_t lock;
	uint8_t *ring;
	uint8_t log_depth;
	uint8_t log_stride;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t max_inline;
	uint16_t producer;
	/* What is before it has retired, as far as is known. */
	uint16_t retired;
	/* The oldest that is not free. */
	uint16_t oldest;
	uint16_t last_record;
	const __le64 *record;
	struct rnic_slot *slots;
};

struct rnic_rq {
	pthread_spinlock_t lock;
	uint8_t *ring;
	uint8_t log_depth;
	uint8_t log_stride;
	uint32_t max_wr;
	uint32_t max_sge;
	uint16_t producer;
	uint16_t oldest;
	uint64_t *wr_ids;
};

/* Requests of ibv_wr_start to ibv_wr_complete: the one that is put together. */
struct rnic_batch {
	struct ibv_send_wr wr;
	bool open;
	struct ibv_sge sges[RNIC_MAX_SGE];
	uint8_t inlined[RNIC_MAX_INLINE_BYTES];
	/* Of all: what went wrong, and where they begin. */
	int err;
	uint16_t first;
	size_t bytes;
};

struct rnic_qp {
	struct verbs_qp verbs_qp;
	struct rnic_map ring;
	struct rnic_sq sq;
	struct rnic_rq rq;
	bool signal_all;
	struct rnic_batch batch;
};

struct rnic_ah {
	struct ibv_ah ibv_ah;
	struct rnic_wqe_address address;
};

static inline struct rnic_context *to_rnic_context(struct ibv_context *context)
{
	return container_of(context, struct rnic_context, ibv_ctx.context);
}

static inline struct rnic_cq *to_rnic_cq(struct ibv_cq *cq)
{
	return container_of(cq, struct rnic_cq, verbs_cq.cq);
}

static inline struct rnic_srq *to_rnic_srq(struct ibv_srq *srq)
{
	return container_of(srq, struct rnic_srq, ibv_srq);
}

static inline struct rnic_qp *to_rnic_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct rnic_qp, verbs_qp.qp);
}

static inline struct rnic_ah *to_rnic_ah(struct ibv_ah *ah)
{
	return container_of(ah, struct rnic_ah, ibv_ah);
}

/* A doorbell, behind all that was stored to memory before. */
static inline void rnic_doorbell(struct rnic_context *context, uint32_t offset,
				 uint64_t value)
{
	udma_to_device_barrier();
	mmio_write64_le(context->uar + offset, htole64(value));
}

int rnic_map(struct ibv_context *context, struct rnic_map *map, uint64_t offset,
	     size_t bytes);
void rnic_unmap(struct rnic_map *map);

struct ibv_pd *rnic_alloc_pd(struct ibv_context *context);
int rnic_dealloc_pd(struct ibv_pd *pd);
int rnic_rereg_mr(struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		  size_t length, int access);
struct ibv_mr *rnic_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   uint64_t hca_va, int access);
int rnic_dereg_mr(struct verbs_mr *vmr);
struct ibv_mw *rnic_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int rnic_dealloc_mw(struct ibv_mw *mw);
int rnic_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		 struct ibv_mw_bind *bind);
struct ibv_ah *rnic_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int rnic_destroy_ah(struct ibv_ah *ah);

struct ibv_cq *rnic_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel, int vector);
struct ibv_cq_ex *rnic_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr);
bool rnic_take(struct rnic_cq *cq, struct ibv_wc *wc);
void rnic_give_back(struct rnic_cq *cq);
int rnic_check_cq_attr(const struct ibv_cq_init_attr_ex *attr);
void rnic_set_poll_ops(struct ibv_cq_ex *cq);
int rnic_destroy_cq(struct ibv_cq *cq);
int rnic_resize_cq(struct ibv_cq *cq, int cqe);
int rnic_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int rnic_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int rnic_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void rnic_cq_forget(struct rnic_cq *cq, uint32_t qpn);

struct ibv_srq *rnic_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr);
int rnic_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int rnic_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int rnic_destroy_srq(struct ibv_srq *srq);
int rnic_get_srq_num(struct ibv_srq *srq, uint32_t *number);
int rnic_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);
uint64_t rnic_srq_complete(struct rnic_srq *srq, uint16_t tag);

struct ibv_qp *rnic_create_qp(struct ibv_pd *pd,
			      struct ibv_qp_init_attr *attr);
struct ibv_qp *rnic_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr);
int rnic_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int rnic_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
int rnic_destroy_qp(struct ibv_qp *qp);
int rnic_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);
int rnic_add_send(struct rnic_qp *qp, const struct ibv_send_wr *wr,
		  size_t *bytes);
void rnic_publish(struct rnic_qp *qp, uint16_t before, size_t last_bytes);
int rnic_set_wr_ops(struct rnic_qp *qp, uint64_t operations);
int rnic_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr);
void rnic_build_receive(uint8_t *wqe, uint16_t index, uint16_t tag,
			const struct ibv_recv_wr *wr);
bool rnic_send_completed(struct rnic_qp *qp, const struct rnic_cqe *cqe,
			 struct ibv_wc *wc);
uint64_t rnic_receive_completed(struct rnic_qp *qp);

#endif
