// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames of the network stack that a peer would take for RDMA. Any process may
 * send datagrams to the UDP port of RoCEv2 from a socket, with the host's
 * address as source, and so with what the peer grants to a queue pair here. They
 * do not leave.
 */
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/module.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <rdma/ib_verbs.h>

#include "rnic.h"

static bool raw_roce;
module_param(raw_roce, bool, 0644);
MODULE_PARM_DESC(raw_roce,
		 "Let frames of the network stack to UDP port 4791 leave, as Soft-RoCE on this interface needs it (N)");

/* A header that is not whole goes nowhere: what cannot be read is refused. */
static bool is_roce_port(const struct sk_buff *skb, int offset)
{
	struct udphdr space;
	const struct udphdr *udp = skb_header_pointer(skb, offset,
						      sizeof(space), &space);

	return !udp || udp->dest == htons(ROCE_V2_UDP_DPORT);
}

/* Fragments behind the first have no port, and are nothing without the first. */
static bool is_roce_ipv4(const struct sk_buff *skb, int offset)
{
	struct iphdr space;
	const struct iphdr *ip = skb_header_pointer(skb, offset, sizeof(space),
						    &space);

	return ip && ip->protocol == IPPROTO_UDP &&
	       !(ip->frag_off & htons(IP_OFFSET)) &&
	       is_roce_port(skb, offset + ip->ihl * 4);
}

static bool is_roce_ipv6(const struct sk_buff *skb, int offset)
{
	struct ipv6hdr space;
	const struct ipv6hdr *ip = skb_header_pointer(skb, offset,
						      sizeof(space), &space);
	u8 protocol;
	__be16 fragment;

	if (!ip)
		return false;
	protocol = ip->nexthdr;
	offset = ipv6_skip_exthdr(skb, offset + sizeof(space), &protocol,
				  &fragment);
	if (offset < 0)
		return true;
	return protocol == IPPROTO_UDP && is_roce_port(skb, offset);
}

/* Whether it is for a RoCEv2 port, with any VLAN tags in front. */
static bool is_roce(const struct sk_buff *skb)
{
	int offset = 2 * ETH_ALEN;
	__be16 space;
	const __be16 *type;

	for (;; offset += VLAN_HLEN) {
		type = skb_header_pointer(skb, offset, sizeof(space), &space);
		if (!type)
			return false;
		if (!eth_type_vlan(*type))
			break;
	}
	offset += sizeof(space);
	switch (*type) {
	case htons(ETH_P_IP):
		return is_roce_ipv4(skb, offset);
	case htons(ETH_P_IPV6):
		return is_roce_ipv6(skb, offset);
	default:
		return false;
	}
}

/* Whether the network stack may send it. */
bool rnic_may_leave(const struct sk_buff *skb)
{
	return READ_ONCE(raw_roce) || !is_roce(skb);
}
