/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The RDMA device, and its objects. */
#ifndef RNIC_IB_H
#define RNIC_IB_H

#include <linux/idr.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/siphash.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "rnic-abi.h"
#include "rnic.h"

#define RNIC_PORT 1
#define RNIC_GIDS 32
/* As rdma_read_gid_l2_fields has it. */
#define RNIC_NO_VLAN 0xffff
#define RNIC_PDS 4096
/* Of CQs, QPs and SRQs. */
#define RNIC_NUMBER_BITS 24
#define RNIC_KEY_TAG_BITS 8
#define RNIC_FIRST_PD 1
#define RNIC_FIRST_CQ 1
#define RNIC_FIRST_QP 3
#define RNIC_FIRST_KEY 2
/*
 * Rings are contiguous, and no allocator gives more than this without IOMMU.
 */
#define RNIC_MAX_RING_BYTES (4U << 20)
#define RNIC_MAX_CQE (RNIC_MAX_RING_BYTES / sizeof(struct rnic_cqe))
#define RNIC_MAX_WR 8192U

/*
 * Objects by number: the index of an object is in its low bits, above it a tag
 * that changes with each use, so that what comes late, for an object that is
 * gone, fits no other.
 */
struct rnic_table {
	struct xarray xa;
	u32 index_bits;
	u32 tag_bits;
	u32 first;
	/* How many indexes there are. */
	u32 count;
	/* Of the order of tags. */
	siphash_key_t secret;
	/* Protects what is below it. */
	spinlock_t lock;
	/* How many tags each index has had. */
	u32 *draws;
	/* Free indexes, from head on: those that became free last are last. */
	u32 *free;
	u32 head;
	u32 free_count;
};

/* Memory that the device knows by one address. */
struct rnic_buf {
	void *va;
	dma_addr_t dma;
	size_t bytes;
	/* To be mapped by a process: ordinary pages. */
	bool user;
};

enum rnic_mmap_kind {
	RNIC_MMAP_UAR,
	RNIC_MMAP_PAGES,
};

/* What a process may map. Rings belong to their entry, and go with it. */
struct rnic_mmap_entry {
	struct rdma_user_mmap_entry core;
	enum rnic_mmap_kind kind;
	union {
		phys_addr_t uar;
		struct rnic_buf pages;
	};
};

/* A ring, whoever uses it: `entry` is null for those of the kernel. */
struct rnic_ring {
	struct rnic_buf buf;
	struct rnic_mmap_entry *entry;
};

struct rnic_ibdev {
	struct ib_device ibdev;
	struct rnic_dev *dev;
	struct rnic_table cqs;
	struct rnic_table qps;
	struct rnic_table srqs;
	struct rnic_table keys;
	struct ida pds;
	struct ida uars;
	/* Own addresses, and QP1, which has two of them. */
	spinlock_t gid_lock; /* Protects gids */
	union ib_gid gids[RNIC_GIDS];
	struct mutex gsi_mutex; /* Protects gsi, while it changes addresses too */
	struct rnic_qp *gsi;
	struct work_struct gsi_work;
};

static inline struct rnic_ibdev *to_rnic_ibdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct rnic_ibdev, ibdev);
}

static inline struct rnic_dev *to_rnic_dev(struct ib_device *ibdev)
{
	return to_rnic_ibdev(ibdev)->dev;
}

struct rnic_ucontext {
	struct ib_ucontext ibucontext;
	u32 uar;
	struct rnic_mmap_entry *uar_entry;
};

struct rnic_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

struct rnic_ah {
	struct ib_ah ibah;
	struct rnic_wqe_address address;
};

enum rnic_mr_kind {
	RNIC_MR_REGION,
	RNIC_MR_FAST,
};

struct rnic_mr {
	struct ib_mr ibmr;
	enum rnic_mr_kind kind;
	struct ib_umem *umem;
	/* Page list; null for a region of all memory, whose is shared. */
	__le64 *list;
	dma_addr_t list_dma;
	size_t list_bytes;
	int access;
	u32 max_pages;
	u32 pages;
};

struct rnic_mw {
	struct ib_mw ibmw;
};

struct rnic_cq {
	struct ib_cq ibcq;
	u32 cqn;
	/* Protects the ring of a kernel's queue. */
	spinlock_t lock;
	struct rnic_ring ring;
	u8 log_depth;
	u32 consumer;
	/* Of a kernel's queue: an event is wanted. */
	bool armed;
	/* How many complete here; twice if both of its queues do. */
	u32 qps;
	/* Resized: the ring before, which the process may still read. */
	struct rnic_ring last_ring;
};

struct rnic_srq {
	struct ib_srq ibsrq;
	u32 srqn;
	/* Protects ring and tags of the kernel's. */
	spinlock_t lock;
	struct rnic_ring ring;
	u8 log_depth;
	u8 log_stride;
	u32 max_sge;
	/* Of the kernel's: requests by tag, and the tags that are free. */
	u64 *wr_ids;
	u16 *free_tags;
	u32 free_count;
	u16 producer;
};

struct rnic_send_slot {
	u64 wr_id;
	u8 opcode;
	bool silent;
	bool done;
};

/*
 * A send or receive queue of the kernel's. Its indexes go on when the device's
 * begin anew (rnic_gsi.c): the device's are smaller by `base`.
 */
struct rnic_wq {
	/* Protects all of it. Inside the lock of a CQ. */
	spinlock_t lock;
	u8 *ring;
	u8 log_depth;
	u8 log_stride;
	u32 max_wr;
	u32 max_sge;
	u32 max_inline;
	u16 base;
	u16 producer;
	/* The oldest that is not free. */
	u16 oldest;
	/* Send queue: what is before it has retired, as far as is known. */
	u16 retired;
	u16 last_record;
	/* Written to the ring, and not told to the device. */
	bool paused;
	struct rnic_send_slot *slots;
	u64 *wr_ids;
};

struct rnic_qp {
	struct ib_qp ibqp;
	u32 qpn;
	enum ib_qp_state state;
	bool signal_all;
	/* Protects attr and ah_attr; held while the device changes the state. */
	struct mutex mutex;
	struct rnic_ring ring;
	u32 receive_at;
	u32 record_at;
	struct rnic_wq sq;
	struct rnic_wq rq;
	/* What the device was last told of each attribute. */
	struct rnic_admin_modify_qp attr;
	struct rdma_ah_attr ah_attr;
};

/* The service level is the priority in the VLAN tag. */
static inline u8 rnic_priority(const struct rdma_ah_attr *attr)
{
	return rdma_ah_get_sl(attr) & 7;
}

static inline struct rnic_ucontext *to_rnic_ucontext(struct ib_ucontext *ibucontext)
{
	return container_of(ibucontext, struct rnic_ucontext, ibucontext);
}

static inline struct rnic_pd *to_rnic_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct rnic_pd, ibpd);
}

static inline struct rnic_ah *to_rnic_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct rnic_ah, ibah);
}

static inline struct rnic_mr *to_rnic_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct rnic_mr, ibmr);
}

static inline struct rnic_cq *to_rnic_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct rnic_cq, ibcq);
}

static inline struct rnic_srq *to_rnic_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct rnic_srq, ibsrq);
}

static inline struct rnic_qp *to_rnic_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct rnic_qp, ibqp);
}

int rnic_table_init(struct rnic_table *table, u32 index_bits, u32 tag_bits,
		    u32 first);
int rnic_table_add(struct rnic_table *table, void *object, u32 *number);
void *rnic_table_find(struct rnic_table *table, u32 number);
void rnic_table_remove(struct rnic_table *table, u32 number);

void rnic_table_destroy(struct rnic_table *table);

int rnic_ring_alloc(struct rnic_dev *dev, struct rnic_ring *ring, size_t bytes,
		    struct ib_ucontext *ucontext);
void rnic_ring_free(struct rnic_dev *dev, struct rnic_ring *ring);
u64 rnic_ring_offset(const struct rnic_ring *ring);
int rnic_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma);
void rnic_mmap_free(struct rdma_user_mmap_entry *core);
int rnic_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata);
void rnic_dealloc_ucontext(struct ib_ucontext *ibucontext);
void rnic_disassociate_ucontext(struct ib_ucontext *ibucontext);
int rnic_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int rnic_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int rnic_respond(struct ib_udata *udata, const void *response, size_t bytes);
u32 rnic_uar_of(struct ib_udata *udata);

int rnic_add_gid(const struct ib_gid_attr *attr, void **context);
int rnic_del_gid(const struct ib_gid_attr *attr, void **context);
int rnic_vlan_of(const struct ib_gid_attr *attr, u16 *vlan);
int rnic_own_addresses(struct rnic_ibdev *ib, union ib_gid *first,
		       union ib_gid *second);
int rnic_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init_attr,
		   struct ib_udata *udata);
int rnic_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int rnic_destroy_ah(struct ib_ah *ibah, u32 flags);

struct ib_mr *rnic_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *rnic_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 iova, int access, struct ib_udata *udata);
struct ib_mr *rnic_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				 u64 length, u64 iova, int access,
				 struct ib_pd *ibpd, struct ib_udata *udata);
struct ib_mr *rnic_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			    u32 max_sg);
int rnic_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		   unsigned int *offset);
int rnic_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
int rnic_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int rnic_dealloc_mw(struct ib_mw *ibmw);

int rnic_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct ib_udata *udata);
int rnic_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int rnic_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int rnic_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
int rnic_poll_cq(struct ib_cq *ibcq, int count, struct ib_wc *wc);
int rnic_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
bool rnic_cq_has_entry(struct rnic_cq *cq);
void rnic_cq_event(struct rnic_cq *cq);
u32 rnic_cq_forget(struct rnic_cq *cq, u32 qpn, bool flushed_receives_only);

int rnic_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
		    struct ib_udata *udata);
int rnic_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		    enum ib_srq_attr_mask mask, struct ib_udata *udata);
int rnic_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int rnic_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int rnic_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr);
u64 rnic_srq_complete(struct rnic_srq *srq, u16 tag);

int rnic_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		   struct ib_udata *udata);
int rnic_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata);
int rnic_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init_attr);
int rnic_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int rnic_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int rnic_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int rnic_query_qp_state(struct rnic_qp *qp, struct rnic_admin_qp_state *state);
int rnic_tell_qp(struct rnic_qp *qp, const struct rnic_admin_modify_qp *attr);
int rnic_put_own_addresses(struct rnic_qp *qp, struct rnic_admin_modify_qp *to);

int rnic_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr);
int rnic_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr);
void rnic_ring_sends(struct rnic_qp *qp);
void rnic_ring_receives(struct rnic_qp *qp);
u8 *rnic_slot_at(struct rnic_wq *wq, u16 index);
int rnic_check_send(struct rnic_qp *qp, const struct ib_send_wr *wr,
		    u64 *length);
u8 rnic_build_send(struct rnic_qp *qp, const struct ib_send_wr *wr, u64 length,
		   bool silent);
void rnic_build_receive(u8 *wqe, u16 index, u16 tag,
			const struct ib_recv_wr *wr);
bool rnic_send_completed(struct rnic_qp *qp, const struct rnic_cqe *cqe,
			 struct ib_wc *wc);
u64 rnic_receive_completed(struct rnic_qp *qp);
void rnic_retire_sends(struct rnic_qp *qp);
void rnic_wq_reset(struct rnic_qp *qp);

int rnic_flush(struct rnic_cq *cq, int count, struct ib_wc *wc);

u8 rnic_active_mtu(struct rnic_dev *dev);
struct rdma_hw_stats *rnic_alloc_hw_port_stats(struct ib_device *ibdev,
					       u32 port);
int rnic_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		      u32 port, int index);

void rnic_gsi_addresses_changed(struct rnic_ibdev *ib);
void rnic_gsi_work(struct work_struct *work);

#endif
