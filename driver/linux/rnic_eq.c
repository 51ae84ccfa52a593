// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event queues: one for each interrupt vector. The first has the events of the
 * device and the port, and the interrupt of the admin queue; those of CQs, QPs
 * and SRQs come to the one of their CQ, or their own.
 */
#include <linux/dma-mapping.h>

#include "rnic.h"

static size_t ring_bytes(void)
{
	return RNIC_EQ_DEPTH * sizeof(struct rnic_eqe);
}

static void handle(struct rnic_eq *eq, const struct rnic_eqe *eqe)
{
	struct rnic_dev *dev = eq->dev;
	/* Pairs with the release that sets it. It goes behind synchronize_irq. */
	struct rnic_ibdev *ib = smp_load_acquire(&dev->ib);

	if (rnic_get(eqe, RNIC_EQE_EVENT_TYPE) == RNIC_EQE_TYPE_DEVICE_FATAL) {
		rnic_fail(dev, "it says so");
		return;
	}
	if (rnic_get(eqe, RNIC_EQE_EVENT_TYPE) == RNIC_EQE_TYPE_COMPLETION &&
	    rnic_netdev_event(dev, rnic_get(eqe, RNIC_EQE_NUMBER)))
		return;
	if (ib)
		rnic_ib_event(ib, eqe);
}

static irqreturn_t interrupt(int irq, void *context)
{
	struct rnic_eq *eq = context;
	struct rnic_dev *dev = eq->dev;
	u32 before = eq->consumer;

	if (eq->eqn == 0)
		rnic_admin_interrupt(dev);
	for (;;) {
		const struct rnic_eqe *at = &eq->ring[eq->consumer % RNIC_EQ_DEPTH];
		u64 phase = ~(eq->consumer >> RNIC_EQ_LOG_DEPTH) & 1;
		struct rnic_eqe eqe;

		if (rnic_phase(at->word) != phase)
			break;
		/* The phase, then the rest. */
		dma_rmb();
		eqe = *at;
		eq->consumer++;
		handle(eq, &eqe);
	}
	/* The next event of each source comes when this one is consumed. */
	if (eq->consumer != before)
		rnic_ring(dev, RNIC_UAR_EQ_DOORBELL,
			  rnic_value(RNIC_EQ_DOORBELL_EQN, eq->eqn) |
			  rnic_value(RNIC_EQ_DOORBELL_CONSUMER_INDEX,
				     eq->consumer));
	return IRQ_HANDLED;
}

static void free_eq(struct rnic_eq *eq)
{
	struct pci_dev *pdev = eq->dev->pdev;

	free_irq(pci_irq_vector(pdev, eq->eqn), eq);
	dma_free_coherent(&pdev->dev, ring_bytes(), eq->ring, eq->dma);
}

static int alloc_eq(struct rnic_eq *eq)
{
	struct pci_dev *pdev = eq->dev->pdev;
	int err;

	eq->ring = dma_alloc_coherent(&pdev->dev, ring_bytes(), &eq->dma,
				      GFP_KERNEL);
	if (!eq->ring)
		return -ENOMEM;
	snprintf(eq->name, sizeof(eq->name), RNIC_DRIVER_NAME "-%u", eq->eqn);
	err = request_irq(pci_irq_vector(pdev, eq->eqn), interrupt, 0,
			  eq->name, eq);
	if (err)
		dma_free_coherent(&pdev->dev, ring_bytes(), eq->ring, eq->dma);
	return err;
}

/* Interrupts and rings, which stay from one life of the device to the next. */
int rnic_eqs_alloc(struct rnic_dev *dev)
{
	unsigned int i;
	int err;

	dev->eqs = kcalloc(dev->vectors, sizeof(*dev->eqs), GFP_KERNEL);
	if (!dev->eqs)
		return -ENOMEM;
	for (i = 0; i < dev->vectors; i++) {
		dev->eqs[i].dev = dev;
		dev->eqs[i].eqn = i;
		err = alloc_eq(&dev->eqs[i]);
		if (err) {
			while (i--)
				free_eq(&dev->eqs[i]);
			kfree(dev->eqs);
			return err;
		}
	}
	return 0;
}

void rnic_eqs_free(struct rnic_dev *dev)
{
	unsigned int i;

	for (i = 0; i < dev->vectors; i++)
		free_eq(&dev->eqs[i]);
	kfree(dev->eqs);
}

int rnic_eqs_create(struct rnic_dev *dev)
{
	unsigned int i;
	int err;

	for (i = 0; i < dev->vectors; i++) {
		struct rnic_eq *eq = &dev->eqs[i];
		struct rnic_admin_create_eq body = {};

		/* No interrupt reads it before the device has it. */
		memset(eq->ring, 0, ring_bytes());
		eq->consumer = 0;
		rnic_put(&body, RNIC_ADMIN_CREATE_EQ_BASE, eq->dma);
		rnic_put(&body, RNIC_ADMIN_CREATE_EQ_LOG_DEPTH,
			 RNIC_EQ_LOG_DEPTH);
		rnic_put(&body, RNIC_ADMIN_CREATE_EQ_MSIX_VECTOR, i);
		err = rnic_admin_execute(dev, RNIC_ADMIN_OPCODE_CREATE_EQ, i,
					 body.word, NULL);
		if (err)
			return err;
	}
	return 0;
}

/* EQ 0 last: events of the device go there. */
void rnic_eqs_destroy(struct rnic_dev *dev)
{
	unsigned int i = dev->vectors;

	while (i--)
		rnic_admin_destroy(dev, RNIC_ADMIN_OPCODE_DESTROY_EQ, i);
}

/* Whoever handled an event when this was called has done so. */
void rnic_eqs_synchronize(struct rnic_dev *dev)
{
	unsigned int i;

	for (i = 0; i < dev->vectors; i++)
		synchronize_irq(pci_irq_vector(dev->pdev, i));
}
