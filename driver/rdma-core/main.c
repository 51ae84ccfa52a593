// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The provider: devices, and what a process has of one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rnic.h"

int rnic_map(struct ibv_context *context, struct rnic_map *map, uint64_t offset,
	     size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			context->cmd_fd, offset);

	if (at == MAP_FAILED)
		return errno;
	/* A child of a fork has no part in it. */
	madvise(at, bytes, MADV_DONTFORK);
	map->at = at;
	map->bytes = bytes;
	return 0;
}

void rnic_unmap(struct rnic_map *map)
{
	if (map->at)
		munmap(map->at, map->bytes);
	map->at = NULL;
}

static int query_device(struct ibv_context *context,
			const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp response;
	size_t size = sizeof(response);

	return ibv_cmd_query_device_any(context, input, attr, attr_size,
					&response, &size);
}

static int query_port(struct ibv_context *context, uint8_t port,
		      struct ibv_port_attr *attr)
{
	struct ibv_query_port command;

	return ibv_cmd_query_port(context, port, attr, &command,
				  sizeof(command));
}

static void free_context(struct ibv_context *ibv_context)
{
	struct rnic_context *context = to_rnic_context(ibv_context);

	munmap(context->uar, RNIC_UAR_PAGE_BYTES);
	pthread_spin_destroy(&context->window_lock);
	verbs_uninit_context(&context->ibv_ctx);
	free(context);
}

static const struct verbs_context_ops context_ops = {
	.alloc_mw = rnic_alloc_mw,
	.alloc_pd = rnic_alloc_pd,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = rnic_bind_mw,
	.create_ah = rnic_create_ah,
	.create_cq = rnic_create_cq,
	.create_cq_ex = rnic_create_cq_ex,
	.create_qp = rnic_create_qp,
	.create_qp_ex = rnic_create_qp_ex,
	.create_srq = rnic_create_srq,
	.dealloc_mw = rnic_dealloc_mw,
	.dealloc_pd = rnic_dealloc_pd,
	.dereg_mr = rnic_dereg_mr,
	.destroy_ah = rnic_destroy_ah,
	.destroy_cq = rnic_destroy_cq,
	.destroy_qp = rnic_destroy_qp,
	.destroy_srq = rnic_destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = free_context,
	.get_srq_num = rnic_get_srq_num,
	.modify_cq = rnic_modify_cq,
	.modify_qp = rnic_modify_qp,
	.modify_srq = rnic_modify_srq,
	.poll_cq = rnic_poll_cq,
	.post_recv = rnic_post_recv,
	.post_send = rnic_post_send,
	.post_srq_recv = rnic_post_srq_recv,
	.query_device_ex = query_device,
	.query_port = query_port,
	.query_qp = rnic_query_qp,
	.query_srq = rnic_query_srq,
	.reg_mr = rnic_reg_mr,
	.req_notify_cq = rnic_req_notify_cq,
	.rereg_mr = rnic_rereg_mr,
	.resize_cq = rnic_resize_cq,
};

static struct verbs_context *alloc_context(struct ibv_device *device,
					   int cmd_fd, void *private_data)
{
	struct urnic_alloc_ucontext_resp response = {};
	struct ibv_get_context command = {};
	struct rnic_context *context;
	struct rnic_map uar;
	int err;

	context = verbs_init_and_alloc_context(device, cmd_fd, context, ibv_ctx,
					       RDMA_DRIVER_UNKNOWN);
	if (!context)
		return NULL;
	if (ibv_cmd_get_context(&context->ibv_ctx, &command, sizeof(command),
				&response.ibv_resp, sizeof(response)))
		goto uninit;
	context->max_message = response.max_message;
	context->clock_mhz = response.clock_mhz;
	err = rnic_map(&context->ibv_ctx.context, &uar, response.uar_offset,
		       RNIC_UAR_PAGE_BYTES);
	if (err) {
		errno = err;
		goto uninit;
	}
	context->uar = uar.at;
	pthread_spin_init(&context->window_lock, PTHREAD_PROCESS_PRIVATE);
	verbs_set_ops(&context->ibv_ctx, &context_ops);
	return &context->ibv_ctx;
uninit:
	verbs_uninit_context(&context->ibv_ctx);
	free(context);
	return NULL;
}

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *sysfs)
{
	struct rnic_device *device = calloc(1, sizeof(*device));

	return device ? &device->ibv_dev : NULL;
}

static void uninit_device(struct verbs_device *device)
{
	free(container_of(device, struct rnic_device, ibv_dev));
}

static const struct verbs_match_ent matches[] = {
	VERBS_PCI_MATCH(RNIC_PCI_VENDOR_ID, RNIC_PCI_DEVICE_ID, NULL),
	{},
};

static const struct verbs_device_ops rnic_device_ops = {
	.name = "rnic",
	.match_min_abi_version = RNIC_ABI_VERSION,
	.match_max_abi_version = RNIC_ABI_VERSION,
	.match_table = matches,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
	.alloc_context = alloc_context,
};
PROVIDER_DRIVER(rnic, rnic_device_ops);
