"""A network of the test's own, in which nothing happens but what the test does."""
import ctypes
import errno
import fcntl
import select
import socket
import struct
import threading

from case import Skips

CLONE_NEWNET = 0x40000000
SIOCSIFADDR, SIOCSIFFLAGS = 0x8916, 0x8914
IFF_UP_AND_RUNNING = 0x1 | 0x40
OTHER = "192.0.2.1"
NOWHERE = "203.0.113.1"  # no route leads there
OWN_IPV6 = 15


def own_ip(family, number):
    """Address `number` of a family in the network of a test."""
    return f"192.0.2.{number}" if family == 4 else f"2001:db8::{number:x}"


def own_network():
    """Loopback up, and on it 192.0.2.0/24 and some addresses of 2001:db8::/64: this machine's without being loopback
    addresses; for the calling thread alone. False where that is not allowed."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        return False
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP_AND_RUNNING))
            address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(OTHER))
            fcntl.ioctl(any_socket, SIOCSIFADDR, struct.pack("16s16s8x", b"lo:1", address))
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as any_socket:
            for number in range(1, OWN_IPV6 + 1):
                address = socket.inet_pton(socket.AF_INET6, own_ip(6, number))
                fcntl.ioctl(any_socket, SIOCSIFADDR, struct.pack("16sIi", address, 128, socket.if_nametoindex("lo")))
    except OSError:
        return False
    for number in range(1, OWN_IPV6 + 1):
        usable(own_ip(6, number))
    return True


def usable(ip):
    """Waits until the kernel has found out that nobody else has this address: before that no socket gets it."""
    while True:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as any_socket:
            try:
                any_socket.bind((ip, 0))
                return
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL:
                    raise
        select.select([], [], [], 0.001)


def listener_at(ip, port, works):
    """A socket at this address that takes connections if it works."""
    listener = socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((ip, port))
    if works:
        listener.listen(8)
    return listener


def same_hop(one, other):
    return one.hop == other.hop


def inside(test):
    """Runs a test in a network of its own; what it raises is raised here."""
    ended = []

    def run():
        try:
            if not own_network():
                raise Skips("network namespaces are not allowed here")
            test()
        except Exception as why:  # told by the thread that asked
            ended.append(why)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if ended:
        raise ended[0]
