/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fields of the structures that the device shares with us (rnic_hw.h): each is
 * some bits of little-endian 64-bit words, and may lie in two of them.
 */
#ifndef RNIC_FIELD_H
#define RNIC_FIELD_H

#include <linux/types.h>

#ifdef __KERNEL__
#define rnic_from_le64(value) le64_to_cpu(value)
#define rnic_to_le64(value) cpu_to_le64(value)
#else
#include <endian.h>
#define rnic_from_le64(value) le64toh((__force __u64)(value))
#define rnic_to_le64(value) ((__force __le64)htole64(value))
#ifndef __force
#define __force
#endif
#endif

/* A field by its lowest bit and its width, which is at most 64. */
#define RNIC_FIELD(lsb, width) ((lsb) << 8 | (width))
#define RNIC_FIELD_LSB(field) ((unsigned int)(field) >> 8)
#define RNIC_FIELD_WIDTH(field) ((unsigned int)(field) & 0xff)

static inline __u64 rnic_field_mask(unsigned int field)
{
	return ~(__u64)0 >> (64 - RNIC_FIELD_WIDTH(field));
}

/* The value at the place of a field that lies in the first word. */
static inline __u64 rnic_value(unsigned int field, __u64 value)
{
	return (value & rnic_field_mask(field)) << RNIC_FIELD_LSB(field);
}

/* What a word, such as that of a register, has in a field. */
static inline __u64 rnic_field(unsigned int field, __u64 word)
{
	return word >> RNIC_FIELD_LSB(field) & rnic_field_mask(field);
}

static inline __u64 rnic_get_words(const __le64 *word, unsigned int field)
{
	unsigned int shift = RNIC_FIELD_LSB(field) % 64;
	__u64 value;

	word += RNIC_FIELD_LSB(field) / 64;
	value = rnic_from_le64(word[0]) >> shift;
	if (shift + RNIC_FIELD_WIDTH(field) > 64)
		value |= rnic_from_le64(word[1]) << (64 - shift);
	return value & rnic_field_mask(field);
}

static inline void rnic_put_words(__le64 *word, unsigned int field, __u64 value)
{
	unsigned int shift = RNIC_FIELD_LSB(field) % 64;
	__u64 mask = rnic_field_mask(field);

	value &= mask;
	word += RNIC_FIELD_LSB(field) / 64;
	word[0] &= rnic_to_le64(~(mask << shift));
	word[0] |= rnic_to_le64(value << shift);
	if (shift + RNIC_FIELD_WIDTH(field) > 64) {
		word[1] &= rnic_to_le64(~(mask >> (64 - shift)));
		word[1] |= rnic_to_le64(value >> (64 - shift));
	}
}

#define rnic_get(from, field) rnic_get_words((from)->word, field)
#define rnic_put(to, field, value) rnic_put_words((to)->word, field, value)

/* Where a field above 64 bits begins (RNIC_..._BYTE). */
#define rnic_bytes(at, byte) ((__u8 *)(at)->word + (byte))

#endif
