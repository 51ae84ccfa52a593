// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rings, contexts of processes and what they map, protection domains.
 *
 * A ring is contiguous for the device. Those of processes are single pages
 * that lie together, so that a page stays as long as somebody maps it, whether
 * the ring still is one or not.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "rnic_ib.h"

static int buf_alloc(struct rnic_dev *dev, struct rnic_buf *buf, size_t bytes,
		     bool user)
{
	struct device *device = &dev->pdev->dev;

	buf->bytes = PAGE_ALIGN(bytes);
	buf->user = user;
	if (buf->bytes > RNIC_MAX_RING_BYTES)
		return -ENOMEM;
	if (!user) {
		buf->va = dma_alloc_coherent(device, buf->bytes, &buf->dma,
					     GFP_KERNEL | __GFP_NOWARN);
		return buf->va ? 0 : -ENOMEM;
	}
	buf->va = alloc_pages_exact(buf->bytes,
				    GFP_KERNEL_ACCOUNT | __GFP_ZERO |
				    __GFP_NOWARN);
	if (!buf->va)
		return -ENOMEM;
	buf->dma = dma_map_single(device, buf->va, buf->bytes,
				  DMA_BIDIRECTIONAL);
	if (dma_mapping_error(device, buf->dma)) {
		free_pages_exact(buf->va, buf->bytes);
		return -ENOMEM;
	}
	return 0;
}

static void buf_free(struct rnic_dev *dev, struct rnic_buf *buf)
{
	struct device *device = &dev->pdev->dev;

	if (!buf->user) {
		dma_free_coherent(device, buf->bytes, buf->va, buf->dma);
		return;
	}
	dma_unmap_single(device, buf->dma, buf->bytes, DMA_BIDIRECTIONAL);
	free_pages_exact(buf->va, buf->bytes);
}

/* A zeroed ring of the kernel's, or of a process with that context. */
int rnic_ring_alloc(struct rnic_dev *dev, struct rnic_ring *ring, size_t bytes,
		    struct ib_ucontext *ucontext)
{
	struct rnic_mmap_entry *entry;
	int err;

	ring->entry = NULL;
	err = buf_alloc(dev, &ring->buf, bytes, ucontext);
	if (err || !ucontext)
		return err;
	entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	if (!entry) {
		buf_free(dev, &ring->buf);
		return -ENOMEM;
	}
	entry->kind = RNIC_MMAP_PAGES;
	entry->pages = ring->buf;
	err = rdma_user_mmap_entry_insert(ucontext, &entry->core,
					  ring->buf.bytes);
	if (err) {
		buf_free(dev, &ring->buf);
		kfree(entry);
		return err;
	}
	ring->entry = entry;
	return 0;
}

/* The device does not know it any more. Does nothing when there is none. */
void rnic_ring_free(struct rnic_dev *dev, struct rnic_ring *ring)
{
	if (ring->entry)
		rdma_user_mmap_entry_remove(&ring->entry->core);
	else if (ring->buf.va)
		buf_free(dev, &ring->buf);
	memset(ring, 0, sizeof(*ring));
}

u64 rnic_ring_offset(const struct rnic_ring *ring)
{
	return rdma_user_mmap_get_offset(&ring->entry->core);
}

static struct rnic_mmap_entry *to_entry(struct rdma_user_mmap_entry *core)
{
	return container_of(core, struct rnic_mmap_entry, core);
}

void rnic_mmap_free(struct rdma_user_mmap_entry *core)
{
	struct rnic_mmap_entry *entry = to_entry(core);

	if (entry->kind == RNIC_MMAP_PAGES)
		buf_free(to_rnic_dev(core->ucontext->device), &entry->pages);
	kfree(entry);
}

static int map_pages(struct vm_area_struct *vma, const struct rnic_buf *buf)
{
	unsigned long at;
	int err;

	for (at = 0; at < buf->bytes; at += PAGE_SIZE) {
		err = vm_insert_page(vma, vma->vm_start + at,
				     virt_to_page(buf->va + at));
		if (err)
			return err;
	}
	return 0;
}

int rnic_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *core =
		rdma_user_mmap_entry_get(ibucontext, vma);
	struct rnic_mmap_entry *entry;
	int err;

	if (!core)
		return -EINVAL;
	entry = to_entry(core);
	if (entry->kind == RNIC_MMAP_UAR)
		/*
		 * Uncached: doorbells must not be joined with each other, which
		 * write combining would do. The window takes pieces of 8 bytes.
		 */
		err = rdma_user_mmap_io(ibucontext, vma, PHYS_PFN(entry->uar),
					RNIC_UAR_PAGE_BYTES,
					pgprot_noncached(vma->vm_page_prot),
					core);
	else
		err = map_pages(vma, &entry->pages);
	rdma_user_mmap_entry_put(core);
	return err;
}

int rnic_respond(struct ib_udata *udata, const void *response, size_t bytes)
{
	return ib_copy_to_udata(udata, (void *)response,
				min(bytes, udata->outlen));
}

/* UAR of who has made that call: a process, or the kernel. */
u32 rnic_uar_of(struct ib_udata *udata)
{
	struct rnic_ucontext *ucontext =
		rdma_udata_to_drv_context(udata, struct rnic_ucontext,
					  ibucontext);

	return ucontext ? ucontext->uar : RNIC_KERNEL_UAR;
}

int rnic_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata)
{
	struct rnic_ucontext *ucontext = to_rnic_ucontext(ibucontext);
	struct rnic_ibdev *ib = to_rnic_ibdev(ibucontext->device);
	struct rnic_dev *dev = ib->dev;
	struct rnic_alloc_ucontext_resp response = {
		.max_inline = dev->caps.max_inline,
		.max_sge = dev->caps.max_sge,
		.max_message = dev->caps.max_message,
		.clock_mhz = dev->caps.clock_mhz,
	};
	struct rnic_mmap_entry *entry;
	int uar, err;

	uar = ida_alloc_range(&ib->uars, RNIC_KERNEL_UAR + 1,
			      dev->caps.uar_count, GFP_KERNEL);
	if (uar < 0)
		return uar == -ENOSPC ? -ENOMEM : uar;
	entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	err = -ENOMEM;
	if (!entry)
		goto free_uar;
	entry->kind = RNIC_MMAP_UAR;
	entry->uar = pci_resource_start(dev->pdev, 0) +
		     (u64)uar * RNIC_UAR_PAGE_BYTES;
	err = rdma_user_mmap_entry_insert(ibucontext, &entry->core, PAGE_SIZE);
	if (err) {
		kfree(entry);
		goto free_uar;
	}
	ucontext->uar = uar;
	ucontext->uar_entry = entry;
	response.uar_offset = rdma_user_mmap_get_offset(&entry->core);
	err = rnic_respond(udata, &response, sizeof(response));
	if (!err)
		return 0;
	rdma_user_mmap_entry_remove(&entry->core);
free_uar:
	ida_free(&ib->uars, uar);
	return err;
}

void rnic_dealloc_ucontext(struct ib_ucontext *ibucontext)
{
	struct rnic_ucontext *ucontext = to_rnic_ucontext(ibucontext);

	rdma_user_mmap_entry_remove(&ucontext->uar_entry->core);
	ida_free(&to_rnic_ibdev(ibucontext->device)->uars, ucontext->uar);
}

/* The core takes the UAR away; rings are pages that stay. */
void rnic_disassociate_ucontext(struct ib_ucontext *ibucontext)
{
}

int rnic_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct rnic_ibdev *ib = to_rnic_ibdev(ibpd->device);
	int index = ida_alloc_range(&ib->pds, RNIC_FIRST_PD,
				    RNIC_PDS - 1, GFP_KERNEL);

	if (index < 0)
		return -ENOMEM;
	/* Unpredictable, so that none is guessed. */
	to_rnic_pd(ibpd)->pdn = (get_random_u32() * RNIC_PDS | index) &
				GENMASK(23, 0);
	return 0;
}

int rnic_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	ida_free(&to_rnic_ibdev(ibpd->device)->pds,
		 to_rnic_pd(ibpd)->pdn % RNIC_PDS);
	return 0;
}
