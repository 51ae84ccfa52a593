#!/usr/bin/env python3
"""What roce_capture.py says of packets that belong to a message, and of those that do not."""
import unittest

from roce_capture import Packet, broken_messages

LINUX, NIC, QPN = "02:00:00:00:01:01", "02:00:00:00:00:01", "00002c"


def packet(operation, psn, payload=None, length=None, source=LINUX, qpn=QPN):
    return Packet(source, "RC " + operation, None, qpn, psn, False, True, payload, length)


def write(psn, packets=4, full=1024, last=1024):
    """A WRITE of so many packets, the last of which has `last` bytes."""
    whole = (packets - 1) * full + last
    return [packet("WriteFirst", psn, full, whole), *(packet("WriteMiddle", psn + i, full) for i in range(1, packets - 1)),
            packet("WriteLast", psn + packets - 1, last)]


class BrokenMessages(unittest.TestCase):
    def check(self, packets, *reasons):
        found = broken_messages(packets, LINUX)
        self.assertEqual(len(found), len(reasons), found)
        for line, reason in zip(found, reasons):
            self.assertIn(reason, line)

    def test_messages_one_after_the_other(self):
        self.check([*write(0xFFFFFE, 2), *[one._replace(psn=one.psn & 0xFFFFFF) for one in write(0, 4, last=1)],
                    packet("SendOnly", 4, 0), packet("SendFirst", 5, 256), packet("SendLastImm", 6, 3), packet("WriteOnly", 7, 9, 9)])

    def test_what_is_repeated_and_what_is_ahead_is_not_looked_at(self):
        good = write(10, 6)
        self.check([*good[:3], *good[1:], *good[2:4], packet("SendOnly", 16, 5)])
        self.check([*good[:3], good[4], *good[3:]])

    def test_what_is_damaged_is_not_looked_at(self):
        good = write(10)
        self.check([*good[:2], packet("SendOnly", 12, 5)._replace(icrc_right=False), *good[2:]])

    def test_reads_take_numbers_that_nobody_sees(self):
        self.check([*write(0), packet("ReadRequest", 4), *write(12)])

    def test_the_next_message_begins_too_soon(self):
        self.check([*write(0)[:2], *write(2)], "in a WRITE that has not ended")
        self.check([packet("SendFirst", 0, 512), packet("SendOnly", 1, 5)], "in a SEND that has not ended")

    def test_a_message_of_two_kinds(self):
        self.check([packet("SendFirst", 0, 512), packet("WriteLast", 1, 5)], "in a SEND that has not ended")

    def test_a_message_that_did_not_begin(self):
        self.check([packet("SendOnly", 0, 5), packet("WriteMiddle", 1, 1024)], "in no message")

    def test_lengths(self):
        short = write(0)
        self.check([*short[:2], short[3]._replace(psn=2)], "is byte 3072 of 4096")
        self.check([*write(0)[:3], packet("WriteMiddle", 3, 1024)], "is byte 4096 of 4096")
        self.check([packet("SendFirst", 0, 512), packet("SendMiddle", 1, 511)], "has 511 bytes")
        self.check([packet("SendFirst", 0, 512), packet("SendLast", 1, 513)], "has 513 bytes")
        self.check([packet("SendFirst", 0, 512), packet("SendLast", 1, 0)], "has 0 bytes")

    def test_of_others_nothing_is_said(self):
        self.check([one._replace(source=NIC) for one in [*write(0)[:2], *write(2)]])
        self.check([*write(0)[:2], *[one._replace(qpn="00002d") for one in write(2)]])


if __name__ == "__main__":
    unittest.main()
