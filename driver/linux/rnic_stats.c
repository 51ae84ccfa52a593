// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Event counters of the device, for `rdma statistic`. */
#include "rnic_ib.h"
#include "rnic_counters.h"

struct rdma_hw_stats *rnic_alloc_hw_port_stats(struct ib_device *ibdev,
					       u32 port)
{
	return rdma_alloc_hw_stats_struct(rnic_counter_descs, RNIC_COUNTERS,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int rnic_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		      u32 port, int index)
{
	struct rnic_dev *dev = to_rnic_dev(ibdev);
	u32 i;

	/* The device as a whole has none beside its port. */
	if (!port)
		return -EINVAL;
	for (i = 0; i < RNIC_COUNTERS; i++)
		stats->value[i] = rnic_read_reg(dev, RNIC_REG_COUNTER_BASE +
						     i * sizeof(u64));
	return RNIC_COUNTERS;
}
