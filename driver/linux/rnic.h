/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The device as a PCI function: registers, admin queue, event queues, network
 * interface. What is above it is in rnic_ib.h.
 */
#ifndef RNIC_H
#define RNIC_H

#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/etherdevice.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "rnic_hw.h"

#define RNIC_DRIVER_NAME "rnic_ib"

#define RNIC_ADMIN_LOG_DEPTH 6
#define RNIC_ADMIN_DEPTH BIT(RNIC_ADMIN_LOG_DEPTH)
/*
 * Of each CQ, QP and SRQ, of the device and the port at most one entry is in
 * an event queue that is not consumed: 770, so that this many never fill.
 */
#define RNIC_EQ_LOG_DEPTH 10
#define RNIC_EQ_DEPTH BIT(RNIC_EQ_LOG_DEPTH)

struct rnic_dev;
struct rnic_ibdev;

/* A command that waits for its completion. */
struct rnic_admin_wait {
	struct completion done;
	struct rnic_admin_completion completion;
	bool answered;
};

struct rnic_admin {
	struct rnic_admin_command *commands;
	struct rnic_admin_completion *completions;
	dma_addr_t commands_dma;
	dma_addr_t completions_dma;
	struct semaphore room;
	/* Protects what is below it. */
	spinlock_t lock;
	struct rnic_admin_wait *waits[RNIC_ADMIN_DEPTH];
	u16 producer;
	u16 consumer;
	bool open;
};

struct rnic_eq {
	struct rnic_dev *dev;
	struct rnic_eqe *ring;
	dma_addr_t dma;
	u32 consumer;
	u8 eqn;
	char name[IFNAMSIZ + 8];
};

/* What QueryCapabilities said. */
struct rnic_caps {
	u32 max_qp;
	u32 max_cq;
	u32 max_eq;
	u32 max_mr;
	u32 max_srq;
	u32 max_queue_depth;
	u32 max_cq_depth;
	u32 max_srq_depth;
	u32 max_sge;
	u32 max_inline;
	u32 max_rd_atomic;
	u32 max_mtu;
	u32 max_message;
	u32 max_fast_pages;
	u32 max_multicast_groups;
	u32 uar_count;
	u32 msix_vectors;
	u32 clock_mhz;
	bool window_type1;
	bool window_type2;
};

enum rnic_dev_flag {
	/* The device has failed: nothing of it is used until it is reset. */
	RNIC_DEV_FAILED,
	/* The driver lets go of it: it is not brought up again. */
	RNIC_DEV_REMOVED,
};

struct rnic_dev {
	struct pci_dev *pdev;
	void __iomem *bar;
	unsigned long flags;
	struct rnic_admin admin;
	struct rnic_caps caps;
	struct rnic_eq *eqs;
	unsigned int vectors;
	struct net_device *netdev;
	/* Null while there is none; set and cleared in process context only. */
	struct rnic_ibdev *ib;
	struct work_struct recovery;
};

static inline void rnic_write_reg(struct rnic_dev *dev, u32 offset, u64 value)
{
	writeq(value, dev->bar + offset);
}

static inline u64 rnic_read_reg(struct rnic_dev *dev, u32 offset)
{
	return readq(dev->bar + offset);
}

/* Doorbells of the kernel's own UAR; writeq orders memory before them. */
static inline void rnic_ring(struct rnic_dev *dev, u32 doorbell, u64 value)
{
	writeq(value, dev->bar + RNIC_KERNEL_UAR * RNIC_UAR_PAGE_BYTES + doorbell);
}

/*
 * Phase of an entry of 64 bytes that the device writes in one piece: bit 0 of
 * its last byte. dma_rmb() comes before anything else of the entry is read.
 */
static inline u64 rnic_phase(const __le64 *entry)
{
	return le64_to_cpu(READ_ONCE(entry[7])) >> 56 & 1;
}

static inline bool rnic_failed(struct rnic_dev *dev)
{
	return test_bit(RNIC_DEV_FAILED, &dev->flags);
}

void rnic_fail(struct rnic_dev *dev, const char *why);

int rnic_admin_open(struct rnic_dev *dev);
void rnic_admin_close(struct rnic_dev *dev);
void rnic_admin_start(struct rnic_dev *dev);
void rnic_admin_fail(struct rnic_dev *dev);
void rnic_admin_interrupt(struct rnic_dev *dev);
int rnic_admin_execute(struct rnic_dev *dev, enum rnic_admin_opcode opcode,
		       u32 number, const __le64 *body, __le64 *result);
int rnic_admin_destroy(struct rnic_dev *dev, enum rnic_admin_opcode opcode,
		       u32 number);
int rnic_query_caps(struct rnic_dev *dev);

int rnic_eqs_alloc(struct rnic_dev *dev);
void rnic_eqs_free(struct rnic_dev *dev);
int rnic_eqs_create(struct rnic_dev *dev);
void rnic_eqs_destroy(struct rnic_dev *dev);
void rnic_eqs_synchronize(struct rnic_dev *dev);

int rnic_netdev_create(struct rnic_dev *dev);
void rnic_netdev_destroy(struct rnic_dev *dev);
void rnic_netdev_write_mac(struct rnic_dev *dev);
bool rnic_netdev_update_carrier(struct rnic_dev *dev);

int rnic_ib_register(struct rnic_dev *dev);
void rnic_ib_unregister(struct rnic_dev *dev);
void rnic_ib_fatal(struct rnic_ibdev *ib);
void rnic_ib_event(struct rnic_ibdev *ib, const struct rnic_eqe *eqe);

#endif
