// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Numbers of objects. */
#include <linux/random.h>

#include "rnic_ib.h"

/* `index_bits` of 24 are the index; indexes below `first` are not given out. */
void rnic_table_init(struct rnic_table *table, u32 index_bits, u32 first)
{
	xa_init_flags(&table->xa, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	table->index_bits = index_bits;
	table->first = first;
	table->next = first;
	table->tag = get_random_u32();
}

/* Gives `object` a number. Return: 0, -ENOMEM. */
int rnic_table_add(struct rnic_table *table, void *object, u32 *number)
{
	struct xa_limit limit = XA_LIMIT(table->first,
					 BIT(table->index_bits) - 1);
	u32 index;
	int err;

	xa_lock_irq(&table->xa);
	err = __xa_alloc_cyclic(&table->xa, &index, object, limit, &table->next,
				GFP_KERNEL);
	if (err >= 0) {
		*number = (table->tag++ << table->index_bits | index) &
			  GENMASK(23, 0);
		/* That one stands for all members of a multicast group. */
		if (*number == RNIC_MULTICAST_QPN)
			*number = index;
	}
	xa_unlock_irq(&table->xa);
	return err < 0 ? -ENOMEM : 0;
}

/* What has that index; its number may be another. */
void *rnic_table_find(struct rnic_table *table, u32 number)
{
	return xa_load(&table->xa, number & (BIT(table->index_bits) - 1));
}

void rnic_table_remove(struct rnic_table *table, u32 number)
{
	xa_erase_irq(&table->xa, number & (BIT(table->index_bits) - 1));
}

void rnic_table_destroy(struct rnic_table *table)
{
	WARN_ON(!xa_empty(&table->xa));
	xa_destroy(&table->xa);
}
