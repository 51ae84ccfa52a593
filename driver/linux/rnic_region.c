// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions as the device knows them, and that of all memory. */
#include <linux/dma-mapping.h>
#include <rdma/ib_verbs.h>

#include "rnic.h"

/* All that a DMA address can be (map_function), in the largest pages. */
#define RNIC_ALL_MEMORY_PAGES (RNIC_REGION_BYTES >> RNIC_LOG_PAGE_MAX)

int rnic_create_region(struct rnic_dev *dev, const struct rnic_region *region)
{
	struct rnic_admin_create_mr body = {};
	int access = region->access;

	rnic_put(&body, RNIC_ADMIN_CREATE_MR_VA, region->iova);
	rnic_put(&body, RNIC_ADMIN_CREATE_MR_LENGTH, region->length);
	rnic_put(&body, RNIC_ADMIN_CREATE_MR_PAGE_LIST, region->list);
	rnic_put(&body, RNIC_ADMIN_CREATE_MR_PD, region->pdn);
	rnic_put(&body, RNIC_ADMIN_CREATE_MR_LOG_PAGE, region->log_page);
	rnic_put(&body, RNIC_ADMIN_CREATE_MR_LOCAL_WRITE,
		 !!(access & IB_ACCESS_LOCAL_WRITE));
	rnic_put(&body, RNIC_ADMIN_CREATE_MR_REMOTE_READ,
		 !!(access & IB_ACCESS_REMOTE_READ));
	rnic_put(&body, RNIC_ADMIN_CREATE_MR_REMOTE_WRITE,
		 !!(access & IB_ACCESS_REMOTE_WRITE));
	rnic_put(&body, RNIC_ADMIN_CREATE_MR_REMOTE_ATOMIC,
		 !!(access & IB_ACCESS_REMOTE_ATOMIC));
	rnic_put(&body, RNIC_ADMIN_CREATE_MR_WINDOW_BIND,
		 !!(access & IB_ACCESS_MW_BIND));
	return rnic_admin_execute(dev, RNIC_ADMIN_OPCODE_CREATE_MR, region->key,
				  body.word, NULL);
}

/*
 * Fills in what all regions of all memory have: one list, in which page i is
 * page i. It is made when somebody wants one, and stays.
 */
int rnic_all_memory(struct rnic_dev *dev, struct rnic_region *region)
{
	size_t bytes = RNIC_ALL_MEMORY_PAGES * sizeof(__le64);
	size_t i;

	mutex_lock(&dev->all_memory_mutex);
	if (!dev->all_memory) {
		dev->all_memory = dma_alloc_coherent(&dev->pdev->dev, bytes,
						     &dev->all_memory_dma,
						     GFP_KERNEL);
		for (i = 0; dev->all_memory && i < RNIC_ALL_MEMORY_PAGES; i++)
			dev->all_memory[i] =
				cpu_to_le64((u64)i << RNIC_LOG_PAGE_MAX);
	}
	mutex_unlock(&dev->all_memory_mutex);
	memset(region, 0, sizeof(*region));
	region->length = RNIC_REGION_BYTES;
	region->list = dev->all_memory_dma;
	region->log_page = RNIC_LOG_PAGE_MAX;
	return dev->all_memory ? 0 : -ENOMEM;
}

void rnic_free_all_memory(struct rnic_dev *dev)
{
	if (dev->all_memory)
		dma_free_coherent(&dev->pdev->dev,
				  RNIC_ALL_MEMORY_PAGES * sizeof(__le64),
				  dev->all_memory, dev->all_memory_dma);
	dev->all_memory = NULL;
}
