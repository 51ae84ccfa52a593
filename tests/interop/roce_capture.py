"""What a capture of the wire (rnic serve --pcap) has in it of RoCEv2: who sent which packets, whether each ICRC is right, and whether the packets of a
message belong together."""
import collections
import struct
import zlib

ETHERNET, BTH, ICRC = 14, 12, 4
ROCE_PORT = 4791
# InfiniBand specification 9.2, table 38: operation, for the transports of the three high bits.
OPERATIONS = {0: "SendFirst", 1: "SendMiddle", 2: "SendLast", 3: "SendLastImm", 4: "SendOnly", 5: "SendOnlyImm", 6: "WriteFirst", 7: "WriteMiddle", 8: "WriteLast",
              9: "WriteLastImm", 10: "WriteOnly", 11: "WriteOnlyImm", 12: "ReadRequest", 13: "ReadFirst", 14: "ReadMiddle", 15: "ReadLast", 16: "ReadOnly",
              17: "Acknowledge", 18: "AtomicAcknowledge", 19: "CmpSwap", 20: "FetchAdd", 22: "SendLastInv", 23: "SendOnlyInv"}
TRANSPORTS = {0: "RC", 1: "UC", 3: "UD"}
ACKNOWLEDGE = 17
ANSWERS = range(13, 19)
# Bytes of headers behind the BTH (9.2, table 38): RETH, ImmDt, IETH.
RETH, IMMDT, IETH = 16, 4, 4
HEADERS = {"WriteFirst": RETH, "WriteOnly": RETH, "WriteOnlyImm": RETH + IMMDT, "WriteLastImm": IMMDT, "SendLastImm": IMMDT, "SendOnlyImm": IMMDT,
           "SendLastInv": IETH, "SendOnlyInv": IETH}

# payload, length: bytes of a SEND's or WRITE's packet of RC, and of the whole as a WRITE's first packet says; otherwise None.
Packet = collections.namedtuple("Packet", "source operation syndrome qpn psn answer icrc_right payload length")


def frames_of(path):
    """The frames of a capture file."""
    data = path.read_bytes()
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">"}[data[:4]]
    at = 24
    while at + 16 <= len(data):
        length, = struct.unpack_from(order + "I", data, at + 8)
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def icrc_of(ip, header):
    """The invariant CRC of an IP packet whose UDP header is at `header` (RoCEv2 annex A17.3.3): what changes on the way counts as ones."""
    masked = bytearray(ip[:-ICRC])
    ones = [1, 8, 10, 11] if ip[0] >> 4 == 4 else [1, 2, 3, 7]
    for at in [*ones, header + 6, header + 7, header + 8 + 4]:
        masked[at] = 0xFF
    if ip[0] >> 4 == 6:
        masked[0] |= 0x0F  # the high bits of the traffic class
    return zlib.crc32(bytes([0xFF] * 8) + bytes(masked))


def roce_packet(frame):
    """The packet in a frame; None: it is none of RoCEv2."""
    kind = frame[12:14]
    ip = frame[ETHERNET:]
    if kind == b"\x08\x00" and len(ip) >= 28 and ip[9] == 17:
        header, length = (ip[0] & 15) * 4, struct.unpack_from(">H", ip, 2)[0]
    elif kind == b"\x86\xdd" and len(ip) >= 48 and ip[6] == 17:
        header, length = 40, 40 + struct.unpack_from(">H", ip, 4)[0]
    else:
        return None
    ip = ip[:length]
    if struct.unpack_from(">H", ip, header + 2)[0] != ROCE_PORT or length < header + 8 + BTH + ICRC:
        return None
    bth = header + 8
    transport, operation = ip[bth] >> 5, ip[bth] & 31
    name = f"{TRANSPORTS.get(transport, transport)} {OPERATIONS.get(operation, operation)}"
    syndrome = ip[bth + BTH] if transport == 0 and operation == ACKNOWLEDGE else None
    payload = whole = None
    if transport == 0 and ("Send" in name or "Write" in name):
        headers = HEADERS.get(name.split()[1], 0)
        payload = length - bth - BTH - headers - (ip[bth + 1] >> 4 & 3) - ICRC
        whole = int.from_bytes(ip[bth + BTH + 12:bth + BTH + 16], "big") if headers >= RETH else None
    return Packet(frame[6:12].hex(":"), name, syndrome, ip[bth + 5:bth + 8].hex(), int.from_bytes(ip[bth + 9:bth + 12], "big"),
                  transport == 0 and operation in ANSWERS, int.from_bytes(ip[-ICRC:], "little") == icrc_of(ip, header), payload, whole)


class Message:
    """One that has begun: its kind, the bytes so far, those of a full packet, and of the whole, if it says."""

    def __init__(self, packet):
        self.kind, self.full, self.so_far, self.whole = packet.operation[3:-len("First")], packet.payload, packet.payload, packet.length

    def takes(self, packet):
        """What is wrong with the packet that follows; nothing: it belongs there."""
        if not packet.operation[3:].startswith((self.kind + "Middle", self.kind + "Last")):
            return f"in a {self.kind.upper()} that has not ended (9.7.4.1.2)"
        middle = "Middle" in packet.operation
        self.so_far += packet.payload
        if packet.payload != self.full if middle else not 0 < packet.payload <= self.full:
            return f"has {packet.payload} bytes, in a message of packets with {self.full} (9.7.4.1.6)"
        if self.whole is not None and (self.so_far >= self.whole if middle else self.so_far != self.whole):
            return f"is byte {self.so_far} of {self.whole} that its first packet has said (9.7.4.1.7)"
        return None


def broken_messages(packets, source):
    """What `source` has sent as RC requests that no responder may take: a packet right behind another one of a SEND or WRITE that does not go on with
    it. What is repeated, comes behind a gap, or was damaged, is not looked at, so this misses some, and accuses nobody wrongly."""
    wrong, following, messages = [], {}, {}  # by QPN: the PSN behind the newest packet, the message that has begun
    for packet in packets:
        if packet.source != source or packet.payload is None or not packet.icrc_right:
            continue
        qpn = packet.qpn
        ahead = (packet.psn - following.get(qpn, packet.psn)) & 0xFFFFFF
        if ahead >= 1 << 23 or (ahead and qpn in messages):
            continue
        begins = packet.operation.endswith(("First", "Only", "OnlyImm", "OnlyInv"))
        reason = None
        if qpn in messages:
            reason = messages[qpn].takes(packet)
        elif not begins and not ahead and qpn in following:
            reason = "in no message (9.7.4.1.2)"
        if reason is not None:
            wrong.append(f"{packet.operation} to QP 0x{qpn}, PSN {packet.psn}: {reason}")
        following[qpn] = (packet.psn + 1) & 0xFFFFFF
        if packet.operation.endswith("First"):
            messages[qpn] = Message(packet)
        elif reason is not None or "Middle" not in packet.operation:
            messages.pop(qpn, None)
    return wrong


def packets_of(path):
    return [packet for packet in map(roce_packet, frames_of(path)) if packet]
