"""Ports of TCP for programs that a test runs: no other test has them at the same time, and nothing before has left a connection on them."""
import errno
import itertools
import random
import socket

RANGE = range(10000, 30000)  # below those that Linux gives to a socket that asks for none (net.ipv4.ip_local_port_range)
_held = []  # reservations, which last as long as this process: names of sockets of the machine, no files that would stay behind


def free_port():
    """A port to listen to, of this process until it ends. Raises RuntimeError when there is none."""
    first = random.randrange(len(RANGE))
    for number in itertools.islice(itertools.cycle(RANGE), first, first + len(RANGE)):
        mark = socket.socket(socket.AF_UNIX)
        try:
            mark.bind(f"\0rnic_test_tcp_port_{number}")
        except OSError:  # of another test
            mark.close()
            continue
        if _can_listen(number):
            _held.append(mark)
            return number
        mark.close()
    raise RuntimeError(f"no port of TCP from {RANGE.start} to {RANGE.stop - 1} is free")


def _can_listen(number):
    """Also without SO_REUSEADDR: not every program sets it."""
    for family, any_address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            probe = socket.socket(family)
        except OSError:  # a machine without this version of IP
            continue
        with probe:
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                probe.bind((any_address, number))
            except OSError as wrong:
                if family == socket.AF_INET6 and wrong.errno == errno.EADDRNOTAVAIL:  # IPv6 is switched off
                    continue
                return False
    return True


if __name__ == "__main__":  # for scripts: the port is theirs only as long as nobody else asks
    print(free_port())
