#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""rocecheck.py against packets whose ICRC others computed, and against every way of spoiling one of them."""
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import rocecheck  # noqa: E402
import tap  # noqa: E402

# A CNP that a ConnectX-4 Lx sent, with its ICRC (public, from Scapy's test vectors).
CNP = bytes.fromhex("45c2003c718c400040119161 0a0011010a001201 000012b700280000 8100ffff4000011800000000".replace(" ", "")
                    + "00" * 16 + "82fd002a")
ETHERNET = b"\x02" * 12 + b"\x08\x00"


def capture(folder, name, packets):
    path = f"{folder}/{name}.pcap"
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for ip in packets:
            frame = ETHERNET + ip
            f.write(struct.pack("<IIII", 1, 0, len(frame), len(frame)) + frame)
    return path


def packet(opcode, body, psn=0, pad=0, src="7f000001", dst="7f000002"):
    """An IPv4 RoCEv2 packet with a right ICRC; @body is what follows the BTH, pad included."""
    roce = struct.pack(">BBHII", opcode, 0x40 | pad << 4, 0xffff, 0x1234, psn) + body
    length = 20 + 8 + len(roce) + 4
    ip = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0x4000, 64, 17, 0) + bytes.fromhex(src + dst)
    ip += struct.pack(">HHHH", 0xc000, 4791, length - 20, 0) + roce
    return ip + rocecheck.Packet(1, ip + b"\0\0\0\0").icrc()


def complaints(folder, *packets):
    return rocecheck.check(capture(folder, "one", packets))[1]


def test_vector(folder):
    """the public vector is right"""
    return complaints(folder, CNP)


def test_spoilt_bytes(folder):
    """a changed byte is seen wherever the ICRC covers it, and nowhere else"""
    uncovered = {1, 8, 10, 11, 26, 27, 32}     # tos, ttl, IP and UDP checksums, FECN and BECN
    wrong = []
    for at in range(len(CNP)):
        # Bytes that decide what the packet is are not a question of the ICRC.
        if at in (0, 2, 3, 9, 22, 23, 24, 25):
            continue
        bad = complaints(folder, CNP[:at] + bytes([CNP[at] ^ 1]) + CNP[at + 1:])
        if any("ICRC" in text for text in bad) != (at not in uncovered):
            wrong.append(f"byte {at}: {bad}")
    return wrong


SHAPES = [
    ("an XRC SEND_ONLY", 0xa4, b"\0\0\0\7" + b"x" * 8, 0, True),
    ("an XRC SEND_ONLY with a reserved byte", 0xa4, b"\1\0\0\7" + b"x" * 8, 0, False),
    ("an XRC SEND_ONLY without XRCETH", 0xa4, b"", 0, False),
    ("an XRC acknowledgement", 0xb1, b"\x1f\0\0\1", 0, True),
    ("an XRC acknowledgement with a payload", 0xb1, b"\x1f\0\0\1xxxx", 0, False),
    ("an XRC READ request", 0xac, b"\0\0\0\7" + b"r" * 16, 0, True),
    ("an XRC READ request without RETH", 0xac, b"\0\0\0\7", 0, False),
    ("a SEND_FIRST that is full", 0x00, b"x" * 1024, 0, True),
    ("a SEND_FIRST that is not", 0x00, b"x" * 1000, 0, False),
    ("a SEND_LAST without a payload", 0x02, b"", 0, False),
    ("a payload that is no multiple of 4", 0x04, b"xyz", 0, False),
    ("a payload with its pad", 0x04, b"xyz\0", 1, True),
    ("an opcode that is none", 0xb5, b"\0\0\0\7", 0, False),
]


def test_shapes(folder):
    """headers, payload and pad of each opcode"""
    wrong = []
    for name, opcode, body, pad, good in SHAPES:
        bad = complaints(folder, packet(opcode, body, pad=pad))
        if bool(bad) == good:
            wrong.append(f"{name}: {bad}")
    return wrong


def test_unequal_packets(folder):
    """full packets of one flow must be equal"""
    good = complaints(folder, packet(0, b"x" * 1024), packet(1, b"x" * 1024, 1))
    bad = complaints(folder, packet(0, b"x" * 1024), packet(1, b"x" * 512, 1))
    return good + ([] if bad else ["512 bytes behind 1024 are not seen"])


def test_empty(folder):
    """a capture without a packet is no good capture"""
    return [] if complaints(folder) else ["no complaint"]


def test_same(folder):
    """both ends of a run: equal, one packet lost, one changed, the last acknowledgement unread"""
    send = [packet(0x04, b"x" * 8, psn) for psn in range(3)]
    ack = packet(0x11, b"\x1f\0\0\1", 9)
    whole = capture(folder, "whole", send + [ack])
    wrong = [f"equal: {text}" for text in rocecheck.sent_and_received(whole, whole)]
    wrong += [f"unread: {text}" for text in rocecheck.sent_and_received(whole, capture(folder, "unread", send))]
    for name, other in (("lost", [send[0], send[2], ack]), ("lost at the end", send[:2]),
                        ("changed", [send[0], packet(0x04, b"y" * 8, 1), send[2], ack])):
        if not rocecheck.sent_and_received(whole, capture(folder, "other", other)):
            wrong.append(f"{name}: no complaint")
    return wrong


def main():
    tests = [test_vector, test_spoilt_bytes, test_shapes, test_unequal_packets, test_empty, test_same]
    t = tap.Tap(len(tests))
    with tempfile.TemporaryDirectory() as folder:
        for test in tests:
            t.result(test.__doc__, test(folder))
    return t.status()


if __name__ == "__main__":
    sys.exit(main())
