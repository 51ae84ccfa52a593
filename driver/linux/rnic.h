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
#include <linux/mutex.h>
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

/* Longest region, and largest page of one. */
#define RNIC_REGION_BYTES BIT_ULL(47)
#define RNIC_LOG_PAGE_MAX 30

struct rnic_region {
	u32 key;
	u32 pdn;
	u64 iova;
	u64 length;
	dma_addr_t list;
	u8 log_page;
	int access;
};

/*
 * Numbers of what the network interface has; what is above it begins behind
 * them (rnic_ib.h). There are no QPs with the indexes 0 and 1 but QP1.
 */
#define RNIC_ETH_PDN 0U
#define RNIC_ETH_CQN BIT(RNIC_CQ_INDEX_BITS)
#define RNIC_ETH_QPN (BIT(RNIC_QP_INDEX_BITS) | 2U)
#define RNIC_ETH_KEY BIT(8)

#define RNIC_ETH_LOG_DEPTH 8
#define RNIC_ETH_DEPTH BIT(RNIC_ETH_LOG_DEPTH)

/* Queues of the network interface, while it is up (rnic_eth.c). */
struct rnic_eth {
	struct rnic_dev *dev;
	struct net_device *netdev;
	struct napi_struct *napi;
	/* How many of its objects the device has, in order of creation. */
	unsigned int objects;
	/* Send ring, receive ring, record; completion ring. */
	u8 *rings;
	dma_addr_t rings_dma;
	struct rnic_cqe *cqes;
	dma_addr_t cqes_dma;
	u32 consumer;
	struct sk_buff *sent[RNIC_ETH_DEPTH];
	dma_addr_t sent_dma[RNIC_ETH_DEPTH];
	u16 send_producer;
	u16 send_consumer;
	struct page *pages[RNIC_ETH_DEPTH];
	dma_addr_t pages_dma[RNIC_ETH_DEPTH];
	u16 receive_producer;
	u16 receive_consumer;
};

/* Who may take the device down and bring it up: one at a time (rnic_main.c). */
enum rnic_owner {
	/* Probe, removal, or a reset by somebody else. */
	RNIC_OWNED_BY_CORE,
	/* None. When it fails, the recovery has it. */
	RNIC_OWNED_BY_NONE,
	RNIC_OWNED_BY_RECOVERY,
};

struct rnic_dev {
	struct pci_dev *pdev;
	void __iomem *bar;
	/* Protects owner, the change of failed, and bus mastering. */
	spinlock_t life_lock;
	enum rnic_owner owner;
	/* It is cut off from memory, and not used until it is started again. */
	bool failed;
	struct rnic_admin admin;
	struct rnic_caps caps;
	struct rnic_eq *eqs;
	unsigned int vectors;
	struct net_device *netdev;
	/* Null while there is none; set and cleared in process context only. */
	struct rnic_ibdev *ib;
	struct work_struct recovery;
	struct work_struct flush;
	/* Page list of all memory, for keys of the kernel's. */
	struct mutex all_memory_mutex; /* Whoever makes it */
	__le64 *all_memory;
	dma_addr_t all_memory_dma;
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

/*
 * The device has failed, and is cut off: nothing more of what it did comes to
 * memory, so whatever it knows of may be freed.
 */
static inline bool rnic_failed(struct rnic_dev *dev)
{
	/* Pairs with cut_off: the end of DMA, then what follows from it. */
	return smp_load_acquire(&dev->failed);
}

void rnic_fail(struct rnic_dev *dev, const char *why);
void rnic_flush_work(struct work_struct *work);
void rnic_flush_soon(struct rnic_dev *dev);

int rnic_admin_open(struct rnic_dev *dev);
void rnic_admin_close(struct rnic_dev *dev);
void rnic_admin_start(struct rnic_dev *dev);
void rnic_admin_fail(struct rnic_dev *dev);
void rnic_admin_interrupt(struct rnic_dev *dev);
int rnic_admin_execute(struct rnic_dev *dev, enum rnic_admin_opcode opcode,
		       u32 number, const __le64 *body, __le64 *result);
int rnic_admin_destroy(struct rnic_dev *dev, enum rnic_admin_opcode opcode,
		       u32 number);
void rnic_admin_undo(struct rnic_dev *dev, enum rnic_admin_opcode opcode,
		     u32 number);
int rnic_query_caps(struct rnic_dev *dev);

int rnic_create_region(struct rnic_dev *dev, const struct rnic_region *region);
int rnic_all_memory(struct rnic_dev *dev, struct rnic_region *region);
void rnic_free_all_memory(struct rnic_dev *dev);

int rnic_eqs_alloc(struct rnic_dev *dev);
void rnic_eqs_free(struct rnic_dev *dev);
int rnic_eqs_create(struct rnic_dev *dev);
void rnic_eqs_destroy(struct rnic_dev *dev);
void rnic_eqs_synchronize(struct rnic_dev *dev);

int rnic_netdev_create(struct rnic_dev *dev);
void rnic_netdev_destroy(struct rnic_dev *dev);
void rnic_netdev_write_mac(struct rnic_dev *dev);
bool rnic_netdev_update_carrier(struct rnic_dev *dev);

void rnic_netdev_take_down(struct rnic_dev *dev);
void rnic_netdev_bring_back(struct rnic_dev *dev);
bool rnic_netdev_event(struct rnic_dev *dev, u32 cqn);

int rnic_eth_open(struct rnic_eth *eth, struct net_device *netdev,
		  struct rnic_dev *dev, struct napi_struct *napi);
void rnic_eth_close(struct rnic_eth *eth);
bool rnic_may_leave(const struct sk_buff *skb);

netdev_tx_t rnic_eth_xmit(struct rnic_eth *eth, struct sk_buff *skb);
int rnic_eth_poll(struct rnic_eth *eth, int budget);
void rnic_eth_arm(struct rnic_eth *eth);

int rnic_ib_register(struct rnic_dev *dev);
void rnic_ib_unregister(struct rnic_dev *dev);
void rnic_ib_port_changed(struct rnic_dev *dev);
void rnic_ib_event(struct rnic_ibdev *ib, const struct rnic_eqe *eqe);

#endif
