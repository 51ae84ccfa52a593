// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The admin queue: commands in a ring, their completions in another. */
#include <linux/dma-mapping.h>

#include "rnic.h"

/*
 * The device fails a DMA read of its own long before that; in a simulation,
 * where it is slower than in silicon by orders of magnitude, it still answers.
 */
#define RNIC_ADMIN_PATIENCE (60 * HZ)
/* How often somebody who waits looks at the device. */
#define RNIC_ADMIN_LOOK HZ

static size_t commands_bytes(void)
{
	return RNIC_ADMIN_DEPTH * sizeof(struct rnic_admin_command);
}

static size_t completions_bytes(void)
{
	return RNIC_ADMIN_DEPTH * sizeof(struct rnic_admin_completion);
}

int rnic_admin_open(struct rnic_dev *dev)
{
	struct rnic_admin *admin = &dev->admin;

	spin_lock_init(&admin->lock);
	sema_init(&admin->room, RNIC_ADMIN_DEPTH);
	/* A page at least, so they are aligned to one. */
	admin->commands = dma_alloc_coherent(&dev->pdev->dev, commands_bytes(),
					     &admin->commands_dma, GFP_KERNEL);
	admin->completions = dma_alloc_coherent(&dev->pdev->dev,
						completions_bytes(),
						&admin->completions_dma,
						GFP_KERNEL);
	if (admin->commands && admin->completions)
		return 0;
	rnic_admin_close(dev);
	return -ENOMEM;
}

void rnic_admin_close(struct rnic_dev *dev)
{
	struct rnic_admin *admin = &dev->admin;

	if (admin->commands)
		dma_free_coherent(&dev->pdev->dev, commands_bytes(),
				  admin->commands, admin->commands_dma);
	if (admin->completions)
		dma_free_coherent(&dev->pdev->dev, completions_bytes(),
				  admin->completions, admin->completions_dma);
	admin->commands = NULL;
	admin->completions = NULL;
}

/* Of a device that was just reset. */
void rnic_admin_start(struct rnic_dev *dev)
{
	struct rnic_admin *admin = &dev->admin;
	unsigned long flags;

	spin_lock_irqsave(&admin->lock, flags);
	memset(admin->completions, 0, completions_bytes());
	memset(admin->waits, 0, sizeof(admin->waits));
	admin->producer = 0;
	admin->consumer = 0;
	admin->open = true;
	rnic_write_reg(dev, RNIC_REG_ADMIN_COMMAND_BASE, admin->commands_dma);
	rnic_write_reg(dev, RNIC_REG_ADMIN_COMPLETION_BASE,
		       admin->completions_dma);
	rnic_write_reg(dev, RNIC_REG_ADMIN_CONFIG,
		       rnic_value(RNIC_REG_ADMIN_CONFIG_LOG_DEPTH,
				  RNIC_ADMIN_LOG_DEPTH) |
		       rnic_value(RNIC_REG_ADMIN_CONFIG_INTERRUPT_VECTOR, 0) |
		       rnic_value(RNIC_REG_ADMIN_CONFIG_INTERRUPT_ENABLE, 1));
	spin_unlock_irqrestore(&admin->lock, flags);
}

/* Who waits hears that there will be no answer. */
void rnic_admin_fail(struct rnic_dev *dev)
{
	struct rnic_admin *admin = &dev->admin;
	unsigned long flags;

	spin_lock_irqsave(&admin->lock, flags);
	admin->open = false;
	for (; admin->consumer != admin->producer; admin->consumer++) {
		unsigned int slot = admin->consumer % RNIC_ADMIN_DEPTH;

		if (admin->waits[slot])
			complete(&admin->waits[slot]->done);
		admin->waits[slot] = NULL;
		up(&admin->room);
	}
	spin_unlock_irqrestore(&admin->lock, flags);
}

/* Takes the completions that are there; commands end in their order. */
void rnic_admin_interrupt(struct rnic_dev *dev)
{
	struct rnic_admin *admin = &dev->admin;
	unsigned long flags;

	spin_lock_irqsave(&admin->lock, flags);
	while (admin->open && admin->consumer != admin->producer) {
		unsigned int slot = admin->consumer % RNIC_ADMIN_DEPTH;
		const struct rnic_admin_completion *from =
			&admin->completions[slot];
		struct rnic_admin_wait *wait = admin->waits[slot];
		u64 phase = ~(admin->consumer >> RNIC_ADMIN_LOG_DEPTH) & 1;

		if (rnic_phase(from->word) != phase)
			break;
		/* The phase, then the rest. */
		dma_rmb();
		if (rnic_get(from, RNIC_ADMIN_COMPLETION_COMMAND_ID) !=
		    admin->consumer) {
			spin_unlock_irqrestore(&admin->lock, flags);
			rnic_fail(dev, "an admin completion fits no command");
			return;
		}
		if (wait) {
			wait->completion = *from;
			wait->answered = true;
			complete(&wait->done);
		}
		admin->waits[slot] = NULL;
		admin->consumer++;
		up(&admin->room);
	}
	spin_unlock_irqrestore(&admin->lock, flags);
}

static int post(struct rnic_dev *dev, const struct rnic_admin_command *command,
		struct rnic_admin_wait *wait)
{
	struct rnic_admin *admin = &dev->admin;
	struct rnic_admin_command *to;
	unsigned long flags;

	spin_lock_irqsave(&admin->lock, flags);
	if (!admin->open) {
		spin_unlock_irqrestore(&admin->lock, flags);
		return -EIO;
	}
	to = &admin->commands[admin->producer % RNIC_ADMIN_DEPTH];
	*to = *command;
	rnic_put(to, RNIC_ADMIN_COMMAND_COMMAND_ID, admin->producer);
	admin->waits[admin->producer % RNIC_ADMIN_DEPTH] = wait;
	admin->producer++;
	/* writeq orders the command before the doorbell. */
	rnic_write_reg(dev, RNIC_REG_ADMIN_DOORBELL, admin->producer);
	spin_unlock_irqrestore(&admin->lock, flags);
	return 0;
}

/* Nobody completes `wait` any more when this returns. */
static void forget(struct rnic_dev *dev, struct rnic_admin_wait *wait)
{
	struct rnic_admin *admin = &dev->admin;
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&admin->lock, flags);
	for (i = 0; i < RNIC_ADMIN_DEPTH; i++)
		if (admin->waits[i] == wait)
			admin->waits[i] = NULL;
	spin_unlock_irqrestore(&admin->lock, flags);
}

/* A device without DMA cannot say that it has failed; its register does. */
static const char *look_at_device(struct rnic_dev *dev)
{
	u64 status = rnic_read_reg(dev, RNIC_REG_DEVICE_STATUS);

	if (status == ~0ULL)
		return "it is not there";
	if (rnic_field(RNIC_REG_DEVICE_STATUS_FATAL, status))
		return "the admin queue has stopped";
	return NULL;
}

static bool wait_for_answer(struct rnic_dev *dev, struct rnic_admin_wait *wait)
{
	unsigned long end = jiffies + RNIC_ADMIN_PATIENCE;
	const char *why = NULL;

	while (!wait_for_completion_timeout(&wait->done, RNIC_ADMIN_LOOK) &&
	       !why) {
		/* The answer may be there, and its interrupt lost. */
		rnic_admin_interrupt(dev);
		if (completion_done(&wait->done))
			break;
		why = look_at_device(dev);
		if (!why && time_after(jiffies, end))
			why = "an admin command has no answer";
	}
	forget(dev, wait);
	if (why && !wait->answered)
		rnic_fail(dev, why);
	return wait->answered;
}

static int error_of(u64 status)
{
	switch (status) {
	case RNIC_ADMIN_STATUS_SUCCESS:
		return 0;
	case RNIC_ADMIN_STATUS_BAD_OPCODE:
		return -EOPNOTSUPP;
	case RNIC_ADMIN_STATUS_EXISTS:
		return -EEXIST;
	case RNIC_ADMIN_STATUS_IN_USE:
		return -EBUSY;
	case RNIC_ADMIN_STATUS_NO_GROUP:
		return -ENOMEM;
	default:
		return -EINVAL;
	}
}

/**
 * rnic_admin_execute - give the device a command, and wait until it is done
 * @dev: the device
 * @opcode: what to do
 * @number: with which object
 * @body: 120 bytes by opcode, or NULL: all zero
 * @result: room for 48 bytes of the answer, or NULL
 *
 * May sleep. Return: 0, -EIO (the device has failed, and is cut off), or what
 * the status of the completion stands for.
 */
int rnic_admin_execute(struct rnic_dev *dev, enum rnic_admin_opcode opcode,
		       u32 number, const __le64 *body, __le64 *result)
{
	struct rnic_admin_command command = {};
	struct rnic_admin_wait wait = {};
	int err;

	if (rnic_failed(dev))
		return -EIO;
	rnic_put(&command, RNIC_ADMIN_COMMAND_OPCODE, opcode);
	rnic_put(&command, RNIC_ADMIN_COMMAND_NUMBER, number);
	if (body)
		memcpy(&command.word[1], body,
		       sizeof(command) - sizeof(command.word[0]));
	init_completion(&wait.done);
	if (down_timeout(&dev->admin.room, RNIC_ADMIN_PATIENCE)) {
		rnic_fail(dev, "the admin queue does not move");
		return -EIO;
	}
	err = post(dev, &command, &wait);
	if (err) {
		up(&dev->admin.room);
		return err;
	}
	if (!wait_for_answer(dev, &wait))
		return -EIO;
	if (result)
		memcpy(result, &wait.completion.word[1],
		       sizeof(struct rnic_admin_capabilities));
	return error_of(rnic_get(&wait.completion,
				 RNIC_ADMIN_COMPLETION_STATUS));
}

/*
 * What is destroyed is gone when this returns 0, also when that is because the
 * device has failed: it is cut off from memory then (rnic_failed).
 */
int rnic_admin_destroy(struct rnic_dev *dev, enum rnic_admin_opcode opcode,
		       u32 number)
{
	int err = rnic_admin_execute(dev, opcode, number, NULL, NULL);

	return rnic_failed(dev) ? 0 : err;
}

/*
 * Of what was just created, or is ours: its memory is freed behind this, so a
 * device that keeps it has failed.
 */
void rnic_admin_undo(struct rnic_dev *dev, enum rnic_admin_opcode opcode,
		     u32 number)
{
	if (rnic_admin_destroy(dev, opcode, number))
		rnic_fail(dev, "it does not let go of a queue");
}

int rnic_query_caps(struct rnic_dev *dev)
{
	struct rnic_admin_capabilities from;
	struct rnic_caps *caps = &dev->caps;
	int err;

	err = rnic_admin_execute(dev, RNIC_ADMIN_OPCODE_QUERY_CAPABILITIES, 0,
				 NULL, from.word);
	if (err)
		return err;
#define LOG(field) (1U << rnic_get(&from, RNIC_ADMIN_CAPABILITIES_##field))
#define GET(field) rnic_get(&from, RNIC_ADMIN_CAPABILITIES_##field)
	caps->max_qp = LOG(LOG_MAX_QP);
	caps->max_cq = LOG(LOG_MAX_CQ);
	caps->max_eq = LOG(LOG_MAX_EQ);
	caps->max_mr = LOG(LOG_MAX_MR);
	caps->max_queue_depth = LOG(LOG_MAX_QUEUE_DEPTH);
	caps->max_cq_depth = LOG(LOG_MAX_CQ_DEPTH);
	if (GET(LOG_MAX_SRQ_DEPTH)) {
		caps->max_srq = LOG(LOG_MAX_SRQ);
		caps->max_srq_depth = LOG(LOG_MAX_SRQ_DEPTH);
	}
	caps->max_sge = GET(MAX_SGE);
	caps->max_inline = GET(MAX_INLINE);
	caps->max_rd_atomic = GET(MAX_RD_ATOMIC);
	caps->max_mtu = GET(MAX_MTU);
	caps->max_message = GET(MAX_MESSAGE);
	caps->max_fast_pages = GET(MAX_FAST_PAGES);
	caps->max_multicast_groups = GET(MAX_MULTICAST_GROUPS);
	caps->uar_count = GET(UAR_COUNT);
	caps->msix_vectors = GET(MSIX_VECTORS);
	caps->clock_mhz = GET(CLOCK_MHZ);
	caps->window_type1 = GET(WINDOW_TYPE1);
	caps->window_type2 = GET(WINDOW_TYPE2);
#undef GET
#undef LOG
	return 0;
}
