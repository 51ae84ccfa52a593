// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The network interface of the port. RDMA over Ethernet takes its addresses
 * from here. Frames that are not RoCE the device does not carry yet (no
 * capability tells of Ethernet queues): what is sent is dropped and counted,
 * and nothing is received; neighbours are those that somebody has entered.
 * Ethernet queues will be made in rnic_open, filled in rnic_start_xmit, and
 * emptied in rnic_poll.
 */
#include <linux/ethtool.h>
#include <rdma/ib_pack.h>
#include <rdma/ib_verbs.h>

#include "rnic.h"

/* A path MTU of 4096, with all headers that the core reckons with. */
#define RNIC_MAX_NET_MTU \
	(4096 + IB_GRH_BYTES + IB_UDP_BYTES + IB_BTH_BYTES + \
	 IB_EXT_XRC_BYTES + IB_EXT_ATOMICETH_BYTES + IB_ICRC_BYTES)

#define RNIC_LINK_MBPS 100000

struct rnic_netdev {
	struct rnic_dev *dev;
	struct napi_struct napi;
};

static struct rnic_dev *dev_of(struct net_device *netdev)
{
	return ((struct rnic_netdev *)netdev_priv(netdev))->dev;
}

static int rnic_poll(struct napi_struct *napi, int budget)
{
	napi_complete_done(napi, 0);
	return 0;
}

static int rnic_open(struct net_device *netdev)
{
	struct rnic_netdev *priv = netdev_priv(netdev);

	napi_enable(&priv->napi);
	netif_start_queue(netdev);
	rnic_netdev_update_carrier(priv->dev);
	return 0;
}

static int rnic_stop(struct net_device *netdev)
{
	struct rnic_netdev *priv = netdev_priv(netdev);

	netif_stop_queue(netdev);
	napi_disable(&priv->napi);
	return 0;
}

static netdev_tx_t rnic_start_xmit(struct sk_buff *skb,
				   struct net_device *netdev)
{
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
