// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Protection domains, memory regions and windows, address handles. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rnic.h"

struct ibv_pd *rnic_alloc_pd(struct ibv_context *context)
{
	struct ib_uverbs_alloc_pd_resp response;
	struct ibv_alloc_pd command;
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	if (ibv_cmd_alloc_pd(context, pd, &command, sizeof(command), &response,
			     sizeof(response))) {
		free(pd);
		return NULL;
	}
	return pd;
}

int rnic_dealloc_pd(struct ibv_pd *pd)
{
	int err = ibv_cmd_dealloc_pd(pd);

	if (!err)
		free(pd);
	return err;
}

struct ibv_mr *rnic_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   uint64_t hca_va, int access)
{
	struct ib_uverbs_reg_mr_resp response;
	struct ibv_reg_mr command;
	struct verbs_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	if (ibv_cmd_reg_mr(pd, addr, length, hca_va, access, mr, &command,
			   sizeof(command), &response, sizeof(response))) {
		free(mr);
		return NULL;
	}
	return &mr->ibv_mr;
}

/* The key is another one then. */
int rnic_rereg_mr(struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		  size_t length, int access)
{
	struct ib_uverbs_rereg_mr_resp response;
	struct ibv_rereg_mr command;

	return ibv_cmd_rereg_mr(mr, flags, addr, length, (uintptr_t)addr, access,
				pd, &command, sizeof(command), &response,
				sizeof(response));
}

int rnic_dereg_mr(struct verbs_mr *mr)
{
	int err = ibv_cmd_dereg_mr(mr);

	if (!err)
		free(mr);
	return err;
}

struct ibv_mw *rnic_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp response;
	struct ibv_alloc_mw command;
	struct ibv_mw *mw = calloc(1, sizeof(*mw));

	if (!mw)
		return NULL;
	if (ibv_cmd_alloc_mw(pd, type, mw, &command, sizeof(command), &response,
			     sizeof(response))) {
		free(mw);
		return NULL;
	}
	return mw;
}

int rnic_dealloc_mw(struct ibv_mw *mw)
{
	int err = ibv_cmd_dealloc_mw(mw);

	if (!err)
		free(mw);
	return err;
}

/* Of type 1: the key is a new one with each bind, and fixed when it is posted. */
int rnic_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr *bad_wr;
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {
			.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = bind->bind_info,
		},
	};
	int err;

	if (bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return EINVAL;
	if (bind->bind_info.mr && bind->bind_info.mr->pd != mw->pd)
		return EPERM;
	err = rnic_post_send(qp, &wr, &bad_wr);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}

/* The driver knows the way; nothing of it is on the device. */
struct ibv_ah *rnic_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct urnic_create_ah_resp response = {};
	struct rnic_ah *ah = calloc(1, sizeof(*ah));
	uint64_t mac = 0;
	int i;

	if (!ah)
		return NULL;
	if (!attr->is_global) {
		errno = EINVAL;
		goto free_ah;
	}
	if (ibv_cmd_create_ah(pd, &ah->ibv_ah, attr, &response.ibv_resp,
			      sizeof(response)))
		goto free_ah;
	for (i = 0; i < 6; i++)
		mac = mac << 8 | response.dest_mac[i];
	memcpy(rnic_bytes(&ah->address, RNIC_WQE_ADDRESS_DEST_IP_BYTE),
	       attr->grh.dgid.raw, sizeof(attr->grh.dgid.raw));
	rnic_put(&ah->address, RNIC_WQE_ADDRESS_DEST_MAC, mac);
	rnic_put(&ah->address, RNIC_WQE_ADDRESS_TRAFFIC_CLASS,
		 attr->grh.traffic_class);
	rnic_put(&ah->address, RNIC_WQE_ADDRESS_HOP_LIMIT, response.hop_limit);
	rnic_put(&ah->address, RNIC_WQE_ADDRESS_SECOND_SOURCE,
		 response.second_source);
	rnic_put(&ah->address, RNIC_WQE_ADDRESS_FLOW_LABEL,
		 attr->grh.flow_label);
	if (response.vlan_id < RNIC_RESERVED_VID) {
		rnic_put(&ah->address, RNIC_WQE_ADDRESS_VLAN, 1);
		rnic_put(&ah->address, RNIC_WQE_ADDRESS_VLAN_ID,
			 response.vlan_id);
		rnic_put(&ah->address, RNIC_WQE_ADDRESS_PCP, attr->sl & 7);
	}
	return &ah->ibv_ah;
free_ah:
	free(ah);
	return NULL;
}

int rnic_destroy_ah(struct ibv_ah *ah)
{
	int err = ibv_cmd_destroy_ah(ah);

	if (!err)
		free(to_rnic_ah(ah));
	return err;
}
