/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Segments of WQEs, written one behind the other: each call returns the place
 * behind its own.
 */
#ifndef RNIC_SEGMENT_H
#define RNIC_SEGMENT_H

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif

#include "rnic_hw.h"

static inline __u8 *rnic_put_segment(__u8 *at, const __le64 *word, size_t bytes)
{
	memcpy(at, word, bytes);
	return at + bytes;
}

static inline __u8 *rnic_put_data(__u8 *at, __u64 va, __u32 length, __u32 lkey)
{
	struct rnic_wqe_data data = {};

	rnic_put(&data, RNIC_WQE_DATA_VA, va);
	rnic_put(&data, RNIC_WQE_DATA_LENGTH, length);
	rnic_put(&data, RNIC_WQE_DATA_LKEY, lkey);
	return rnic_put_segment(at, data.word, sizeof(data));
}

static inline __u8 *rnic_put_remote(__u8 *at, __u64 va, __u32 rkey)
{
	struct rnic_wqe_remote remote = {};

	rnic_put(&remote, RNIC_WQE_REMOTE_VA, va);
	rnic_put(&remote, RNIC_WQE_REMOTE_RKEY, rkey);
	return rnic_put_segment(at, remote.word, sizeof(remote));
}

/* Behind the remote segment. */
static inline __u8 *rnic_put_atomic(__u8 *at, __u64 swap_add, __u64 compare)
{
	struct rnic_wqe_atomic atomic = {};

	rnic_put(&atomic, RNIC_WQE_ATOMIC_SWAP_ADD, swap_add);
	rnic_put(&atomic, RNIC_WQE_ATOMIC_COMPARE, compare);
	return rnic_put_segment(at, atomic.word, sizeof(atomic));
}

#endif
