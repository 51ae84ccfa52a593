/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause) */
/*
 * What the driver and its user-space provider say to each other, beside the
 * structures of the RDMA core. Offsets are those for mmap of the context's
 * file; rings are mapped whole, and written by the process (send and receive
 * queues) or the device (completion queues, the retired record).
 */
#ifndef RNIC_ABI_H
#define RNIC_ABI_H

#include <linux/types.h>

#define RNIC_ABI_VERSION 1

struct rnic_alloc_ucontext_resp {
	/* One page: doorbells and the window for WQEs. */
	__aligned_u64 uar_offset;
	__u32 max_inline;
	__u32 max_sge;
	__u32 max_message;
	__u32 clock_mhz;
};

struct rnic_create_cq_resp {
	__aligned_u64 ring_offset;
	__u32 ring_bytes;
	__u32 cqn;
	__u8 log_depth;
	__u8 reserved[7];
};

struct rnic_resize_cq_resp {
	__aligned_u64 ring_offset;
	__u32 ring_bytes;
	/* Index of the first entry in the new ring. */
	__u32 origin;
	__u8 log_depth;
	__u8 reserved[7];
};

struct rnic_create_srq_resp {
	__aligned_u64 ring_offset;
	__u32 ring_bytes;
	__u32 srqn;
	__u8 log_depth;
	__u8 log_stride;
	__u8 reserved[6];
};

struct rnic_create_qp_resp {
	/* The send ring; behind it the receive ring, and the record. */
	__aligned_u64 ring_offset;
	__u32 ring_bytes;
	__u32 receive_at;
	__u32 record_at;
	__u8 send_log_depth;
	__u8 send_log_stride;
	__u8 receive_log_depth;
	__u8 receive_log_stride;
};

struct rnic_create_ah_resp {
	__u8 dest_mac[6];
	/* Which of the two addresses of a QP is the source. */
	__u8 second_source;
	__u8 hop_limit;
	/* Of the tag; 0xffff: the datagrams have none. */
	__u16 vlan_id;
	__u8 reserved[6];
};

#endif
