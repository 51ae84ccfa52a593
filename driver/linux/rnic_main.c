// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The PCI driver: finds the device, brings it up, and brings it up again when
 * it has failed.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/module.h>

#include "rnic.h"

#define RNIC_BAR 0
/* Within 1,000 cycles of the end of a reset; a simulation takes its time. */
#define RNIC_READY_POLLS 2000
#define RNIC_QUIET_POLLS 2000
#define RNIC_POLL_US 1000

/* The recovery has the device. With life_lock. */
static void begin_recovery(struct rnic_dev *dev)
{
	dev->owner = RNIC_OWNED_BY_RECOVERY;
	queue_work(system_long_wq, &dev->recovery);
}

/*
 * Its bus mastering ends, so that memory may be freed that it knows of, and who
 * waits is told; the recovery takes it then, if nobody else has. False: it was
 * so already. It is so when this returns, whoever did it. In any context.
 */
static bool cut_off(struct rnic_dev *dev)
{
	unsigned long flags;

	spin_lock_irqsave(&dev->life_lock, flags);
	if (dev->failed) {
		spin_unlock_irqrestore(&dev->life_lock, flags);
		return false;
	}
	pci_clear_master(dev->pdev);
	/* The answer comes behind all that it wrote before. */
	rnic_read_reg(dev, RNIC_REG_DEVICE_STATUS);
	/* Pairs with rnic_failed: memory is freed behind that. */
	smp_store_release(&dev->failed, true);
	if (dev->owner == RNIC_OWNED_BY_NONE)
		begin_recovery(dev);
	spin_unlock_irqrestore(&dev->life_lock, flags);
	/* Pairs with rnic_flush_soon: that, then what was posted before. */
	smp_mb();
	queue_work(system_wq, &dev->flush);
	rnic_admin_fail(dev);
	return true;
}

/* The device has failed, and is brought up again. In any context. */
void rnic_fail(struct rnic_dev *dev, const char *why)
{
	if (cut_off(dev))
		pci_err(dev->pdev, "the device has failed: %s\n", why);
}

/*
 * The caller has the device: no recovery is at work when this returns, and none
 * begins. Callers exclude each other by the lock of the PCI device.
 */
static void take(struct rnic_dev *dev)
{
	unsigned long flags;

	spin_lock_irqsave(&dev->life_lock, flags);
	dev->owner = RNIC_OWNED_BY_CORE;
	spin_unlock_irqrestore(&dev->life_lock, flags);
	cancel_work_sync(&dev->recovery);
}

/* Who has the device lets go of it, unless another has taken it meanwhile. */
static void let_go(struct rnic_dev *dev, enum rnic_owner who)
{
	unsigned long flags;

	spin_lock_irqsave(&dev->life_lock, flags);
	if (dev->owner == who) {
		dev->owner = RNIC_OWNED_BY_NONE;
		if (dev->failed)
			begin_recovery(dev);
	}
	spin_unlock_irqrestore(&dev->life_lock, flags);
}

/* A known block of registers is where we reckon with it, or -ENODEV. */
static int check_blocks(struct rnic_dev *dev)
{
	u32 needed = BIT(RNIC_BLOCK_TYPE_IDENTITY) | BIT(RNIC_BLOCK_TYPE_ADMIN) |
		     BIT(RNIC_BLOCK_TYPE_PORT) | BIT(RNIC_BLOCK_TYPE_MSIX);
	u32 found = 0;
	u32 offset = RNIC_REG_IDENTITY_HEADER;
	u64 identity = rnic_read_reg(dev, RNIC_REG_IDENTITY);

	if (rnic_field(RNIC_REG_IDENTITY_MAGIC, identity) != RNIC_DEVICE_MAGIC) {
		pci_err(dev->pdev, "no such device: identity %#llx\n", identity);
		return -ENODEV;
	}
	do {
		u64 header = rnic_read_reg(dev, offset);
		u32 type = rnic_field(RNIC_REG_IDENTITY_HEADER_BLOCK_TYPE,
				      header);

		if (rnic_field(RNIC_REG_IDENTITY_HEADER_VERSION, header) ==
		    RNIC_BLOCK_VERSION && type < 32)
			found |= BIT(type);
		offset = rnic_field(RNIC_REG_IDENTITY_HEADER_NEXT_OFFSET,
				    header);
	} while (offset && offset < RNIC_UAR_PAGE_BYTES && !(offset & 7));
	if ((found & needed) == needed)
		return 0;
	pci_err(dev->pdev, "register blocks %#x, of which %#x are needed\n",
		found, needed);
	return -ENODEV;
}

static int wait_for_status(struct rnic_dev *dev, unsigned int field, int polls)
{
	while (polls--) {
		u64 status = rnic_read_reg(dev, RNIC_REG_DEVICE_STATUS);

		if (status == ~0ULL)
			return -ENODEV;
		if (rnic_field(field, status))
			return 0;
		usleep_range(RNIC_POLL_US, 2 * RNIC_POLL_US);
	}
	return -ETIMEDOUT;
}

static void reset_function(struct rnic_dev *dev)
{
	pci_save_state(dev->pdev);
	pcie_flr(dev->pdev);
	pci_restore_state(dev->pdev);
}

/* A device that was just reset may do DMA, and is used. */
static void begin_use(struct rnic_dev *dev)
{
	unsigned long flags;

	spin_lock_irqsave(&dev->life_lock, flags);
	pci_set_master(dev->pdev);
	WRITE_ONCE(dev->failed, false);
	spin_unlock_irqrestore(&dev->life_lock, flags);
	rnic_admin_start(dev);
}

/*
 * From a device that was just reset to one with event queues. When that fails,
 * it is to be cut off.
 */
static int start(struct rnic_dev *dev)
{
	int err;

	err = wait_for_status(dev, RNIC_REG_DEVICE_STATUS_READY,
			      RNIC_READY_POLLS);
	if (err) {
		pci_err(dev->pdev, "the device does not become ready\n");
		return err;
	}
	rnic_write_reg(dev, RNIC_REG_COMPLETION_TIMEOUT,
		       RNIC_COMPLETION_TIMEOUT_RANGE_DEFAULT);
	if (dev->netdev)
		rnic_netdev_write_mac(dev);
	begin_use(dev);
	rnic_write_reg(dev, RNIC_REG_DEVICE_CONTROL,
		       rnic_value(RNIC_REG_DEVICE_CONTROL_ENABLE, 1));
	err = rnic_query_caps(dev);
	if (!err)
		err = rnic_eqs_create(dev);
	if (err)
		pci_err(dev->pdev, "the device cannot be brought up: %pe\n", ERR_PTR(err));
	return err;
}

/* Nothing of it touches memory any more, nor interrupts. */
static void quiesce(struct rnic_dev *dev)
{
	rnic_write_reg(dev, RNIC_REG_DEVICE_CONTROL, 0);
	/* Not posted: with the answer the device has seen the write. */
	rnic_read_reg(dev, RNIC_REG_DEVICE_CONTROL);
	wait_for_status(dev, RNIC_REG_DEVICE_STATUS_QUIET, RNIC_QUIET_POLLS);
	rnic_eqs_synchronize(dev);
}

/* Also what the device keeps, whether it lets go of it or not, may be freed. */
static void shut_off(struct rnic_dev *dev)
{
	rnic_eqs_destroy(dev);
	quiesce(dev);
	cut_off(dev);
}

/* What was made of it is gone, and nothing of it is on its way. */
static void take_down(struct rnic_dev *dev)
{
	rnic_ib_unregister(dev);
	rnic_netdev_take_down(dev);
	quiesce(dev);
}

/* Behind a reset. A device that is not there again stays as it is. */
static bool bring_back(struct rnic_dev *dev)
{
	if (start(dev)) {
		cut_off(dev);
		return false;
	}
	rnic_netdev_bring_back(dev);
	if (rnic_ib_register(dev))
		pci_err(dev->pdev, "the device is not registered again\n");
	else
		pci_info(dev->pdev, "the device works again\n");
	return true;
}

static void recover(struct work_struct *work)
{
	struct rnic_dev *dev = container_of(work, struct rnic_dev, recovery);

	take_down(dev);
	/* Another thread waits to take it, to reset or to remove it. */
	if (READ_ONCE(dev->owner) != RNIC_OWNED_BY_RECOVERY)
		return;
	reset_function(dev);
	if (bring_back(dev))
		let_go(dev, RNIC_OWNED_BY_RECOVERY);
}

/* Somebody else resets the function (sysfs, a hypervisor). */
static void rnic_reset_prepare(struct pci_dev *pdev)
{
	struct rnic_dev *dev = pci_get_drvdata(pdev);

	take(dev);
	/* While it may do DMA, what is under way ends. */
	quiesce(dev);
	cut_off(dev);
	take_down(dev);
}

static void rnic_reset_done(struct pci_dev *pdev)
{
	struct rnic_dev *dev = pci_get_drvdata(pdev);

	if (bring_back(dev))
		let_go(dev, RNIC_OWNED_BY_CORE);
}

static int alloc_vectors(struct rnic_dev *dev)
{
	/* One for commands and the port, and one a processor for completions. */
	unsigned int wanted = min_t(unsigned int, num_online_cpus() + 1,
				    RNIC_MSIX_VECTORS);
	int vectors = pci_alloc_irq_vectors(dev->pdev, 1, wanted, PCI_IRQ_MSIX);

	if (vectors < 0) {
		pci_err(dev->pdev, "there are no MSI-X vectors: %pe\n", ERR_PTR(vectors));
		return vectors;
	}
	dev->vectors = vectors;
	return 0;
}

static int map_function(struct rnic_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int err;

	err = pci_enable_device_mem(pdev);
	if (err)
		return err;
	err = pci_request_mem_regions(pdev, RNIC_DRIVER_NAME);
	if (err)
		goto disable;
	err = -ENODEV;
	if (pci_resource_len(pdev, RNIC_BAR) <
	    (u64)RNIC_UAR_PAGE_BYTES << RNIC_UAR_INDEX_BITS)
		goto release;
	/* A region's addresses have 47 bits (rnic_mr.c, that of all memory). */
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(47));
	if (err)
		goto release;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	/* Registers and our own UAR; those of processes are mapped to them. */
	dev->bar = pci_iomap_range(pdev, RNIC_BAR, 0,
				   (RNIC_KERNEL_UAR + 1) * RNIC_UAR_PAGE_BYTES);
	if (!dev->bar) {
		err = -ENOMEM;
		goto release;
	}
	return 0;
release:
	pci_release_mem_regions(pdev);
disable:
	pci_disable_device(pdev);
	return err;
}

static void unmap_function(struct rnic_dev *dev)
{
	cancel_work_sync(&dev->flush);
	pci_iounmap(dev->pdev, dev->bar);
	pci_release_mem_regions(dev->pdev);
	pci_disable_device(dev->pdev);
}

static int rnic_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct rnic_dev *dev;
	int err;

	/* A process maps whole pages, and there is a UAR in each of ours. */
	BUILD_BUG_ON(PAGE_SIZE != RNIC_UAR_PAGE_BYTES);
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->pdev = pdev;
	spin_lock_init(&dev->life_lock);
	dev->owner = RNIC_OWNED_BY_CORE;
	/* Until it is started. */
	dev->failed = true;
	INIT_WORK(&dev->recovery, recover);
	INIT_WORK(&dev->flush, rnic_flush_work);
	mutex_init(&dev->all_memory_mutex);
	pci_set_drvdata(pdev, dev);
	err = map_function(dev);
	if (err)
		goto free_dev;
	err = check_blocks(dev);
	if (err)
		goto unmap;
	/* Who was before us may have left something in it, as after a failure. */
	reset_function(dev);
	err = alloc_vectors(dev);
	if (err)
		goto unmap;
	err = rnic_admin_open(dev);
	if (err)
		goto free_vectors;
	err = rnic_eqs_alloc(dev);
	if (err)
		goto close_admin;
	err = start(dev);
	if (err)
		goto stop;
	err = rnic_netdev_create(dev);
	if (err)
		goto stop;
	rnic_netdev_update_carrier(dev);
	err = rnic_ib_register(dev);
	if (err)
		goto destroy_netdev;
	let_go(dev, RNIC_OWNED_BY_CORE);
	return 0;
destroy_netdev:
	rnic_netdev_destroy(dev);
stop:
	shut_off(dev);
	rnic_eqs_free(dev);
close_admin:
	rnic_admin_close(dev);
	rnic_free_all_memory(dev);
free_vectors:
	pci_free_irq_vectors(pdev);
unmap:
	unmap_function(dev);
free_dev:
	kfree(dev);
	return err;
}

static void rnic_remove(struct pci_dev *pdev)
{
	struct rnic_dev *dev = pci_get_drvdata(pdev);

	take(dev);
	rnic_ib_unregister(dev);
	rnic_netdev_destroy(dev);
	shut_off(dev);
	rnic_eqs_free(dev);
	rnic_admin_close(dev);
	rnic_free_all_memory(dev);
	pci_free_irq_vectors(pdev);
	unmap_function(dev);
	kfree(dev);
}

static const struct pci_device_id rnic_ids[] = {
	{ PCI_DEVICE(RNIC_PCI_VENDOR_ID, RNIC_PCI_DEVICE_ID) },
	{ }
};
MODULE_DEVICE_TABLE(pci, rnic_ids);

static const struct pci_error_handlers rnic_error_handlers = {
	.reset_prepare = rnic_reset_prepare,
	.reset_done = rnic_reset_done,
};

static struct pci_driver rnic_driver = {
	.name = RNIC_DRIVER_NAME,
	.id_table = rnic_ids,
	.probe = rnic_probe,
	.remove = rnic_remove,
	.shutdown = rnic_remove,
	.err_handler = &rnic_error_handlers,
};
module_pci_driver(rnic_driver);

MODULE_DESCRIPTION("RDMA over Ethernet with the rnic device");
MODULE_AUTHOR("The authors of rnic");
MODULE_LICENSE("Dual BSD/GPL");
