// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queues of the network interface: a QP of type RawPacket, its CQ, and a key of
 * all memory. A frame is one data segment; one that came is copied out of its
 * page, which is posted again.
 */
#include <linux/dma-mapping.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <rdma/ib_verbs.h>

#include "rnic.h"
#include "rnic_segment.h"

#define RNIC_ETH_SEND_BYTES (RNIC_ETH_DEPTH << RNIC_MIN_LOG_SEND_STRIDE)
#define RNIC_ETH_RECEIVE_BYTES (RNIC_ETH_DEPTH << RNIC_MIN_LOG_RECEIVE_STRIDE)
#define RNIC_ETH_RECORD_AT PAGE_ALIGN(RNIC_ETH_SEND_BYTES + \
				      RNIC_ETH_RECEIVE_BYTES)
#define RNIC_ETH_RINGS_BYTES (RNIC_ETH_RECORD_AT + PAGE_SIZE)
/* Sends and receives: it never overruns. */
#define RNIC_ETH_LOG_CQ_DEPTH (RNIC_ETH_LOG_DEPTH + 1)
#define RNIC_ETH_CQ_DEPTH BIT(RNIC_ETH_LOG_CQ_DEPTH)
#define RNIC_ETH_CQ_BYTES (RNIC_ETH_CQ_DEPTH * sizeof(struct rnic_cqe))

static int tell_state(struct rnic_dev *dev, enum rnic_qp_state state, u32 mask)
{
	struct rnic_admin_modify_qp body = {};

	rnic_put(&body, RNIC_ADMIN_MODIFY_QP_NEXT_STATE, state);
	rnic_put(&body, RNIC_ADMIN_MODIFY_QP_ATTR_MASK,
		 mask | RNIC_QP_ATTR_STATE);
	return rnic_admin_execute(dev, RNIC_ADMIN_OPCODE_MODIFY_QP,
				  RNIC_ETH_QPN, body.word, NULL);
}

static int create_region(struct rnic_dev *dev)
{
	struct rnic_region region;
	int err = rnic_all_memory(dev, &region);

	if (err)
		return err;
	region.key = RNIC_ETH_KEY;
	region.pdn = RNIC_ETH_PDN;
	region.access = IB_ACCESS_LOCAL_WRITE;
	return rnic_create_region(dev, &region);
}

static int create_cq(struct rnic_eth *eth)
{
	struct rnic_admin_create_cq body = {};

	rnic_put(&body, RNIC_ADMIN_CREATE_CQ_BASE, eth->cqes_dma);
	rnic_put(&body, RNIC_ADMIN_CREATE_CQ_LOG_DEPTH, RNIC_ETH_LOG_CQ_DEPTH);
	rnic_put(&body, RNIC_ADMIN_CREATE_CQ_EQN, eth->dev->vectors > 1);
	rnic_put(&body, RNIC_ADMIN_CREATE_CQ_UAR, RNIC_KERNEL_UAR);
	return rnic_admin_execute(eth->dev, RNIC_ADMIN_OPCODE_CREATE_CQ,
				  RNIC_ETH_CQN, body.word, NULL);
}

static int create_qp(struct rnic_eth *eth)
{
	struct rnic_admin_create_qp body = {};

	rnic_put(&body, RNIC_ADMIN_CREATE_QP_SQ_BASE, eth->rings_dma);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_RQ_BASE,
		 eth->rings_dma + RNIC_ETH_SEND_BYTES);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_RETIRED_ADDRESS,
		 eth->rings_dma + RNIC_ETH_RECORD_AT);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_PD, RNIC_ETH_PDN);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_UAR, RNIC_KERNEL_UAR);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_SEND_CQN, RNIC_ETH_CQN);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_RECEIVE_CQN, RNIC_ETH_CQN);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_SQ_LOG_DEPTH, RNIC_ETH_LOG_DEPTH);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_SQ_LOG_STRIDE,
		 RNIC_MIN_LOG_SEND_STRIDE);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_RQ_LOG_DEPTH, RNIC_ETH_LOG_DEPTH);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_RQ_LOG_STRIDE,
		 RNIC_MIN_LOG_RECEIVE_STRIDE);
	rnic_put(&body, RNIC_ADMIN_CREATE_QP_QP_TYPE, RNIC_QP_TYPE_RAW_PACKET);
	return rnic_admin_execute(eth->dev, RNIC_ADMIN_OPCODE_CREATE_QP,
				  RNIC_ETH_QPN, body.word, NULL);
}

/* The page of that slot, once more. */
static void post_page(struct rnic_eth *eth)
{
	u32 slot = eth->receive_producer % RNIC_ETH_DEPTH;
	u8 *wqe = eth->rings + RNIC_ETH_SEND_BYTES +
		  (slot << RNIC_MIN_LOG_RECEIVE_STRIDE);
	struct rnic_wqe_receive head = {};

	rnic_put(&head, RNIC_WQE_RECEIVE_SGE_COUNT, 1);
	rnic_put(&head, RNIC_WQE_RECEIVE_WQE_INDEX, eth->receive_producer);
	wqe = rnic_put_segment(wqe, head.word, sizeof(head));
	rnic_put_data(wqe, eth->pages_dma[slot], PAGE_SIZE, RNIC_ETH_KEY);
	eth->receive_producer++;
}

static void ring_receives(struct rnic_eth *eth)
{
	/* writeq orders the ring before the doorbell. */
	rnic_ring(eth->dev, RNIC_UAR_RECEIVE_DOORBELL,
		  rnic_value(RNIC_RECEIVE_DOORBELL_QPN, RNIC_ETH_QPN) |
		  rnic_value(RNIC_RECEIVE_DOORBELL_PRODUCER_INDEX,
			     eth->receive_producer));
}

static void free_memory(struct rnic_eth *eth)
{
	struct device *device = &eth->dev->pdev->dev;
	int i;

	for (i = 0; i < RNIC_ETH_DEPTH; i++) {
		if (!eth->pages[i])
			continue;
		dma_unmap_page(device, eth->pages_dma[i], PAGE_SIZE,
			       DMA_FROM_DEVICE);
		__free_page(eth->pages[i]);
	}
	if (eth->rings)
		dma_free_coherent(device, RNIC_ETH_RINGS_BYTES, eth->rings,
				  eth->rings_dma);
	if (eth->cqes)
		dma_free_coherent(device, RNIC_ETH_CQ_BYTES, eth->cqes,
				  eth->cqes_dma);
}

static int alloc_memory(struct rnic_eth *eth)
{
	struct device *device = &eth->dev->pdev->dev;
	struct page *page;
	int i;

	eth->rings = dma_alloc_coherent(device, RNIC_ETH_RINGS_BYTES,
					&eth->rings_dma, GFP_KERNEL);
	eth->cqes = dma_alloc_coherent(device, RNIC_ETH_CQ_BYTES,
				       &eth->cqes_dma, GFP_KERNEL);
	if (!eth->rings || !eth->cqes)
		return -ENOMEM;
	for (i = 0; i < RNIC_ETH_DEPTH; i++) {
		page = alloc_page(GFP_KERNEL);
		if (!page)
			return -ENOMEM;
		eth->pages_dma[i] = dma_map_page(device, page, 0, PAGE_SIZE,
						 DMA_FROM_DEVICE);
		if (dma_mapping_error(device, eth->pages_dma[i])) {
			__free_page(page);
			return -ENOMEM;
		}
		eth->pages[i] = page;
	}
	return 0;
}

static int create(struct rnic_eth *eth)
{
	int err = create_region(eth->dev);

	if (err)
		return err;
	eth->objects++;
	err = create_cq(eth);
	if (err)
		return err;
	eth->objects++;
	err = create_qp(eth);
	if (err)
		return err == -EINVAL ? -EOPNOTSUPP : err;
	eth->objects++;
	return 0;
}

static void destroy(struct rnic_eth *eth)
{
	static const struct {
		enum rnic_admin_opcode opcode;
		u32 number;
	} ends[] = {
		{ RNIC_ADMIN_OPCODE_DESTROY_MR, RNIC_ETH_KEY },
		{ RNIC_ADMIN_OPCODE_DESTROY_CQ, RNIC_ETH_CQN },
		{ RNIC_ADMIN_OPCODE_DESTROY_QP, RNIC_ETH_QPN },
	};

	while (eth->objects) {
		eth->objects--;
		rnic_admin_undo(eth->dev, ends[eth->objects].opcode,
				ends[eth->objects].number);
	}
}

/* Return: 0, -EOPNOTSUPP (the device has no such QPs), or why not. */
int rnic_eth_open(struct rnic_eth *eth, struct net_device *netdev,
		  struct rnic_dev *dev, struct napi_struct *napi)
{
	int i, err;

	memset(eth, 0, sizeof(*eth));
	eth->dev = dev;
	eth->netdev = netdev;
	eth->napi = napi;
	err = alloc_memory(eth);
	if (!err)
		err = create(eth);
	if (!err)
		err = tell_state(dev, RNIC_QP_STATE_INIT, RNIC_QP_ATTR_PORT);
	if (!err)
		err = tell_state(dev, RNIC_QP_STATE_RTR, 0);
	if (!err)
		err = tell_state(dev, RNIC_QP_STATE_RTS, 0);
	if (err) {
		destroy(eth);
		free_memory(eth);
		eth->dev = NULL;
		return err;
	}
	for (i = 0; i < RNIC_ETH_DEPTH; i++)
		post_page(eth);
	ring_receives(eth);
	return 0;
}

static void free_sent(struct rnic_eth *eth, u16 until)
{
	for (; eth->send_consumer != until; eth->send_consumer++) {
		u32 slot = eth->send_consumer % RNIC_ETH_DEPTH;
		struct sk_buff *skb = eth->sent[slot];

		dma_unmap_single(&eth->dev->pdev->dev, eth->sent_dma[slot],
				 skb->len, DMA_TO_DEVICE);
		dev_consume_skb_any(skb);
	}
}

/* Nobody polls or sends any more. Does nothing when it is not open. */
void rnic_eth_close(struct rnic_eth *eth)
{
	if (!eth->dev)
		return;
	destroy(eth);
	rnic_eqs_synchronize(eth->dev);
	free_sent(eth, eth->send_producer);
	free_memory(eth);
	eth->dev = NULL;
}

static bool is_full(struct rnic_eth *eth)
{
	u16 taken = READ_ONCE(eth->send_producer) -
		    READ_ONCE(eth->send_consumer);

	return taken >= RNIC_ETH_DEPTH;
}

/*
 * The device reads at most one VLAN tag and the IP header, and finds the
 * checksum where the stack wants it.
 */
static bool finds_checksum(const struct sk_buff *skb)
{
	int network = ETH_HLEN, transport;
	__be16 type = skb->protocol;
	u8 protocol;

	if (type == htons(ETH_P_8021Q)) {
		type = vlan_get_protocol(skb);
		network += VLAN_HLEN;
	}
	if (type == htons(ETH_P_IP) && !ip_is_fragment(ip_hdr(skb))) {
		transport = network + ip_hdrlen(skb);
		protocol = ip_hdr(skb)->protocol;
	} else if (type == htons(ETH_P_IPV6)) {
		transport = network + sizeof(struct ipv6hdr);
		protocol = ipv6_hdr(skb)->nexthdr;
	} else {
		return false;
	}
	if (skb_network_offset(skb) != network ||
	    skb_checksum_start_offset(skb) != transport)
		return false;
	if (protocol == IPPROTO_TCP)
		return skb->csum_offset == offsetof(struct tcphdr, check);
	return protocol == IPPROTO_UDP &&
	       skb->csum_offset == offsetof(struct udphdr, check);
}

/* With the lock of the interface's queue. */
netdev_tx_t rnic_eth_xmit(struct rnic_eth *eth, struct sk_buff *skb)
{
	u32 slot = eth->send_producer % RNIC_ETH_DEPTH;
	u8 *wqe = eth->rings + (slot << RNIC_MIN_LOG_SEND_STRIDE);
	struct device *device = &eth->dev->pdev->dev;
	struct rnic_wqe_control control = {};
	bool sum = skb->ip_summed == CHECKSUM_PARTIAL;
	dma_addr_t address;

	if (sum && !finds_checksum(skb)) {
		sum = false;
		if (skb_checksum_help(skb))
			goto drop;
	}
	if (skb->len > RNIC_MAX_FRAME_BYTES)
		goto drop;
	address = dma_map_single(device, skb->data, skb->len, DMA_TO_DEVICE);
	if (dma_mapping_error(device, address))
		goto drop;
	eth->sent[slot] = skb;
	eth->sent_dma[slot] = address;
	rnic_put(&control, RNIC_WQE_CONTROL_OPCODE, RNIC_WQE_OPCODE_SEND);
	rnic_put(&control, RNIC_WQE_CONTROL_WQE_INDEX, eth->send_producer);
	rnic_put(&control, RNIC_WQE_CONTROL_QPN, RNIC_ETH_QPN);
	rnic_put(&control, RNIC_WQE_CONTROL_SIZE, 2);
	rnic_put(&control, RNIC_WQE_CONTROL_IP_CSUM, sum);
	rnic_put(&control, RNIC_WQE_CONTROL_LENGTH, skb->len);
	rnic_put_data(rnic_put_segment(wqe, control.word, sizeof(control)),
		      address, skb->len, RNIC_ETH_KEY);
	DEV_STATS_INC(eth->netdev, tx_packets);
	DEV_STATS_ADD(eth->netdev, tx_bytes, skb->len);
	skb_tx_timestamp(skb);
	WRITE_ONCE(eth->send_producer, eth->send_producer + 1);
	/* writeq orders the ring before the doorbell. */
	rnic_ring(eth->dev, RNIC_UAR_SEND_DOORBELL,
		  rnic_value(RNIC_SEND_DOORBELL_QPN, RNIC_ETH_QPN) |
		  rnic_value(RNIC_SEND_DOORBELL_PRODUCER_INDEX,
			     eth->send_producer));
	if (is_full(eth)) {
		netif_stop_queue(eth->netdev);
		/* Pairs with that in rnic_eth_poll: one of the two sees it. */
		smp_mb();
		if (!is_full(eth))
			netif_wake_queue(eth->netdev);
	}
	return NETDEV_TX_OK;

drop:
	dev_kfree_skb_any(skb);
	DEV_STATS_INC(eth->netdev, tx_dropped);
	return NETDEV_TX_OK;
}

static void receive(struct rnic_eth *eth, const struct rnic_cqe *cqe)
{
	u32 bytes = rnic_get(cqe, RNIC_CQE_BYTE_COUNT);
	u32 slot = eth->receive_consumer++ % RNIC_ETH_DEPTH;
	struct device *device = &eth->dev->pdev->dev;
	struct sk_buff *skb = napi_alloc_skb(eth->napi, bytes);

	if (skb) {
		dma_sync_single_for_cpu(device, eth->pages_dma[slot], bytes,
					DMA_FROM_DEVICE);
		skb_put_data(skb, page_address(eth->pages[slot]), bytes);
		dma_sync_single_for_device(device, eth->pages_dma[slot], bytes,
					   DMA_FROM_DEVICE);
		skb->protocol = eth_type_trans(skb, eth->netdev);
		if (rnic_get(cqe, RNIC_CQE_L4_OK) &&
		    eth->netdev->features & NETIF_F_RXCSUM)
			skb->ip_summed = CHECKSUM_UNNECESSARY;
		DEV_STATS_INC(eth->netdev, rx_packets);
		DEV_STATS_ADD(eth->netdev, rx_bytes, bytes);
		napi_gro_receive(eth->napi, skb);
	} else {
		DEV_STATS_INC(eth->netdev, rx_dropped);
	}
	post_page(eth);
}

static void ring_cq(struct rnic_eth *eth, enum rnic_cq_arm arm)
{
	/* What was read of the entries, then the index that gives them back. */
	mb();
	rnic_ring(eth->dev, RNIC_UAR_CQ_DOORBELL,
		  rnic_value(RNIC_CQ_DOORBELL_CQN, RNIC_ETH_CQN) |
		  rnic_value(RNIC_CQ_DOORBELL_ARM, arm) |
		  rnic_value(RNIC_CQ_DOORBELL_CONSUMER_INDEX, eth->consumer));
}

void rnic_eth_arm(struct rnic_eth *eth)
{
	ring_cq(eth, RNIC_CQ_ARM_ANY);
}

/* Returns the number of frames that came. */
int rnic_eth_poll(struct rnic_eth *eth, int budget)
{
	u32 before = eth->consumer;
	int received = 0;

	while (received < budget) {
		const struct rnic_cqe *cqe =
			&eth->cqes[eth->consumer % RNIC_ETH_CQ_DEPTH];
		u64 phase = ~(eth->consumer >> RNIC_ETH_LOG_CQ_DEPTH) & 1;

		if (rnic_phase(cqe->word) != phase)
			break;
		/* The phase, then the rest, and the frame. */
		dma_rmb();
		if (rnic_get(cqe, RNIC_CQE_STATUS)) {
			rnic_fail(eth->dev, "an Ethernet queue has failed");
			break;
		}
		if (rnic_get(cqe, RNIC_CQE_IS_RECEIVE)) {
			receive(eth, cqe);
			received++;
		} else {
			free_sent(eth, rnic_get(cqe, RNIC_CQE_WQE_INDEX) + 1);
		}
		eth->consumer++;
	}
	if (eth->consumer == before)
		return 0;
	if (received)
		ring_receives(eth);
	ring_cq(eth, RNIC_CQ_ARM_NONE);
	/* Slots are free, then whether somebody waits for one. */
	smp_mb();
	if (netif_queue_stopped(eth->netdev) && !is_full(eth))
		netif_wake_queue(eth->netdev);
	return received;
}
