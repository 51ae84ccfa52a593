// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The RDMA device: what it is, its port, its registration, its events. */
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>

#include "rnic_ib.h"

static __be64 guid_of(struct rnic_dev *dev)
{
	__be64 guid;

	addrconf_addr_eui48((u8 *)&guid, dev->netdev->dev_addr);
	return guid;
}

static int query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			struct ib_udata *udata)
{
	struct rnic_dev *dev = to_rnic_dev(ibdev);
	const struct rnic_caps *caps = &dev->caps;
	bool windows = caps->window_type1 || caps->window_type2;

	memset(attr, 0, sizeof(*attr));
	attr->sys_image_guid = ibdev->node_guid;
	attr->vendor_id = dev->pdev->vendor;
	attr->vendor_part_id = dev->pdev->device;
	attr->hw_ver = dev->pdev->revision;
	attr->max_mr_size = RNIC_REGION_BYTES;
	attr->page_size_cap = GENMASK(30, 12);
	attr->max_qp = caps->max_qp - RNIC_FIRST_QP;
	attr->max_qp_wr = min(caps->max_queue_depth, RNIC_MAX_WR);
	attr->device_cap_flags = IB_DEVICE_CURR_QP_STATE_MOD |
				 IB_DEVICE_PORT_ACTIVE_EVENT |
				 IB_DEVICE_SYS_IMAGE_GUID |
				 IB_DEVICE_RC_RNR_NAK_GEN;
	if (caps->max_fast_pages)
		attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
	if (caps->window_type1)
		attr->device_cap_flags |= IB_DEVICE_MEM_WINDOW;
	if (caps->window_type2)
		attr->device_cap_flags |= IB_DEVICE_MEM_WINDOW_TYPE_2B;
	attr->max_send_sge = caps->max_sge;
	attr->max_recv_sge = caps->max_sge;
	attr->max_sge_rd = caps->max_sge;
	attr->max_cq = caps->max_cq - RNIC_FIRST_CQ;
	attr->max_cqe = min_t(u32, caps->max_cq_depth, RNIC_MAX_CQE);
	attr->max_mr = caps->max_mr - RNIC_FIRST_KEY;
	attr->max_mw = windows ? attr->max_mr : 0;
	attr->max_pd = RNIC_PDS - RNIC_FIRST_PD;
	attr->max_qp_rd_atom = caps->max_rd_atomic;
	attr->max_qp_init_rd_atom = caps->max_rd_atomic;
	attr->max_res_rd_atom = caps->max_rd_atomic * attr->max_qp;
	attr->atomic_cap = IB_ATOMIC_HCA;
	attr->max_mcast_grp = caps->max_multicast_groups;
	attr->max_mcast_qp_attach = attr->max_qp;
	attr->max_total_mcast_qp_attach = attr->max_mcast_grp * attr->max_qp;
	/* Nothing of them is on the device. */
	attr->max_ah = INT_MAX;
	attr->max_srq = caps->max_srq;
	attr->max_srq_wr = min(caps->max_srq_depth, RNIC_MAX_WR);
	attr->max_srq_sge = caps->max_sge;
	attr->max_fast_reg_page_list_len = caps->max_fast_pages;
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = 10;
	attr->timestamp_mask = ~0ULL;
	attr->hca_core_clock = caps->clock_mhz * 1000;
	attr->cq_caps.max_cq_moderation_count = U16_MAX;
	attr->cq_caps.max_cq_moderation_period = U16_MAX;
	return 0;
}

/*
 * The largest MTU of the interface is that of its own queue, and says nothing
 * of what the network carries.
 */
u8 rnic_active_mtu(struct rnic_dev *dev)
{
	u32 mtu = READ_ONCE(dev->netdev->mtu);

	if (mtu == dev->netdev->max_mtu)
		return dev->caps.max_mtu;
	return min_t(u32, iboe_get_mtu(mtu), dev->caps.max_mtu);
}

static bool is_active(struct rnic_dev *dev)
{
	return netif_running(dev->netdev) && netif_carrier_ok(dev->netdev) &&
	       !rnic_failed(dev);
}

static int query_port(struct ib_device *ibdev, u32 port,
		      struct ib_port_attr *attr)
{
	struct rnic_dev *dev = to_rnic_dev(ibdev);
	bool up = is_active(dev);
	u16 speed;
	u8 width;
	int err;

	err = ib_get_eth_speed(ibdev, port, &speed, &width);
	if (err)
		return err;
	attr->active_speed = speed;
	attr->active_width = width;
	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP :
				IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = dev->caps.max_mtu;
	attr->active_mtu = rnic_active_mtu(dev);
	attr->phys_mtu = dev->netdev->mtu;
	attr->gid_tbl_len = RNIC_GIDS;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = dev->caps.max_message;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	return 0;
}

static int query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int get_port_immutable(struct ib_device *ibdev, u32 port,
			      struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	immutable->gid_tbl_len = RNIC_GIDS;
	immutable->pkey_tbl_len = 1;
	return 0;
}

static void dealloc(struct rnic_ibdev *ib)
{
	rnic_table_destroy(&ib->cqs);
	rnic_table_destroy(&ib->qps);
	rnic_table_destroy(&ib->srqs);
	rnic_table_destroy(&ib->keys);
	ida_destroy(&ib->pds);
	ida_destroy(&ib->uars);
	ib_dealloc_device(&ib->ibdev);
}

static const struct ib_device_ops rnic_ops = {
	.owner = THIS_MODULE,
	/* The provider knows the device by its PCI numbers. */
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_no_driver_id_binding = 1,
	.uverbs_abi_ver = RNIC_ABI_VERSION,

	.add_gid = rnic_add_gid,
	.alloc_hw_port_stats = rnic_alloc_hw_port_stats,
	.alloc_mr = rnic_alloc_mr,
	.alloc_mw = rnic_alloc_mw,
	.alloc_pd = rnic_alloc_pd,
	.alloc_ucontext = rnic_alloc_ucontext,
	.attach_mcast = rnic_attach_mcast,
	.create_ah = rnic_create_ah,
	.create_cq = rnic_create_cq,
	.create_qp = rnic_create_qp,
	.create_srq = rnic_create_srq,
	.create_user_ah = rnic_create_ah,
	.dealloc_mw = rnic_dealloc_mw,
	.dealloc_pd = rnic_dealloc_pd,
	.dealloc_ucontext = rnic_dealloc_ucontext,
	.del_gid = rnic_del_gid,
	.dereg_mr = rnic_dereg_mr,
	.destroy_ah = rnic_destroy_ah,
	.destroy_cq = rnic_destroy_cq,
	.destroy_qp = rnic_destroy_qp,
	.destroy_srq = rnic_destroy_srq,
	.detach_mcast = rnic_detach_mcast,
	.disassociate_ucontext = rnic_disassociate_ucontext,
	.get_dma_mr = rnic_get_dma_mr,
	.get_hw_stats = rnic_get_hw_stats,
	.get_link_layer = get_link_layer,
	.get_port_immutable = get_port_immutable,
	.map_mr_sg = rnic_map_mr_sg,
	.mmap = rnic_mmap,
	.mmap_free = rnic_mmap_free,
	.modify_cq = rnic_modify_cq,
	.modify_qp = rnic_modify_qp,
	.modify_srq = rnic_modify_srq,
	.poll_cq = rnic_poll_cq,
	.post_recv = rnic_post_recv,
	.post_send = rnic_post_send,
	.post_srq_recv = rnic_post_srq_recv,
	.query_ah = rnic_query_ah,
	.query_device = query_device,
	.query_pkey = query_pkey,
	.query_port = query_port,
	.query_qp = rnic_query_qp,
	.query_srq = rnic_query_srq,
	.reg_user_mr = rnic_reg_user_mr,
	.req_notify_cq = rnic_req_notify_cq,
	.rereg_user_mr = rnic_rereg_user_mr,
	.resize_cq = rnic_resize_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, rnic_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, rnic_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_mw, rnic_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, rnic_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, rnic_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, rnic_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, rnic_ucontext, ibucontext),
};

static int init_tables(struct rnic_ibdev *ib, const struct rnic_caps *caps)
{
	const struct {
		struct rnic_table *table;
		u32 max;
		u32 first;
	} queues[] = {
		{ &ib->cqs, caps->max_cq, RNIC_FIRST_CQ },
		{ &ib->qps, caps->max_qp, RNIC_FIRST_QP },
		{ &ib->srqs, max(caps->max_srq, 1U), 0 },
	};
	int err = rnic_table_init(&ib->keys, ilog2(caps->max_mr),
				  RNIC_KEY_TAG_BITS, RNIC_FIRST_KEY);
	int i;

	/* Each of them is destroyed, whatever the others are. */
	for (i = 0; i < ARRAY_SIZE(queues); i++) {
		u32 bits = ilog2(queues[i].max);
		int one = rnic_table_init(queues[i].table, bits,
					  RNIC_NUMBER_BITS - bits,
					  queues[i].first);

		err = err ?: one;
	}
	return err;
}

static int init(struct rnic_ibdev *ib, struct rnic_dev *dev)
{
	ib->dev = dev;
	ida_init(&ib->pds);
	ida_init(&ib->uars);
	spin_lock_init(&ib->gid_lock);
	mutex_init(&ib->gsi_mutex);
	INIT_WORK(&ib->gsi_work, rnic_gsi_work);
	ib->ibdev.node_type = RDMA_NODE_IB_CA;
	ib->ibdev.phys_port_cnt = 1;
	ib->ibdev.num_comp_vectors = max(dev->vectors - 1, 1U);
	ib->ibdev.dev.parent = &dev->pdev->dev;
	ib->ibdev.node_guid = guid_of(dev);
	ib_set_device_ops(&ib->ibdev, &rnic_ops);
	return init_tables(ib, &dev->caps);
}

/* No event, no work and no change of the interface reach it any more. */
static void forget(struct rnic_dev *dev, struct rnic_ibdev *ib)
{
	rtnl_lock();
	WRITE_ONCE(dev->ib, NULL);
	rtnl_unlock();
	rnic_eqs_synchronize(dev);
	cancel_work_sync(&ib->gsi_work);
	cancel_work_sync(&dev->flush);
}

int rnic_ib_register(struct rnic_dev *dev)
{
	struct rnic_ibdev *ib = ib_alloc_device(rnic_ibdev, ibdev);
	int err;

	if (!ib)
		return -ENOMEM;
	err = init(ib, dev);
	if (err)
		goto dealloc;
	err = ib_device_set_netdev(&ib->ibdev, dev->netdev, RNIC_PORT);
	if (err)
		goto dealloc;
	/* Events come from now on: pairs with the acquire in rnic_eq.c. */
	smp_store_release(&dev->ib, ib);
	err = ib_register_device(&ib->ibdev, "rnic_%d", &dev->pdev->dev);
	if (!err)
		return 0;
	forget(dev, ib);
dealloc:
	dealloc(ib);
	return err;
}

/*
 * Everything that was made of it is gone when this returns, or belongs to
 * processes that find nothing behind it.
 */
void rnic_ib_unregister(struct rnic_dev *dev)
{
	struct rnic_ibdev *ib = dev->ib;
	struct ib_event event = { .event = IB_EVENT_DEVICE_FATAL };

	if (!ib)
		return;
	if (rnic_failed(dev)) {
		event.device = &ib->ibdev;
		event.element.port_num = RNIC_PORT;
		ib_dispatch_event(&event);
	}
	ib_unregister_device(&ib->ibdev);
	forget(dev, ib);
	dealloc(ib);
}

static void port_event(struct rnic_ibdev *ib)
{
	struct ib_event event = {
		.device = &ib->ibdev,
		.event = is_active(ib->dev) ? IB_EVENT_PORT_ACTIVE :
					      IB_EVENT_PORT_ERR,
		.element.port_num = RNIC_PORT,
	};

	ib_dispatch_event(&event);
}

/* The interface went up or down. With the lock of rtnl. */
void rnic_ib_port_changed(struct rnic_dev *dev)
{
	if (dev->ib)
		port_event(dev->ib);
}

static void cq_event(struct rnic_ibdev *ib, u32 type, u32 number)
{
	struct rnic_cq *cq = rnic_table_find(&ib->cqs, number);
	struct ib_event event = {
		.device = &ib->ibdev,
		.event = IB_EVENT_CQ_ERR,
	};

	if (!cq || cq->cqn != number)
		return;
	if (type == RNIC_EQE_TYPE_COMPLETION) {
		rnic_cq_event(cq);
	} else if (cq->ibcq.event_handler) {
		event.element.cq = &cq->ibcq;
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
	}
}

static void srq_event(struct rnic_ibdev *ib, struct ib_event *event, u32 number)
{
	struct rnic_srq *srq = rnic_table_find(&ib->srqs, number);

	if (!srq || srq->srqn != number || !srq->ibsrq.event_handler)
		return;
	event->element.srq = &srq->ibsrq;
	srq->ibsrq.event_handler(event, srq->ibsrq.srq_context);
}

static void qp_event(struct rnic_ibdev *ib, struct ib_event *event, u32 number)
{
	struct rnic_qp *qp = rnic_table_find(&ib->qps, number);

	if (!qp || qp->qpn != number || !qp->ibqp.event_handler)
		return;
	event->element.qp = &qp->ibqp;
	qp->ibqp.event_handler(event, qp->ibqp.qp_context);
}

/* In the interrupt. From 0x10 on the types are 0x10 + enum ib_event_type. */
void rnic_ib_event(struct rnic_ibdev *ib, const struct rnic_eqe *eqe)
{
	u32 type = rnic_get(eqe, RNIC_EQE_EVENT_TYPE);
	u32 number = rnic_get(eqe, RNIC_EQE_NUMBER);
	struct ib_event event = { .device = &ib->ibdev };

	switch (type) {
	case RNIC_EQE_TYPE_COMPLETION:
	case RNIC_EQE_TYPE_CQ_ERROR:
		cq_event(ib, type, number);
		break;
	case RNIC_EQE_TYPE_PORT_ACTIVE:
	case RNIC_EQE_TYPE_PORT_ERROR:
		rnic_netdev_update_carrier(ib->dev);
		port_event(ib);
		break;
	case RNIC_EQE_TYPE_SRQ_ERROR:
	case RNIC_EQE_TYPE_SRQ_LIMIT:
		event.event = type - 0x10;
		srq_event(ib, &event, number);
		break;
	case RNIC_EQE_TYPE_QP_FATAL:
		event.event = IB_EVENT_QP_FATAL;
		qp_event(ib, &event, number);
		break;
	default:
		event.event = type - 0x10;
		qp_event(ib, &event, number);
	}
}
