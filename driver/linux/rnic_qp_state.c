// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* States and attributes of queue pairs. */
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "rnic_ib.h"

#define RNIC_PKEY 0xffff
#define RNIC_DEFAULT_HOP_LIMIT 64

/* The bits of the mask are those of the device (QpAttr). */
#define RNIC_QP_ATTRS \
	(IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY | \
	 IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY | \
	 IB_QP_AV | IB_QP_PATH_MTU | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | \
	 IB_QP_RNR_RETRY | IB_QP_RQ_PSN | IB_QP_MAX_QP_RD_ATOMIC | \
	 IB_QP_MIN_RNR_TIMER | IB_QP_SQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | \
	 IB_QP_DEST_QPN)

#define SET(to, field, value) rnic_put(to, RNIC_ADMIN_MODIFY_QP_##field, value)
#define GET(from, field) rnic_get(from, RNIC_ADMIN_MODIFY_QP_##field)

static bool is_datagram(const struct rnic_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UD || qp->ibqp.qp_type == IB_QPT_GSI;
}

static int put_path(struct rnic_admin_modify_qp *to,
		    const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	const struct ib_gid_attr *from = grh->sgid_attr;
	u16 vlan;
	int err;

	if (!(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) || !from)
		return -EINVAL;
	err = rnic_vlan_of(from, &vlan);
	if (err)
		return err;
	if (vlan != RNIC_NO_VLAN) {
		SET(to, VLAN, 1);
		SET(to, VLAN_ID, vlan);
		SET(to, PCP, rnic_priority(attr));
	}
	SET(to, IPV6, rdma_gid_attr_network_type(from) == RDMA_NETWORK_IPV6);
	SET(to, TRAFFIC_CLASS, grh->traffic_class);
	SET(to, HOP_LIMIT, grh->hop_limit ?: RNIC_DEFAULT_HOP_LIMIT);
	SET(to, FLOW_LABEL, grh->flow_label);
	SET(to, DEST_MAC, ether_addr_to_u64(attr->roce.dmac));
	memcpy(rnic_bytes(to, RNIC_ADMIN_MODIFY_QP_SOURCE_IP_BYTE),
	       from->gid.raw, sizeof(from->gid));
	memcpy(rnic_bytes(to, RNIC_ADMIN_MODIFY_QP_DEST_IP_BYTE),
	       grh->dgid.raw, sizeof(grh->dgid));
	return 0;
}

/* A UD QP has no peer, but two addresses of its own. */
int rnic_put_own_addresses(struct rnic_qp *qp, struct rnic_admin_modify_qp *to)
{
	union ib_gid own[2];
	int err = rnic_own_addresses(to_rnic_ibdev(qp->ibqp.device), &own[0],
				     &own[1]);

	if (err)
		return err;
	memcpy(rnic_bytes(to, RNIC_ADMIN_MODIFY_QP_SOURCE_IP_BYTE),
	       own[0].raw, sizeof(own[0]));
	memcpy(rnic_bytes(to, RNIC_ADMIN_MODIFY_QP_DEST_IP_BYTE),
	       own[1].raw, sizeof(own[1]));
	return 0;
}

static u8 active_mtu(struct rnic_qp *qp)
{
	return rnic_active_mtu(to_rnic_dev(qp->ibqp.device));
}

static int put_attributes(struct rnic_qp *qp, struct rnic_admin_modify_qp *to,
			  const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_CUR_STATE)
		SET(to, CUR_STATE, attr->cur_qp_state);
	if (mask & IB_QP_ACCESS_FLAGS) {
		SET(to, REMOTE_WRITE,
		    !!(attr->qp_access_flags & IB_ACCESS_REMOTE_WRITE));
		SET(to, REMOTE_READ,
		    !!(attr->qp_access_flags & IB_ACCESS_REMOTE_READ));
		SET(to, REMOTE_ATOMIC,
		    !!(attr->qp_access_flags & IB_ACCESS_REMOTE_ATOMIC));
	}
	if (mask & IB_QP_PKEY_INDEX) {
		if (attr->pkey_index)
			return -EINVAL;
		SET(to, PKEY, RNIC_PKEY);
	}
	if (mask & IB_QP_QKEY)
		SET(to, QKEY, attr->qkey);
	if (mask & IB_QP_PATH_MTU) {
		if (attr->path_mtu > active_mtu(qp))
			return -EINVAL;
		SET(to, PATH_MTU, attr->path_mtu);
	}
	if (mask & IB_QP_TIMEOUT)
		SET(to, ACK_TIMEOUT, attr->timeout);
	if (mask & IB_QP_RETRY_CNT)
		SET(to, RETRY_COUNT, attr->retry_cnt);
	if (mask & IB_QP_RNR_RETRY)
		SET(to, RNR_RETRY, attr->rnr_retry);
	if (mask & IB_QP_RQ_PSN)
		SET(to, RQ_PSN, attr->rq_psn);
	if (mask & IB_QP_SQ_PSN)
		SET(to, SQ_PSN, attr->sq_psn);
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		SET(to, MAX_RD_ATOMIC, attr->max_rd_atomic);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		SET(to, MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic);
	if (mask & IB_QP_MIN_RNR_TIMER)
		SET(to, MIN_RNR_TIMER, attr->min_rnr_timer);
	if (mask & IB_QP_DEST_QPN)
		SET(to, DEST_QPN, attr->dest_qp_num);
	SET(to, SQD_NOTIFY,
	    mask & IB_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify);
	if (mask & IB_QP_AV)
		return put_path(to, &attr->ah_attr);
	return 0;
}

/* Tells the device, and remembers what it was told; not the state. */
int rnic_tell_qp(struct rnic_qp *qp, const struct rnic_admin_modify_qp *attr)
{
	int err = rnic_admin_execute(to_rnic_dev(qp->ibqp.device),
				     RNIC_ADMIN_OPCODE_MODIFY_QP, qp->qpn,
				     attr->word, NULL);

	if (err)
		return err;
	qp->attr = *attr;
	return 0;
}

/*
 * To RESET or the error state. A device that has failed does nothing more of
 * it, which is all that the caller wants.
 */
static int tell_end(struct rnic_qp *qp, const struct rnic_admin_modify_qp *attr)
{
	int err = rnic_tell_qp(qp, attr);

	return rnic_failed(to_rnic_dev(qp->ibqp.device)) ? 0 : err;
}

/* RESET leaves no completions of it. Those of a process forgets the process. */
static void forget_completions(struct rnic_qp *qp)
{
	struct rnic_cq *cqs[] = { to_rnic_cq(qp->ibqp.send_cq),
				  to_rnic_cq(qp->ibqp.recv_cq) };
	unsigned long flags;
	int i;

	for (i = 0; i < ARRAY_SIZE(cqs); i++) {
		spin_lock_irqsave(&cqs[i]->lock, flags);
		rnic_cq_forget(cqs[i], qp->qpn, false);
		spin_unlock_irqrestore(&cqs[i]->lock, flags);
	}
}

static int enter_reset(struct rnic_qp *qp)
{
	struct rnic_admin_modify_qp attr = {};
	int err;

	SET(&attr, ATTR_MASK, IB_QP_STATE);
	err = tell_end(qp, &attr);
	if (err)
		return err;
	WRITE_ONCE(qp->state, IB_QPS_RESET);
	if (qp->ring.entry) {
		memset(qp->ring.buf.va + qp->record_at, 0,
		       sizeof(struct rnic_retired_record));
	} else {
		forget_completions(qp);
		rnic_wq_reset(qp);
	}
	return 0;
}

static int modify(struct rnic_qp *qp, struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state from = mask & IB_QP_CUR_STATE ? attr->cur_qp_state :
							 qp->state;
	enum ib_qp_state to = mask & IB_QP_STATE ? attr->qp_state : from;
	struct rnic_admin_modify_qp next = qp->attr;
	int err;

	if (!ib_modify_qp_is_ok(from, to, qp->ibqp.qp_type, mask))
		return -EINVAL;
	if (to == IB_QPS_RESET)
		return enter_reset(qp);
	err = put_attributes(qp, &next, attr, mask);
	if (err)
		return err;
	if (is_datagram(qp) && from == IB_QPS_RESET && to == IB_QPS_INIT)
		mask |= IB_QP_PORT;
	if (is_datagram(qp) && from == IB_QPS_INIT && to == IB_QPS_RTR) {
		err = rnic_put_own_addresses(qp, &next);
		if (err)
			return err;
		SET(&next, PATH_MTU, active_mtu(qp));
		mask |= IB_QP_AV | IB_QP_PATH_MTU;
	}
	if (mask & IB_QP_AV && !is_datagram(qp)) {
		/* Its own for each connection, and the same for all packets. */
		SET(&next, UDP_SOURCE_PORT,
		    rdma_get_udp_sport(GET(&next, FLOW_LABEL), qp->qpn,
				       GET(&next, DEST_QPN)));
	}
	SET(&next, NEXT_STATE, to);
	SET(&next, ATTR_MASK, mask | IB_QP_STATE);
	err = to == IB_QPS_ERR ? tell_end(qp, &next) : rnic_tell_qp(qp, &next);
	if (err)
		return err;
	WRITE_ONCE(qp->state, to);
	if (mask & IB_QP_AV && !is_datagram(qp)) {
		qp->ah_attr = attr->ah_attr;
		/* The core's reference is not ours. */
		qp->ah_attr.grh.sgid_attr = NULL;
	}
	return 0;
}

int rnic_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata)
{
	struct rnic_qp *qp = to_rnic_qp(ibqp);
	int err;

	if (mask & ~RNIC_QP_ATTRS)
		return -EOPNOTSUPP;
	mutex_lock(&qp->mutex);
	err = modify(qp, attr, mask);
	mutex_unlock(&qp->mutex);
	return err;
}

int rnic_query_qp_state(struct rnic_qp *qp, struct rnic_admin_qp_state *state)
{
	return rnic_admin_execute(to_rnic_dev(qp->ibqp.device),
				  RNIC_ADMIN_OPCODE_QUERY_QP, qp->qpn, NULL,
				  state->word);
}

static int access_of(const struct rnic_admin_modify_qp *attr)
{
	int access = 0;

	if (GET(attr, REMOTE_WRITE))
		access |= IB_ACCESS_REMOTE_WRITE;
	if (GET(attr, REMOTE_READ))
		access |= IB_ACCESS_REMOTE_READ;
	if (GET(attr, REMOTE_ATOMIC))
		access |= IB_ACCESS_REMOTE_ATOMIC;
	return access;
}

int rnic_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init_attr)
{
	struct rnic_qp *qp = to_rnic_qp(ibqp);
	const struct rnic_admin_modify_qp *from = &qp->attr;
	struct rnic_admin_qp_state state;
	int err;

	mutex_lock(&qp->mutex);
	err = rnic_query_qp_state(qp, &state);
	if (err)
		goto unlock;
	attr->qp_state = rnic_get(&state, RNIC_ADMIN_QP_STATE_STATE);
	attr->cur_qp_state = attr->qp_state;
	attr->sq_draining = rnic_get(&state, RNIC_ADMIN_QP_STATE_SQ_DRAINING);
	attr->sq_psn = rnic_get(&state, RNIC_ADMIN_QP_STATE_SQ_PSN);
	attr->rq_psn = rnic_get(&state, RNIC_ADMIN_QP_STATE_RQ_PSN);
	attr->path_mtu = GET(from, PATH_MTU);
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->qkey = GET(from, QKEY);
	attr->dest_qp_num = GET(from, DEST_QPN);
	attr->qp_access_flags = access_of(from);
	attr->ah_attr = qp->ah_attr;
	attr->max_rd_atomic = GET(from, MAX_RD_ATOMIC);
	attr->max_dest_rd_atomic = GET(from, MAX_DEST_RD_ATOMIC);
	attr->min_rnr_timer = GET(from, MIN_RNR_TIMER);
	attr->port_num = RNIC_PORT;
	attr->timeout = GET(from, ACK_TIMEOUT);
	attr->retry_cnt = GET(from, RETRY_COUNT);
	attr->rnr_retry = GET(from, RNR_RETRY);
	attr->cap.max_send_wr = qp->sq.max_wr;
	attr->cap.max_recv_wr = qp->rq.max_wr;
	attr->cap.max_send_sge = qp->sq.max_sge;
	attr->cap.max_recv_sge = qp->rq.max_sge;
	attr->cap.max_inline_data = qp->sq.max_inline;
	init_attr->cap = attr->cap;
	init_attr->event_handler = ibqp->event_handler;
	init_attr->qp_context = ibqp->qp_context;
	init_attr->send_cq = ibqp->send_cq;
	init_attr->recv_cq = ibqp->recv_cq;
	init_attr->srq = ibqp->srq;
	init_attr->qp_type = ibqp->qp_type;
	init_attr->sq_sig_type = qp->signal_all ? IB_SIGNAL_ALL_WR :
						  IB_SIGNAL_REQ_WR;
unlock:
	mutex_unlock(&qp->mutex);
	return err;
}
