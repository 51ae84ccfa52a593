// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions, fast-register regions and windows. */
#include <linux/dma-mapping.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>

#include "rnic_ib.h"

#define RNIC_LOG_PAGE_MIN 12
#define RNIC_PAGE_SIZES GENMASK(RNIC_LOG_PAGE_MAX, RNIC_LOG_PAGE_MIN)

static int acquire_key(struct rnic_ibdev *ib, void *object, u32 *key)
{
	u32 number;
	int err = rnic_table_add(&ib->keys, object, &number);

	if (!err)
		*key = (number & (BIT(ib->keys.index_bits) - 1)) <<
			       RNIC_KEY_TAG_BITS |
		       number >> ib->keys.index_bits;
	return err;
}

static void release_key(struct rnic_ibdev *ib, u32 key)
{
	rnic_table_remove(&ib->keys, key >> RNIC_KEY_TAG_BITS);
}

static int alloc_list(struct rnic_dev *dev, struct rnic_mr *mr, size_t pages)
{
	mr->list_bytes = array_size(pages, sizeof(*mr->list));
	/* As long as a process wants it: it may well be too long. */
	mr->list = dma_alloc_coherent(&dev->pdev->dev, mr->list_bytes,
				      &mr->list_dma,
				      GFP_KERNEL | __GFP_NOWARN);
	return mr->list ? 0 : -ENOMEM;
}

static void free_list(struct rnic_dev *dev, struct rnic_mr *mr)
{
	if (mr->list)
		dma_free_coherent(&dev->pdev->dev, mr->list_bytes, mr->list,
				  mr->list_dma);
}

static int create_mr(struct rnic_pd *pd, struct rnic_mr *mr,
		     struct rnic_region *region)
{
	struct rnic_ibdev *ib = to_rnic_ibdev(pd->ibpd.device);
	int err;

	err = acquire_key(ib, mr, &region->key);
	if (err)
		return err;
	region->pdn = pd->pdn;
	err = rnic_create_region(ib->dev, region);
	if (err) {
		release_key(ib, region->key);
		return err;
	}
	mr->kind = RNIC_MR_REGION;
	mr->access = region->access;
	mr->ibmr.lkey = region->key;
	mr->ibmr.rkey = region->key;
	return 0;
}

struct ib_mr *rnic_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct rnic_region region;
	struct rnic_mr *mr;
	int err;

	err = rnic_all_memory(to_rnic_dev(ibpd->device), &region);
	if (err)
		return ERR_PTR(err);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	region.access = access;
	err = create_mr(to_rnic_pd(ibpd), mr, &region);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

static void fill_list(struct rnic_mr *mr, unsigned long page_size)
{
	struct ib_block_iter block;
	size_t i = 0;

	rdma_umem_for_each_dma_block(mr->umem, &block, page_size)
		mr->list[i++] =
			cpu_to_le64(rdma_block_iter_dma_address(&block));
}

struct ib_mr *rnic_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 iova, int access, struct ib_udata *udata)
{
	struct rnic_region region = {
		.iova = iova,
		.length = length,
		.access = access,
	};
	struct rnic_dev *dev = to_rnic_dev(ibpd->device);
	unsigned long page_size;
	struct rnic_mr *mr;
	int err;

	if (!length || length > RNIC_REGION_BYTES)
		return ERR_PTR(-EINVAL);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->umem = ib_umem_get(ibpd->device, start, length, access);
	if (IS_ERR(mr->umem)) {
		err = PTR_ERR(mr->umem);
		goto free_mr;
	}
	err = -EINVAL;
	page_size = ib_umem_find_best_pgsz(mr->umem, RNIC_PAGE_SIZES, iova);
	if (!page_size)
		goto release_umem;
	err = alloc_list(dev, mr, ib_umem_num_dma_blocks(mr->umem, page_size));
	if (err)
		goto release_umem;
	fill_list(mr, page_size);
	region.list = mr->list_dma;
	region.log_page = order_base_2(page_size);
	err = create_mr(to_rnic_pd(ibpd), mr, &region);
	if (err)
		goto free_list;
	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	return &mr->ibmr;
free_list:
	free_list(dev, mr);
release_umem:
	ib_umem_release(mr->umem);
free_mr:
	kfree(mr);
	return ERR_PTR(err);
}

static int check_not_bound(struct rnic_dev *dev, u32 key)
{
	struct rnic_admin_mr_state state;
	int err = rnic_admin_execute(dev, RNIC_ADMIN_OPCODE_QUERY_MR, key, NULL,
				     state.word);

	if (err)
		return err;
	return rnic_get(&state, RNIC_ADMIN_MR_STATE_BOUND_WINDOWS) ? -EBUSY : 0;
}

/* Another region, with another key; the core ends the one before then. */
struct ib_mr *rnic_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				 u64 length, u64 iova, int access,
				 struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct rnic_mr *mr = to_rnic_mr(ibmr);
	int err;

	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);
	err = check_not_bound(to_rnic_dev(ibmr->device), ibmr->rkey);
	if (err)
		return ERR_PTR(err);
	if (!(flags & IB_MR_REREG_TRANS)) {
		start = mr->umem->address;
		length = mr->umem->length;
		iova = ibmr->iova;
	}
	return rnic_reg_user_mr(flags & IB_MR_REREG_PD ? ibpd : ibmr->pd, start,
				length, iova,
				flags & IB_MR_REREG_ACCESS ? access :
							     mr->access,
				udata);
}

struct ib_mr *rnic_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			    u32 max_sg)
{
	struct rnic_ibdev *ib = to_rnic_ibdev(ibpd->device);
	struct rnic_admin_create_fast_mr body = {};
	struct rnic_mr *mr;
	u32 key;
	int err;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_sg || max_sg > ib->dev->caps.max_fast_pages)
		return ERR_PTR(-EINVAL);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->kind = RNIC_MR_FAST;
	mr->max_pages = max_sg;
	err = alloc_list(ib->dev, mr, max_sg);
	if (err)
		goto free_mr;
	err = acquire_key(ib, mr, &key);
	if (err)
		goto free_list;
	rnic_put(&body, RNIC_ADMIN_CREATE_FAST_MR_PD, to_rnic_pd(ibpd)->pdn);
	rnic_put(&body, RNIC_ADMIN_CREATE_FAST_MR_REMOTE_ACCESS, 1);
	rnic_put(&body, RNIC_ADMIN_CREATE_FAST_MR_MAX_PAGES, max_sg);
	err = rnic_admin_execute(ib->dev, RNIC_ADMIN_OPCODE_CREATE_FAST_MR, key,
				 body.word, NULL);
	if (err)
		goto release_key;
	mr->ibmr.lkey = key;
	mr->ibmr.rkey = key;
	return &mr->ibmr;
release_key:
	release_key(ib, key);
free_list:
	free_list(ib->dev, mr);
free_mr:
	kfree(mr);
	return ERR_PTR(err);
}

static int set_page(struct ib_mr *ibmr, u64 address)
{
	struct rnic_mr *mr = to_rnic_mr(ibmr);

	if (mr->pages == mr->max_pages)
		return -ENOMEM;
	mr->list[mr->pages++] = cpu_to_le64(address);
	return 0;
}

int rnic_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		   unsigned int *offset)
{
	to_rnic_mr(ibmr)->pages = 0;
	return ib_sg_to_pages(ibmr, sg, nents, offset, set_page);
}

int rnic_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct rnic_ibdev *ib = to_rnic_ibdev(ibmr->device);
	struct rnic_mr *mr = to_rnic_mr(ibmr);
	enum rnic_admin_opcode opcode = mr->kind == RNIC_MR_FAST ?
		RNIC_ADMIN_OPCODE_DESTROY_FAST_MR :
		RNIC_ADMIN_OPCODE_DESTROY_MR;
	int err = rnic_admin_destroy(ib->dev, opcode, ibmr->rkey);

	if (err)
		return err;
	release_key(ib, ibmr->rkey);
	free_list(ib->dev, mr);
	ib_umem_release(mr->umem);
	kfree(mr);
	return 0;
}

int rnic_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct rnic_ibdev *ib = to_rnic_ibdev(ibmw->device);
	struct rnic_admin_create_mw body = {};
	bool type1 = ibmw->type == IB_MW_TYPE_1;
	u32 key;
	int err;

	if (type1 ? !ib->dev->caps.window_type1 : !ib->dev->caps.window_type2)
		return -EOPNOTSUPP;
	err = acquire_key(ib, ibmw, &key);
	if (err)
		return err;
	rnic_put(&body, RNIC_ADMIN_CREATE_MW_PD, to_rnic_pd(ibmw->pd)->pdn);
	rnic_put(&body, RNIC_ADMIN_CREATE_MW_WINDOW_TYPE,
		 type1 ? RNIC_MPT_TYPE_WINDOW1 : RNIC_MPT_TYPE_WINDOW2);
	err = rnic_admin_execute(ib->dev, RNIC_ADMIN_OPCODE_CREATE_MW, key,
				 body.word, NULL);
	if (err)
		release_key(ib, key);
	else
		ibmw->rkey = key;
	return err;
}

int rnic_dealloc_mw(struct ib_mw *ibmw)
{
	struct rnic_ibdev *ib = to_rnic_ibdev(ibmw->device);
	int err = rnic_admin_destroy(ib->dev, RNIC_ADMIN_OPCODE_DESTROY_MW,
				     ibmw->rkey);

	if (!err)
		release_key(ib, ibmw->rkey);
	return err;
}
