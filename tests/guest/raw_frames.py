#!/usr/bin/env python3
"""Sends datagrams of many shapes to a UDP port from the network interface eth0 of a guest, as any process can, and as frames of a process with
CAP_NET_RAW (docs/kernel_driver.md). Each has "<WORD SHAPE>" among its bytes.

usage: raw_frames.py WORD PORT [SHAPE...]
"""
import socket
import struct
import sys

MAC_TO, MAC_FROM = bytes.fromhex("020000000009"), bytes.fromhex("020000000001")
IP4, IP6 = 0x0800, 0x86DD
UDP, DESTINATION_OPTIONS, FRAGMENT = 17, 60, 44
WORD, PORT = sys.argv[1], int(sys.argv[2])


def marked(shape):
    return f"<{WORD} {shape}>".encode()


def datagram(family, address, payload):
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.sendto(payload, address)


def udp(payload):
    return struct.pack(">HHHH", 9, PORT, 8 + len(payload), 0) + payload


def ip4(payload, options=b""):
    words = 5 + len(options) // 4
    head = struct.pack(">BBHHHBBH4s4s", 0x40 | words, 0, 4 * words + len(payload), 1, 0, 64, UDP, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 9])) + options
    total = sum(struct.unpack(f">{2 * words}H", head))
    total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF) + head[12:] + payload


def ip6(first, payload):
    own, other = (socket.inet_pton(socket.AF_INET6, address) for address in ("fe80::ff:fe00:1", "fe80::9"))
    return struct.pack(">IHBB", 6 << 28, len(payload), first, 64) + own + other + payload


def frame(kind, payload, tags=()):
    head = MAC_TO + MAC_FROM + b"".join(struct.pack(">HH", *tag) for tag in tags) + struct.pack(">H", kind)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind(("eth0", 0))
        sender.send(head + payload)


def fragments(shape):
    """Longer than the MTU. The port is in the first one alone."""
    payload = marked(shape).ljust(7000, b".") + marked(shape + "_later")
    datagram(socket.AF_INET, ("10.0.0.9", PORT), payload)


SHAPES = {
    "udp4": lambda shape: datagram(socket.AF_INET, ("10.0.0.9", PORT), marked(shape)),
    "udp6": lambda shape: datagram(socket.AF_INET6, ("fe80::9", PORT, 0, socket.if_nametoindex("eth0")), marked(shape)),
    "vlan": lambda shape: datagram(socket.AF_INET, ("10.5.0.9", PORT), marked(shape)),
    "fragment4": fragments,
    "options4": lambda shape: frame(IP4, ip4(udp(marked(shape)), bytes([1, 1, 1, 0]))),
    "two_tags": lambda shape: frame(IP4, ip4(udp(marked(shape))), [(0x88A8, 5), (0x8100, 6)]),
    "options6": lambda shape: frame(IP6, ip6(DESTINATION_OPTIONS, struct.pack(">BBBBI", UDP, 0, 1, 4, 0) + udp(marked(shape)))),
    "fragment6": lambda shape: frame(IP6, ip6(FRAGMENT, struct.pack(">BBHI", UDP, 0, 1, 7) + udp(marked(shape).ljust(64, b".")))),
}
for name in sys.argv[3:] or SHAPES:
    SHAPES[name](name)
