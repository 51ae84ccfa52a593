// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Own addresses and address handles.
 *
 * A QP of type UD has two addresses of its own, from which it sends and for
 * which it takes datagrams: the first of the GID table that is IPv6, which is
 * the link-local one, and the first that is IPv4.
 */
#include <linux/if_vlan.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/uverbs_ioctl.h>

#include "rnic_ib.h"

#define RNIC_DEFAULT_HOP_LIMIT 64

/*
 * The VLAN whose interface has an address; RNIC_NO_VLAN: none has a tag.
 * Return: 0, -ENODEV (the interface is gone).
 */
int rnic_vlan_of(const struct ib_gid_attr *attr, u16 *vlan)
{
	int err;

	*vlan = RNIC_NO_VLAN;
	err = rdma_read_gid_l2_fields(attr, vlan, NULL);
	if (!err && *vlan >= VLAN_VID_MASK)
		*vlan = RNIC_NO_VLAN;
	return err;
}

static bool is_ipv4(const union ib_gid *gid)
{
	return ipv6_addr_v4mapped((const struct in6_addr *)gid->raw);
}

static void set_gid(struct rnic_ibdev *ib, u32 index, const union ib_gid *gid)
{
	unsigned long flags;

	spin_lock_irqsave(&ib->gid_lock, flags);
	ib->gids[index] = *gid;
	spin_unlock_irqrestore(&ib->gid_lock, flags);
	rnic_gsi_addresses_changed(ib);
}

int rnic_add_gid(const struct ib_gid_attr *attr, void **context)
{
	if (attr->index >= RNIC_GIDS)
		return -EINVAL;
	set_gid(to_rnic_ibdev(attr->device), attr->index, &attr->gid);
	return 0;
}

int rnic_del_gid(const struct ib_gid_attr *attr, void **context)
{
	if (attr->index < RNIC_GIDS)
		set_gid(to_rnic_ibdev(attr->device), attr->index, &zgid);
	return 0;
}

/*
 * The two of a UD QP; the same twice when there are only those of one kind.
 * Return: 0, -EADDRNOTAVAIL (there is none).
 */
int rnic_own_addresses(struct rnic_ibdev *ib, union ib_gid *first,
		       union ib_gid *second)
{
	union ib_gid *of_kind[] = { first, second };
	bool found[] = { false, false };
	unsigned long flags;
	int i;

	spin_lock_irqsave(&ib->gid_lock, flags);
	for (i = 0; i < RNIC_GIDS; i++) {
		bool kind = is_ipv4(&ib->gids[i]);

		if (found[kind] || rdma_is_zero_gid(&ib->gids[i]))
			continue;
		*of_kind[kind] = ib->gids[i];
		found[kind] = true;
	}
	spin_unlock_irqrestore(&ib->gid_lock, flags);
	if (!found[0] && !found[1])
		return -EADDRNOTAVAIL;
	if (!found[0])
		*first = *second;
	if (!found[1])
		*second = *first;
	return 0;
}

int rnic_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init_attr,
		   struct ib_udata *udata)
{
	struct rnic_ibdev *ib = to_rnic_ibdev(ibah->device);
	struct rdma_ah_attr *attr = init_attr->ah_attr;
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	struct rnic_wqe_address *address = &to_rnic_ah(ibah)->address;
	union ib_gid own[2];
	const union ib_gid *from;
	struct rnic_create_ah_resp response = {};
	bool second;
	u8 hop_limit;
	u16 vlan;
	int err;

	if (!(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) || !grh->sgid_attr)
		return -EINVAL;
	from = &grh->sgid_attr->gid;
	second = is_ipv4(from);
	err = rnic_own_addresses(ib, &own[0], &own[1]);
	if (err)
		return err;
	/* A datagram comes from one of the two, and from no other. */
	if (memcmp(from, &own[second], sizeof(*from)))
		return -EINVAL;
	err = rnic_vlan_of(grh->sgid_attr, &vlan);
	if (err)
		return err;
	hop_limit = grh->hop_limit ?: RNIC_DEFAULT_HOP_LIMIT;
	memset(address, 0, sizeof(*address));
	memcpy(rnic_bytes(address, RNIC_WQE_ADDRESS_DEST_IP_BYTE),
	       grh->dgid.raw, sizeof(grh->dgid));
	rnic_put(address, RNIC_WQE_ADDRESS_DEST_MAC,
		 ether_addr_to_u64(attr->roce.dmac));
	rnic_put(address, RNIC_WQE_ADDRESS_TRAFFIC_CLASS, grh->traffic_class);
	rnic_put(address, RNIC_WQE_ADDRESS_HOP_LIMIT, hop_limit);
	rnic_put(address, RNIC_WQE_ADDRESS_SECOND_SOURCE, second);
	rnic_put(address, RNIC_WQE_ADDRESS_FLOW_LABEL, grh->flow_label);
	if (vlan != RNIC_NO_VLAN) {
		rnic_put(address, RNIC_WQE_ADDRESS_VLAN, 1);
		rnic_put(address, RNIC_WQE_ADDRESS_VLAN_ID, vlan);
		rnic_put(address, RNIC_WQE_ADDRESS_PCP, rnic_priority(attr));
	}
	if (!udata)
		return 0;
	ether_addr_copy(response.dest_mac, attr->roce.dmac);
	response.second_source = second;
	response.hop_limit = hop_limit;
	response.vlan_id = vlan;
	return rnic_respond(udata, &response, sizeof(response));
}

int rnic_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	const struct rnic_wqe_address *address = &to_rnic_ah(ibah)->address;

	attr->type = ibah->type;
	rdma_ah_set_sl(attr, rnic_get(address, RNIC_WQE_ADDRESS_PCP));
	rdma_ah_set_port_num(attr, RNIC_PORT);
	rdma_ah_set_grh(attr, NULL,
			rnic_get(address, RNIC_WQE_ADDRESS_FLOW_LABEL),
			ibah->sgid_attr->index,
			rnic_get(address, RNIC_WQE_ADDRESS_HOP_LIMIT),
			rnic_get(address, RNIC_WQE_ADDRESS_TRAFFIC_CLASS));
	rdma_ah_set_dgid_raw(attr, rnic_bytes(address,
					      RNIC_WQE_ADDRESS_DEST_IP_BYTE));
	u64_to_ether_addr(rnic_get(address, RNIC_WQE_ADDRESS_DEST_MAC),
			  attr->roce.dmac);
	return 0;
}

/* The device knows nothing of it. */
int rnic_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}
