// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Numbers of objects: an index that was free for long, and above it a tag. None
 * can be guessed from others, so that a stale or an invented number names no
 * object; and none comes again while somebody may still name the object before,
 * such as a peer for which its connection is in TimeWait.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "rnic_ib.h"

#define RNIC_SHUFFLE_ROUNDS 12

/**
 * rnic_table_init - a table without objects
 * @table: the table; rnic_table_destroy() is for it whatever this returns
 * @index_bits: of a number, how many of its lowest bits are the index
 * @tag_bits: how many are the tag above it, 2 at least
 * @first: lowest index that is given out
 *
 * Return: 0, -ENOMEM.
 */
int rnic_table_init(struct rnic_table *table, u32 index_bits, u32 tag_bits,
		    u32 first)
{
	u32 i;

	xa_init_flags(&table->xa, XA_FLAGS_LOCK_IRQ);
	spin_lock_init(&table->lock);
	table->index_bits = index_bits;
	table->tag_bits = tag_bits;
	table->first = first;
	table->count = BIT(index_bits) - first;
	table->free_count = table->count;
	get_random_bytes(&table->secret, sizeof(table->secret));
	table->draws = kvcalloc(table->count, sizeof(*table->draws), GFP_KERNEL);
	table->free = kvcalloc(table->count, sizeof(*table->free), GFP_KERNEL);
	if (!table->draws || !table->free)
		return -ENOMEM;
	for (i = 0; i < table->count; i++)
		table->free[i] = first + i;
	return 0;
}

/*
 * A permutation of half of the tags for each index and turn (Hoang, Morris,
 * Rogaway: An Enciphering Scheme Based on a Card Shuffle).
 */
static u32 shuffled(struct rnic_table *table, u32 index, u32 turn, u32 place)
{
	u32 mask = BIT(table->tag_bits - 1) - 1;
	u32 round;

	for (round = 0; round < RNIC_SHUFFLE_ROUNDS; round++) {
		u32 salt = siphash_3u32(index, turn, round, &table->secret);
		u32 partner = (salt - place) & mask;

		if (siphash_4u32(index, turn, round, max(place, partner),
				 &table->secret) & 1)
			place = partner;
	}
	return place;
}

/*
 * Not 0, and not one of the last 2^(tag_bits - 2) of that index. Each quarter
 * of the draws has half of the tags of one half, in an order of its own, and
 * halves alternate: who knows all tags that were still guesses among a quarter.
 */
static u32 next_tag(struct rnic_table *table, u32 index)
{
	u32 quarter = BIT(table->tag_bits - 2);
	u32 draw = table->draws[index - table->first]++;
	u32 turn = draw / quarter;
	u32 half = turn % 2 * 2 * quarter;
	u32 tag = half + shuffled(table, index, turn, draw % quarter);

	return tag ?: half + shuffled(table, index, turn, quarter);
}

static u32 *free_at(struct rnic_table *table, u32 place)
{
	return &table->free[(table->head + place) % table->count];
}

/* One of that half of the free indexes which has been free for longest. */
static int draw(struct rnic_table *table, u32 *number)
{
	unsigned long flags;
	u32 index, *chosen;

	spin_lock_irqsave(&table->lock, flags);
	if (!table->free_count) {
		spin_unlock_irqrestore(&table->lock, flags);
		return -ENOMEM;
	}
	chosen = free_at(table,
			 get_random_u32_below((table->free_count + 1) / 2));
	index = *chosen;
	*chosen = *free_at(table, 0);
	table->head = (table->head + 1) % table->count;
	table->free_count--;
	do {
		*number = next_tag(table, index) << table->index_bits | index;
		/* That one stands for all members of a multicast group. */
	} while (*number == RNIC_MULTICAST_QPN);
	spin_unlock_irqrestore(&table->lock, flags);
	return 0;
}

static u32 index_of(struct rnic_table *table, u32 number)
{
	return number & (BIT(table->index_bits) - 1);
}

static void give_back(struct rnic_table *table, u32 index)
{
	unsigned long flags;

	if (index < table->first)
		return;
	spin_lock_irqsave(&table->lock, flags);
	*free_at(table, table->free_count++) = index;
	spin_unlock_irqrestore(&table->lock, flags);
}

/* Gives `object` a number. Return: 0, -ENOMEM. */
int rnic_table_add(struct rnic_table *table, void *object, u32 *number)
{
	int err = draw(table, number);

	if (err)
		return err;
	err = xa_insert_irq(&table->xa, index_of(table, *number), object,
			    GFP_KERNEL);
	if (err)
		give_back(table, index_of(table, *number));
	return err ? -ENOMEM : 0;
}

/* What has that index; its number may be another. */
void *rnic_table_find(struct rnic_table *table, u32 number)
{
	return xa_load(&table->xa, index_of(table, number));
}

void rnic_table_remove(struct rnic_table *table, u32 number)
{
	xa_erase_irq(&table->xa, index_of(table, number));
	give_back(table, index_of(table, number));
}

void rnic_table_destroy(struct rnic_table *table)
{
	WARN_ON(!xa_empty(&table->xa));
	xa_destroy(&table->xa);
	kvfree(table->free);
	kvfree(table->draws);
}
