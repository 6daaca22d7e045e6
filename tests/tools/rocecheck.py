#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Judge the RoCEv2 packets of captures without a line of the product: rocecheck.py [-v] [--same] FILE...

Of every packet it checks the ICRC, that the opcode exists, that the headers which the opcode asks for are
there, that a payload is there only where the opcode allows one, that the pad count fits, and that reserved
fields are zero. Within a message FIRST and MIDDLE packets must be full and equal. The numbers come from the
InfiniBand Architecture Specification, volume 1 (chapters 5 and 9, annexes A14 and A17), and the CRC from
zlib, which the product does not use.

--same takes two captures, of both ends of one run without loss: what one end sent must be what the other
received, packet by packet. Only acknowledgements at the very end may be missing, when a program closes its
device before it reads them.

Exit status: 0 all is right, 1 something is wrong or a file holds no RoCEv2 packet.
"""
import argparse
import collections
import ipaddress
import struct
import sys
import zlib

ROCE_PORT = 4791
BTH, ICRC = 12, 4
TRANSPORTS = {0: "RC", 1: "UC", 3: "UD", 4: "CNP", 5: "XRC"}
XRCETH, RETH, ATOMICETH, AETH, ATOMICACK, IMM, IETH, DETH = (
    ("XRCETH", 4), ("RETH", 16), ("AtomicETH", 28), ("AETH", 4), ("AtomicAckETH", 8), ("ImmDt", 4),
    ("IETH", 4), ("DETH", 8))

# Base opcode -> name, headers behind the BTH, and how much payload: "none", "some" (1 to the MTU),
# "any" (0 to the MTU) or "full" (the MTU).
REQUESTS = {
    0x00: ("SEND_FIRST", (), "full"), 0x01: ("SEND_MIDDLE", (), "full"), 0x02: ("SEND_LAST", (), "some"),
    0x03: ("SEND_LAST_IMM", (IMM,), "some"), 0x04: ("SEND_ONLY", (), "any"),
    0x05: ("SEND_ONLY_IMM", (IMM,), "any"), 0x06: ("WRITE_FIRST", (RETH,), "full"),
    0x07: ("WRITE_MIDDLE", (), "full"), 0x08: ("WRITE_LAST", (), "some"), 0x09: ("WRITE_LAST_IMM", (IMM,), "some"),
    0x0a: ("WRITE_ONLY", (RETH,), "any"), 0x0b: ("WRITE_ONLY_IMM", (RETH, IMM), "any"),
    0x0c: ("READ_REQUEST", (RETH,), "none"), 0x13: ("CMP_SWAP", (ATOMICETH,), "none"),
    0x14: ("FETCH_ADD", (ATOMICETH,), "none"), 0x16: ("SEND_LAST_INV", (IETH,), "some"),
    0x17: ("SEND_ONLY_INV", (IETH,), "any"),
}
RESPONSES = {
    0x0d: ("READ_RESP_FIRST", (AETH,), "full"), 0x0e: ("READ_RESP_MIDDLE", (), "full"),
    0x0f: ("READ_RESP_LAST", (AETH,), "some"), 0x10: ("READ_RESP_ONLY", (AETH,), "any"),
    0x11: ("ACK", (AETH,), "none"), 0x12: ("ATOMIC_ACK", (AETH, ATOMICACK), "none"),
}
MTUS = (256, 512, 1024, 2048, 4096)


def opcodes():
    """Opcode byte -> (name, headers, payload), for every transport."""
    table = {0x81: ("CNP", (("reserved", 16),), "none")}
    for base, (name, headers, payload) in REQUESTS.items():
        table[base] = (f"RC_{name}", headers, payload)
        table[0xa0 | base] = (f"XRC_{name}", (XRCETH,) + headers, payload)
        if base <= 0x0b:
            table[0x20 | base] = (f"UC_{name}", headers, payload)
        if base in (0x04, 0x05):
            table[0x60 | base] = (f"UD_{name}", (DETH,) + headers, payload)
    for base, (name, headers, payload) in RESPONSES.items():
        table[base] = (f"RC_{name}", headers, payload)
        table[0xa0 | base] = (f"XRC_{name}", headers, payload)
    return table


OPCODES = opcodes()


class Packet:
    """One RoCEv2 packet: addresses, the fields of its BTH, its payload, and what is wrong with it."""

    def __init__(self, number, ip):
        self.number, self.ip = number, ip
        self.v6 = ip[0] >> 4 == 6
        self.udp = 40 if self.v6 else (ip[0] & 15) * 4
        self.src, self.dst = (ipaddress.ip_address(ip[a:a + n]) for a, n in (
            ((8, 16), (24, 16)) if self.v6 else ((12, 4), (16, 4))))
        self.roce = ip[self.udp + 8:]
        self.wrong = []
        self.name, self.headers, self.allowed, self.payload = "?", (), "any", b""
        if len(self.roce) < BTH + ICRC:
            self.wrong.append("shorter than a BTH and an ICRC")
            self.opcode = self.dest_qp = self.psn = -1
            return
        self.opcode, flags, self.pkey, qp, psn = struct.unpack(">BBHII", self.roce[:BTH])
        self.pad, self.tver = flags >> 4 & 3, flags & 15
        self.dest_qp, self.psn, self.ack_req = qp & 0xffffff, psn & 0xffffff, psn >> 31
        self.reserved = (qp >> 24 & 0x3f, psn >> 24 & 0x7f)
        self._check()

    def key(self):
        """The flow whose messages are counted together."""
        return self.src, self.dst, self.dest_qp

    def icrc(self):
        """The ICRC that the packet should carry: fields that routers change count as ones."""
        b = bytearray(self.ip[:-ICRC])
        if self.v6:
            b[0] |= 0x0f                # traffic class and flow label
            b[1:4] = b"\xff\xff\xff"
            b[7] = 0xff                 # hop limit
        else:
            b[1] = 0xff                 # type of service
            b[8] = 0xff                 # time to live
            b[10:12] = b"\xff\xff"      # header checksum
        b[self.udp + 6:self.udp + 8] = b"\xff\xff"
        b[self.udp + 8 + 4] = 0xff      # FECN, BECN
        return struct.pack("<I", zlib.crc32(b"\xff" * 8 + b))

    def _check(self):
        if self.icrc() != self.roce[-ICRC:]:
            self.wrong.append(f"ICRC is {self.roce[-ICRC:].hex()}, should be {self.icrc().hex()}")
        if self.tver or any(self.reserved):
            self.wrong.append("transport version or a reserved field of the BTH is not zero")
        if self.opcode not in OPCODES:
            self.wrong.append(f"no transport has opcode {self.opcode:#04x}")
            return
        self.name, self.headers, self.allowed = OPCODES[self.opcode]
        need = sum(length for _, length in self.headers)
        rest = len(self.roce) - BTH - ICRC - need - self.pad
        if rest < 0:
            self.wrong.append(f"{-rest} bytes short of its headers")
            return
        self.payload = self.roce[BTH + need:BTH + need + rest]
        if (rest + self.pad) % 4:
            self.wrong.append(f"payload {rest} and pad {self.pad} are no multiple of 4")
        if rest == 0 and self.pad:
            self.wrong.append("a pad without a payload")
        if self.allowed == "none" and rest:
            self.wrong.append(f"{rest} bytes behind the headers")
        if self.allowed == "some" and not rest:
            self.wrong.append("a last packet without a payload")
        if self.allowed == "full" and rest not in MTUS:
            self.wrong.append(f"first or middle packet with {rest} bytes, which is no MTU")
        if rest > MTUS[-1]:
            self.wrong.append(f"payload of {rest} bytes is above every MTU")
        if self.headers[:1] == (XRCETH,) and self.roce[BTH]:
            self.wrong.append("the reserved byte of the XRCETH is not zero")


def records(path):
    """Number and bytes of each frame of a classic capture file (micro- or nanoseconds, Ethernet)."""
    with open(path, "rb") as f:
        data = f.read()
    orders = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">"}
    order = orders.get(data[:4])
    if order is None or len(data) < 24 or struct.unpack(order + "I", data[20:24])[0] != 1:
        raise ValueError(f"{path}: no capture file with Ethernet frames")
    at, number = 24, 0
    while at < len(data):
        if at + 16 > len(data):
            raise ValueError(f"{path}: ends inside a record header")
        _, _, length, original = struct.unpack(order + "IIII", data[at:at + 16])
        at, number = at + 16, number + 1
        if length != original or at + length > len(data):
            raise ValueError(f"{path}: record {number} is cut short")
        yield number, data[at:at + length]
        at += length


def packets(path):
    """The RoCEv2 packets of a capture, in its order."""
    for number, frame in records(path):
        kind = frame[12:14]
        if kind == b"\x08\x00" and frame[14 + 9] == 17:
            length = struct.unpack(">H", frame[16:18])[0]
            ip, udp = frame[14:14 + length], (frame[14] & 15) * 4
        elif kind == b"\x86\xdd" and frame[14 + 6] == 17:
            length = 40 + struct.unpack(">H", frame[18:20])[0]
            ip, udp = frame[14:14 + length], 40
        else:
            continue
        if struct.unpack(">H", ip[udp + 2:udp + 4])[0] != ROCE_PORT:
            continue
        p = Packet(number, ip)
        if len(ip) != length or struct.unpack(">H", ip[udp + 4:udp + 6])[0] != length - udp:
            p.wrong.append("lengths of frame, IP and UDP do not agree")
        yield p


def check(path):
    """(count of each opcode's name, complaints) of a capture."""
    names, wrong, mtu = collections.Counter(), [], {}
    for p in packets(path):
        names[p.name] += 1
        if p.allowed == "full":
            full = mtu.setdefault((p.key(), p.opcode >> 5, p.opcode & 0x1f in RESPONSES), len(p.payload))
            if full != len(p.payload):
                p.wrong.append(f"{len(p.payload)} bytes in a flow whose packets are full with {full}")
        wrong += [f"{path}: record {p.number} ({p.name}): {text}" for text in p.wrong]
    if not names:
        wrong.append(f"{path}: no RoCEv2 packet")
    return names, wrong


def sent_and_received(one, other):
    """Complaints about what is in one end's capture and not in the other's."""
    flows = []
    for path in (one, other):
        flow = collections.defaultdict(list)
        for p in packets(path):
            flow[(p.src, p.dst)].append(p)
        flows.append(flow)
    wrong = []
    if set(flows[0]) != set(flows[1]):
        return [f"the captures name different addresses: {set(flows[0]) ^ set(flows[1])}"]
    for way in flows[0]:
        a, b = flows[0][way], flows[1][way]
        common = min(len(a), len(b))
        for p, q in zip(a, b):
            if p.roce != q.roce:
                wrong.append(f"{way[0]} to {way[1]}: record {p.number} ({p.name}, psn {p.psn:06x}) of {one} is "
                             f"record {q.number} ({q.name}, psn {q.psn:06x}) of {other}")
                break
        else:
            rest = a[common:] + b[common:]
            if any(p.opcode & 0x1f != 0x11 for p in rest):
                wrong.append(f"{way[0]} to {way[1]}: {len(a)} packets in {one}, {len(b)} in {other}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description="Check the RoCEv2 packets of captures.")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for every packet")
    parser.add_argument("--same", action="store_true", help="the two files are both ends of one run without loss")
    parser.add_argument("files", nargs="+", metavar="FILE")
    args = parser.parse_args()
    wrong = []
    for path in args.files:
        if args.verbose:
            for p in packets(path):
                print(f"{p.number:6} {p.src} > {p.dst} {p.name} qp {p.dest_qp:06x} psn {p.psn:06x} "
                      f"payload {len(p.payload)} {' '.join(p.wrong)}")
        names, bad = check(path)
        wrong += bad
        print(f"{path}: {sum(names.values())} packets, {len(bad)} complaints; "
              + ", ".join(f"{n} {name}" for name, n in sorted(names.items())))
    if args.same:
        wrong += sent_and_received(*args.files)
    for text in wrong[:50]:
        print(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
