/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Barriers for loads that the machine sees (docs/guest.md): each reads the
 * device, which brings what the device wrote before. For a driver that runs with
 * `--late-entries`; tests/guest/linux_planted.py puts it into a copy.
 */
#ifndef VISIBLE_BARRIERS_H
#define VISIBLE_BARRIERS_H

#ifdef __KERNEL__
#include <linux/io.h>
#include <linux/pci.h>

/* Of the one device of the guest; one of them is in the module. */
void __iomem *rnic_visible_bar __weak;

#define pci_iomap_range(...) \
	(rnic_visible_bar = pci_iomap_range(__VA_ARGS__))
#undef dma_rmb
#define dma_rmb() \
	do { barrier(); readq(rnic_visible_bar); barrier(); } while (0)
#else
#include <stdint.h>

__attribute__((weak)) volatile uint64_t *rnic_visible_uar;

#undef udma_from_device_barrier
#define udma_from_device_barrier() \
	do { \
		asm volatile("" ::: "memory"); \
		(void)*rnic_visible_uar; \
		asm volatile("" ::: "memory"); \
	} while (0)
#endif

#endif
