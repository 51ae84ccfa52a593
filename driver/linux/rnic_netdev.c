// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The network interface of the port. RDMA over Ethernet takes its addresses
 * from here, and the frames that are not RoCE come and go through its queues
 * (rnic_eth.c). A device without such queues drops what is sent, which is
 * counted, and neighbours are those that somebody has entered.
 */
#include <linux/crc32.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>

#include "rnic.h"

/* A frame of a VLAN interface has a tag, too. */
#define RNIC_MAX_NET_MTU (RNIC_MAX_FRAME_BYTES - VLAN_ETH_HLEN)

#define RNIC_LINK_MBPS 100000
#define RNIC_SEND_CHECKSUMS (NETIF_F_IP_CSUM | NETIF_F_IPV6_CSUM)

struct rnic_netdev {
	struct rnic_dev *dev;
	struct napi_struct napi;
	/* The queues take and give frames. Changes with the lock of rtnl. */
	bool open;
	struct rnic_eth eth;
};

static struct rnic_dev *dev_of(struct net_device *netdev)
{
	return ((struct rnic_netdev *)netdev_priv(netdev))->dev;
}

static int rnic_poll(struct napi_struct *napi, int budget)
{
	struct rnic_netdev *priv = container_of(napi, struct rnic_netdev, napi);
	int received = rnic_eth_poll(&priv->eth, budget);

	/* Armed behind the last look, it tells of what came since. */
	if (received < budget && napi_complete_done(napi, received))
		rnic_eth_arm(&priv->eth);
	return received;
}

/* In the interrupt. True: it was an event of ours. */
bool rnic_netdev_event(struct rnic_dev *dev, u32 cqn)
{
	struct rnic_netdev *priv;

	if (cqn != RNIC_ETH_CQN)
		return false;
	priv = netdev_priv(dev->netdev);
	if (READ_ONCE(priv->open))
		napi_schedule(&priv->napi);
	return true;
}

/* Which frames come, and whether any do. */
static void write_filters(struct net_device *netdev)
{
	struct rnic_netdev *priv = netdev_priv(netdev);
	struct netdev_hw_addr *address;
	u64 groups = 0;

	netdev_for_each_mc_addr(address, netdev)
		groups |= BIT_ULL(ether_crc(ETH_ALEN, address->addr) >> 26);
	rnic_write_reg(priv->dev, RNIC_REG_PORT_GROUPS, groups);
	rnic_write_reg(priv->dev, RNIC_REG_PORT_ETHERNET,
		       rnic_value(RNIC_REG_PORT_ETHERNET_QPN, RNIC_ETH_QPN) |
		       rnic_value(RNIC_REG_PORT_ETHERNET_ENABLE, priv->open) |
		       rnic_value(RNIC_REG_PORT_ETHERNET_ALL_GROUPS,
				  !!(netdev->flags & IFF_ALLMULTI)) |
		       rnic_value(RNIC_REG_PORT_ETHERNET_PROMISCUOUS,
				  !!(netdev->flags & IFF_PROMISC)));
}

static void rnic_set_rx_mode(struct net_device *netdev)
{
	struct rnic_netdev *priv = netdev_priv(netdev);

	if (priv->open)
		write_filters(netdev);
}

static int open_queues(struct net_device *netdev)
{
	struct rnic_netdev *priv = netdev_priv(netdev);
	int err = rnic_eth_open(&priv->eth, netdev, priv->dev, &priv->napi);

	if (err)
		return err == -EOPNOTSUPP ? 0 : err;
	napi_enable(&priv->napi);
	WRITE_ONCE(priv->open, true);
	netif_addr_lock_bh(netdev);
	write_filters(netdev);
	netif_addr_unlock_bh(netdev);
	rnic_eth_arm(&priv->eth);
	return 0;
}

static void close_queues(struct net_device *netdev)
{
	struct rnic_netdev *priv = netdev_priv(netdev);

	netif_tx_disable(netdev);
	if (!priv->open)
		return;
	WRITE_ONCE(priv->open, false);
	netif_addr_lock_bh(netdev);
	write_filters(netdev);
	netif_addr_unlock_bh(netdev);
	rnic_eqs_synchronize(priv->dev);
	napi_disable(&priv->napi);
	rnic_eth_close(&priv->eth);
}

static int rnic_open(struct net_device *netdev)
{
	struct rnic_dev *dev = dev_of(netdev);
	int err = rnic_failed(dev) ? -EIO : open_queues(netdev);

	if (err)
		return err;
	netif_start_queue(netdev);
	rnic_netdev_update_carrier(dev);
	rnic_ib_port_changed(dev);
	return 0;
}

static int rnic_stop(struct net_device *netdev)
{
	close_queues(netdev);
	rnic_ib_port_changed(dev_of(netdev));
	return 0;
}

/* The device is about to be reset, or was. Meanwhile nobody opens it. */
void rnic_netdev_take_down(struct rnic_dev *dev)
{
	rtnl_lock();
	netif_device_detach(dev->netdev);
	if (netif_running(dev->netdev))
		close_queues(dev->netdev);
	rnic_netdev_update_carrier(dev);
	rtnl_unlock();
}

void rnic_netdev_bring_back(struct rnic_dev *dev)
{
	rtnl_lock();
	if (netif_running(dev->netdev) && open_queues(dev->netdev))
		netdev_err(dev->netdev, "it has no queues any more\n");
	netif_device_attach(dev->netdev);
	rnic_netdev_update_carrier(dev);
	rtnl_unlock();
}

static netdev_tx_t rnic_start_xmit(struct sk_buff *skb,
				   struct net_device *netdev)
{
	struct rnic_netdev *priv = netdev_priv(netdev);

	if (READ_ONCE(priv->open) && rnic_may_leave(skb))
		return rnic_eth_xmit(&priv->eth, skb);
	dev_kfree_skb_any(skb);
	DEV_STATS_INC(netdev, tx_dropped);
	return NETDEV_TX_OK;
}

static int rnic_set_mac_address(struct net_device *netdev, void *address)
{
	int err = eth_mac_addr(netdev, address);

	if (!err)
		rnic_netdev_write_mac(dev_of(netdev));
	return err;
}

static const struct net_device_ops rnic_netdev_ops = {
	.ndo_open = rnic_open,
	.ndo_stop = rnic_stop,
	.ndo_start_xmit = rnic_start_xmit,
	.ndo_set_mac_address = rnic_set_mac_address,
	.ndo_set_rx_mode = rnic_set_rx_mode,
	.ndo_validate_addr = eth_validate_addr,
};

static void rnic_get_drvinfo(struct net_device *netdev,
			     struct ethtool_drvinfo *info)
{
	strscpy(info->driver, RNIC_DRIVER_NAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(dev_of(netdev)->pdev),
		sizeof(info->bus_info));
}

static int rnic_get_link_ksettings(struct net_device *netdev,
				   struct ethtool_link_ksettings *settings)
{
	settings->base.speed = RNIC_LINK_MBPS;
	settings->base.duplex = DUPLEX_FULL;
	settings->base.port = PORT_OTHER;
	settings->base.autoneg = AUTONEG_DISABLE;
	return 0;
}

static const struct ethtool_ops rnic_ethtool_ops = {
	.get_drvinfo = rnic_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = rnic_get_link_ksettings,
};

/* The device forgets its station address with each reset. */
void rnic_netdev_write_mac(struct rnic_dev *dev)
{
	rnic_write_reg(dev, RNIC_REG_PORT_MAC,
		       rnic_value(RNIC_REG_PORT_MAC_MAC,
				  ether_addr_to_u64(dev->netdev->dev_addr)));
}

/* Says whether the link is up. */
bool rnic_netdev_update_carrier(struct rnic_dev *dev)
{
	u64 status = rnic_read_reg(dev, RNIC_REG_PORT_STATUS);
	bool up = !rnic_failed(dev) && status != ~0ULL &&
		  rnic_field(RNIC_REG_PORT_STATUS_LINK_UP, status);

	if (up)
		netif_carrier_on(dev->netdev);
	else
		netif_carrier_off(dev->netdev);
	return up;
}

int rnic_netdev_create(struct rnic_dev *dev)
{
	struct rnic_netdev *priv;
	struct net_device *netdev;
	u64 mac;
	int err;

	netdev = alloc_etherdev(sizeof(*priv));
	if (!netdev)
		return -ENOMEM;
	SET_NETDEV_DEV(netdev, &dev->pdev->dev);
	priv = netdev_priv(netdev);
	priv->dev = dev;
	dev->netdev = netdev;
	netdev->netdev_ops = &rnic_netdev_ops;
	netdev->ethtool_ops = &rnic_ethtool_ops;
	netdev->max_mtu = RNIC_MAX_NET_MTU;
	netdev->hw_features = RNIC_SEND_CHECKSUMS | NETIF_F_RXCSUM;
	netdev->features |= netdev->hw_features;
	netdev->vlan_features = RNIC_SEND_CHECKSUMS;
	mac = rnic_field(RNIC_REG_PORT_MAC_MAC,
			 rnic_read_reg(dev, RNIC_REG_PORT_MAC));
	if (mac) {
		u8 address[ETH_ALEN];

		u64_to_ether_addr(mac, address);
		eth_hw_addr_set(netdev, address);
	} else {
		eth_hw_addr_random(netdev);
	}
	rnic_netdev_write_mac(dev);
	netif_napi_add(netdev, &priv->napi, rnic_poll);
	netif_carrier_off(netdev);
	err = register_netdev(netdev);
	if (err) {
		netif_napi_del(&priv->napi);
		free_netdev(netdev);
		dev->netdev = NULL;
	}
	return err;
}

void rnic_netdev_destroy(struct rnic_dev *dev)
{
	struct rnic_netdev *priv = netdev_priv(dev->netdev);

	unregister_netdev(dev->netdev);
	netif_napi_del(&priv->napi);
	free_netdev(dev->netdev);
	dev->netdev = NULL;
}
