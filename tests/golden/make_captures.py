#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Write the captures of tests/golden/captures and the frames of tests/fuzz/corpus/dissect: make_captures.py, by hand,
after a change here.

They hold what no trace of a real device does: every opcode, every message of the connection manager with another
value in every field, every link type, packets that are cut at each length, and every kind of damage that
rxe-dissect has a name for. Nothing here is taken from the product: layouts are typed again from the InfiniBand
Architecture Specification, volume 1 (chapters 9 and 12, annexes A11, A14, A17), and the CRC is zlib's.

Output depends on nothing but this file, so that a capture changes only when its bytes were meant to.
"""
import ipaddress
import struct
import zlib
from pathlib import Path

OUT = Path(__file__).resolve().parent / "captures"
CORPUS = OUT.parent.parent / "fuzz/corpus/dissect"
START = 1_764_451_200           # 2025-11-29 21:20:00 UTC
ETH, NULL, LOOP, RAW, SLL, SLL2, WIFI = 1, 0, 108, 101, 113, 276, 105
A4, B4 = "192.0.2.1", "198.51.100.2"
A6, B6 = "2001:db8::1", "fe80::2:0:0:9"
PORT = 4791


# Bytes of layers

def addr(text):
    return ipaddress.ip_address(text).packed


def checksum(b):
    s = sum(struct.unpack(f">{len(b) // 2}H", b))
    s = (s & 0xffff) + (s >> 16)
    return ~(s + (s >> 16)) & 0xffff


def ip4(payload, src=A4, dst=B4, proto=17, ident=0x1234, frag=0x4000, options=b"", tos=0, ttl=64, total=None, ihl=None):
    hdr_len = 20 + len(options)
    h = struct.pack(">BBHHHBBH4s4s", 0x40 | (hdr_len // 4 if ihl is None else ihl), tos,
                    hdr_len + len(payload) if total is None else total, ident, frag, ttl, proto, 0,
                    addr(src), addr(dst)) + options
    return h[:10] + struct.pack(">H", checksum(h)) + h[12:] + payload


def ip6(payload, src=A6, dst=B6, nxt=17, tclass=0, flow=0x12345, hlim=64, plen=None):
    return struct.pack(">IHBB", 6 << 28 | tclass << 20 | flow, len(payload) if plen is None else plen, nxt, hlim) \
        + addr(src) + addr(dst) + payload


def udp(payload, sport=49152, dport=PORT, length=None, csum=0):
    return struct.pack(">HHHH", sport, dport, 8 + len(payload) if length is None else length, csum) + payload


def icrc(ip, transport_at):
    """The ICRC over an IP packet that ends where its ICRC is to come."""
    b = bytearray(ip)
    if b[0] >> 4 == 6:
        b[0] |= 0x0f
        b[1:4] = b"\xff\xff\xff"
        b[7] = 0xff
    else:
        b[1] = b[8] = 0xff
        b[10:12] = b"\xff\xff"
    b[transport_at - 2:transport_at] = b"\xff\xff"
    b[transport_at + 4:transport_at + 5] = b"\xff" * (len(b) > transport_at + 4)
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(b)))


def roce(transport, wrap=ip4, bad_icrc=False, udp_args=None, **ip_args):
    """@transport, from the BTH to the pad, in UDP and IP, with its ICRC."""
    ip = wrap(udp(transport + b"\0\0\0\0", **(udp_args or {})), **ip_args)
    at = len(ip) - len(transport) - 4
    crc = icrc(ip[:-4], at)
    if bad_icrc:
        crc = bytes([crc[0] ^ 1]) + crc[1:]
    return ip[:-4] + crc


def bth(opcode, payload=b"", ext=b"", qp=0x123456, psn=0x0abcde, se=0, mig=1, tver=0, pkey=0xffff, ecn=0, ackreq=0,
        pad=None):
    fill = -len(payload) % 4
    return struct.pack(">BBHII", opcode, se << 7 | mig << 6 | (fill if pad is None else pad) << 4 | tver, pkey,
                       ecn << 30 | qp, ackreq << 31 | psn) + ext + payload + bytes(fill)


def ether(ip, tags=(), ethertype=None):
    if ethertype is None:
        ethertype = 0x86dd if ip[0] >> 4 == 6 else 0x0800
    b = bytes.fromhex("0200000000b0" "0200000000a0")
    for tpid, tci in tags:
        b += struct.pack(">HH", tpid, tci)
    return b + struct.pack(">H", ethertype) + ip


# Capture files

class Frame:
    """A frame as it was on the wire, and how much of it was captured."""

    def __init__(self, data, cap=None, wire=None):
        self.cap = data if cap is None else data[:cap]
        self.wire = len(data) if wire is None else wire


def frames(items):
    return [item if isinstance(item, Frame) else Frame(item) for item in items]


def pcap(name, items, link=ETH, order="<", nano=False):
    magic = 0xa1b23c4d if nano else 0xa1b2c3d4
    b = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link)
    for i, f in enumerate(frames(items)):
        b += struct.pack(order + "IIII", START + i // 10, 1001 * i + (123456789 if nano else 0), len(f.cap), f.wire)
        b += f.cap
    write(name, b)


def block(kind, body):
    body += bytes(-len(body) % 4)
    n = 12 + len(body)
    return struct.pack("<II", kind, n) + body + struct.pack("<I", n)


def pcapng(name, items):
    """Two interfaces: the first counts microseconds, the second nanoseconds."""
    b = block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1))
    b += block(1, struct.pack("<HHI", ETH, 0, 0))
    b += block(1, struct.pack("<HHI", ETH, 0, 0) + struct.pack("<HHB3xHH", 9, 1, 9, 0, 0))
    for i, f in enumerate(frames(items)):
        unit = 1_000_000_000 if i & 1 else 1_000_000
        t = START * unit + 1001 * i
        b += block(6, struct.pack("<IIIII", i & 1, t >> 32, t & 0xffffffff, len(f.cap), f.wire) + f.cap)
    write(name, b)


def pcapng_links(name, frame, link, other):
    """A packet of an interface, then a second interface of another link type, and a packet of that."""
    b = block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1))
    for i, (dlt, f) in enumerate(((ETH, frame), (link, other))):
        b += block(1, struct.pack("<HHI", dlt, 0, 0))
        t = START * 1_000_000 + 1001 * i
        b += block(6, struct.pack("<IIIII", i, t >> 32, t & 0xffffffff, len(f), len(f)) + f)
    write(name, b)


def write(name, data):
    (OUT / name).write_bytes(data)


# Extension headers

DETH = struct.pack(">IBBH", 0x11223344, 0, 0xab, 0xcdef)
XRCETH = struct.pack(">I", 0x020406)
RETH = struct.pack(">QII", 0x00007f0011223344, 0x55667788, 123456)
ATOMIC = struct.pack(">QIQQ", 0x00007f0055667788, 0x99aabbcc, 0x1020304050607080, 0x90a0b0c0d0e0f000)
AETH = struct.pack(">I", 0x1f << 24 | 0x00abcd)
ORIG = struct.pack(">Q", 0x0123456789abcdef)
IMM = struct.pack(">I", 0xdeadbeef)
IETH = struct.pack(">I", 0xcafe0123)
REQUESTS = {
    0x00: b"", 0x01: b"", 0x02: b"", 0x03: IMM, 0x04: b"", 0x05: IMM, 0x06: RETH, 0x07: b"", 0x08: b"", 0x09: IMM,
    0x0a: RETH, 0x0b: RETH + IMM, 0x0c: RETH, 0x13: ATOMIC, 0x14: ATOMIC, 0x16: IETH, 0x17: IETH,
}
RESPONSES = {0x0d: AETH, 0x0e: b"", 0x0f: AETH, 0x10: AETH, 0x11: AETH, 0x12: AETH + ORIG}
NO_PAYLOAD = (0x0c, 0x11, 0x12, 0x13, 0x14)


def body(op):
    """A payload that looks like nothing, of the length that the place in the message asks for."""
    if op in NO_PAYLOAD:
        return b""
    n = 256 if op in (0x00, 0x01, 0x06, 0x07, 0x0d, 0x0e) else 1 + op
    return bytes((7 * i + op) & 0xff for i in range(n))


def connected(base, prefix):
    """Every opcode of RC or XRC, in the order of the numbers."""
    for op in sorted(REQUESTS | RESPONSES):
        ext = prefix + REQUESTS[op] if op in REQUESTS else RESPONSES[op]
        yield roce(bth(base | op, body(op), ext, psn=op, ackreq=op in (0x02, 0x04, 0x0c), se=op == 0x05))


def opcodes():
    pcap("xrc_opcodes.pcap", [ether(ip) for ip in connected(0xa0, XRCETH)])
    rest = list(connected(0x00, b""))
    rest += [roce(bth(0x20 | op, body(op), REQUESTS[op])) for op in range(0x0c)]
    rest += [roce(bth(0x64, body(4), DETH)), roce(bth(0x65, body(5), DETH + IMM)),
             roce(bth(0x81, ext=bytes(16), ecn=1, psn=0))]
    pcap("other_opcodes.pcap", [ether(ip) for ip in rest])
    pcap("syndromes.pcap", [ether(roce(bth(0xb1, ext=struct.pack(">I", s << 24 | s)))) for s in range(256)])
    pcap("flags.pcap", [ether(roce(bth(0xa4, b"flag", XRCETH, **flags))) for flags in (
        {}, {"se": 1}, {"mig": 0}, {"ackreq": 1}, {"ecn": 2}, {"ecn": 1}, {"pkey": 0x7fff}, {"qp": 0xffffff},
        {"psn": 0xffffff}, {"se": 1, "ecn": 3, "ackreq": 1, "pkey": 0x8001})])


# The connection manager

class Bits:
    """A message body that is filled in by byte, bit and width, as the specification's tables name them."""

    def __init__(self, length=232):
        self.length = length
        self.value = 0

    def put(self, value, byte, width, bit=0):
        self.value |= (value & ((1 << width) - 1)) << (self.length * 8 - byte * 8 - bit - width)

    def bytes(self, data, at):
        self.put(int.from_bytes(data, "big"), at, 8 * len(data))

    def done(self):
        return self.value.to_bytes(self.length, "big")


def mad(attr, message, mclass=7, method=3, tid=0x0000000211223344, ip_args=None, length=256):
    b = struct.pack(">BBBBHHQHHI", 1, mclass, 2, method, 0, 0, tid, attr, 0, 0) + message
    return roce(bth(0x64, b[:length], struct.pack(">II", 0x80010000, 1), qp=1, psn=attr, ackreq=1), **(ip_args or {}))


def ip_cm(src, dst, sport, version=0):
    if ":" in src:
        return struct.pack(">BBH16s16s", version, 0x60, sport, addr(src), addr(dst))
    return struct.pack(">BBH12x4s12x4s", version, 0x40, sport, addr(src), addr(dst))


def path(m, at):
    """A path of LIDs, GIDs and so on, as REQ has two of it."""
    m.put(0x1112, at, 16)
    m.put(0x2122, at + 2, 16)
    m.bytes(b"\0" * 10 + b"\xff\xff" + addr(A4), at + 4)
    m.bytes(addr(B6), at + 20)
    m.put(0xabcde, at + 36, 20)
    m.put(7, at + 39, 6, 2)
    m.put(0x68, at + 40, 8)
    m.put(63, at + 41, 8)
    m.put(9, at + 42, 4)
    m.put(1, at + 42, 1, 4)
    m.put(17, at + 43, 5)


def req(service, private, transport=3, ext=1):
    m = Bits()
    m.put(0x0a0b0c0d, 0, 32)
    m.put(service, 8, 64)
    m.put(0x0102030405060708, 16, 64)
    m.put(0x21222324, 28, 32)
    m.put(0x313233, 32, 24)
    m.put(34, 35, 8)
    m.put(0x414243, 36, 24)
    m.put(44, 39, 8)
    m.put(0x515253, 40, 24)
    m.put(20, 43, 5)
    m.put(transport, 43, 2, 5)
    m.put(1, 43, 1, 7)
    m.put(0x616263, 44, 24)
    m.put(21, 47, 5)
    m.put(6, 47, 3, 5)
    m.put(0x8001, 48, 16)
    m.put(4, 50, 4)
    m.put(1, 50, 1, 4)
    m.put(5, 50, 3, 5)
    m.put(14, 51, 4)
    m.put(1, 51, 1, 4)
    m.put(ext, 51, 3, 5)
    path(m, 52)
    path(m, 96)
    m.bytes(private, 140)
    return m.done()


def ids(local=0x0a0b0c0d, remote=0x1a1b1c1d):
    m = Bits()
    m.put(local, 0, 32)
    m.put(remote, 4, 32)
    return m


def rej(message, reason, ari=b""):
    m = ids()
    m.put(message, 8, 2)
    m.put(len(ari), 9, 7)
    m.put(reason, 10, 16)
    m.bytes(ari, 12)
    m.bytes(b"rejected", 84)
    return m.done()


def rep():
    m = ids()
    m.put(0x21222324, 8, 32)
    m.put(0x313233, 12, 24)
    m.put(0x414243, 16, 24)
    m.put(0x616263, 20, 24)
    m.put(34, 24, 8)
    m.put(44, 25, 8)
    m.put(15, 26, 5)
    m.put(1, 26, 2, 5)
    m.put(1, 26, 1, 7)
    m.put(5, 27, 3)
    m.put(1, 27, 1, 3)
    m.put(0x0102030405060708, 28, 64)
    m.bytes(struct.pack(">I", 0x020406), 36)
    return m.done()


def lap():
    m = ids()
    m.put(0x313233, 12, 24)
    m.put(20, 15, 5)
    m.put(0x1112, 20, 16)
    m.put(0x2122, 22, 16)
    m.bytes(addr(A6), 24)
    m.bytes(b"\0" * 10 + b"\xff\xff" + addr(B4), 40)
    m.put(0xabcde, 56, 20)
    m.put(0x68, 59, 8)
    m.put(63, 60, 8)
    m.put(7, 61, 6, 2)
    m.put(9, 62, 4)
    m.put(1, 62, 1, 4)
    m.put(17, 63, 5)
    m.bytes(b"another way", 64)
    return m.done()


def with_private(m, at, fields=()):
    for value, byte, width, bit in fields:
        m.put(value, byte, width, bit)
    m.bytes(b"private", at)
    return m.done()


def sidr_req(service, private):
    m = Bits()
    m.put(0x0a0b0c0d, 0, 32)
    m.put(0x8001, 4, 16)
    m.put(service, 8, 64)
    m.bytes(private, 16)
    return m.done()


def sidr_rep(status, info=b""):
    m = Bits()
    m.put(0x0a0b0c0d, 0, 32)
    m.put(status, 4, 8)
    m.put(len(info), 5, 8)
    m.put(0x020406, 8, 24)
    m.put(0x00000000013f1d32, 12, 64)
    m.put(0x01234567, 20, 32)
    m.bytes(info, 24)
    m.bytes(b"resolved", 96)
    return m.done()


def connection_manager():
    ib, tcp, ipoib, other = 0x00000000013f1d32, 0x0000000001061c06, 0x0000000000021c06, 0x1000cec0dec0de01
    v6 = {"wrap": ip6}
    pcap("cm_messages.pcap", [ether(ip) for ip in (
        mad(0x10, req(ib, ip_cm(A4, B4, 35509) + b"hello")),
        mad(0x10, req(tcp, ip_cm(A6, B6, 35510), transport=0, ext=0), ip_args=v6),
        mad(0x10, req(ipoib, ip_cm("::", "::1", 1), transport=1, ext=0), ip_args=v6),
        mad(0x10, req(other, b"no IP CM header", transport=2, ext=0)),
        mad(0x10, req(ib, b"native addresses", ext=2)),
        mad(0x11, with_private(ids(), 10, [(1, 8, 2, 0), (24, 9, 5, 0)])),
        mad(0x12, rej(1, 28, b"more of it")),
        mad(0x13, rep()),
        mad(0x14, with_private(ids(), 8)),
        mad(0x15, with_private(ids(), 12, [(0x717273, 8, 24, 0)])),
        mad(0x16, with_private(ids(), 8)),
        mad(0x17, sidr_req(ib, ip_cm(A4, B4, 35509) + b"which SRQ?")),
        mad(0x17, sidr_req(other, b"raw")),
        mad(0x18, sidr_rep(0)),
        mad(0x18, sidr_rep(4, b"go there")),
        mad(0x19, lap()),
        mad(0x1a, with_private(ids(), 84, [(3, 8, 8, 0), (7, 9, 8, 0), (0x414243, 12, 24, 0)])),
        mad(0x1b, bytes(232)),                          # no such message
        mad(0x01, bytes(232), mclass=3, method=1),      # another class
        mad(0x14, with_private(ids(), 8), length=128),  # half of one
    )])
    pcap("cm_rej_reasons.pcap", [ether(mad(0x12, rej(n % 4, n))) for n in list(range(37)) + [0xffff]])


# Links, IP

def simple(wrap=ip4, **more):
    return roce(bth(0xa4, b"simple", XRCETH, ackreq=1, **more), wrap)


def links():
    four, six = simple(), simple(ip6)
    pcap("vlan.pcap", [ether(four, [(0x8100, 0xa064)]), ether(six, [(0x8100, 0x0065)]),
                       ether(four, [(0x88a8, 0x100a), (0x8100, 0x0014)]),
                       ether(six, [(0x9100, 1), (0x8100, 2), (0x8100, 3)]),
                       Frame(ether(four, [(0x88a8, 1), (0x8100, 2)]), cap=20)])
    sll = struct.pack(">HHH8sH", 4, 1, 6, b"\2\0\0\0\0\xa0\0\0", 0x0800)
    vlan = sll[:-2] + struct.pack(">HHH", 0x8100, 0x0064, 0x0800)
    pcap("sll.pcap", [sll + four, sll[:-2] + b"\x86\xdd" + six, vlan + four, Frame(sll + four, cap=15)], SLL)
    sll2 = struct.pack(">HHIHBB8s", 0x0800, 0, 7, 772, 0, 6, bytes(8))
    pcap("sll2.pcap", [sll2 + four, b"\x86\xdd" + sll2[2:] + six], SLL2)
    pcap("raw.pcap", [four, six, b"\x50\0\0\0", Frame(four, cap=0)], RAW)
    pcap("null.pcap", [b"\2\0\0\0" + four, b"\0\0\0\2" + four, b"\x1e\0\0\0" + six], NULL)
    pcap("loop.pcap", [b"\0\0\0\2" + four, b"\0\0\0\x18" + six], LOOP)
    pcap("big_endian.pcap", [ether(four), ether(six)], order=">")
    pcap("nano.pcap", [ether(four), ether(six)], nano=True)
    pcapng("two_interfaces_ng.pcap", [ether(four), ether(six), ether(four)])
    pcapng_links("two_links_ng.pcap", ether(four), RAW, four)
    write("no_packets.pcap", struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, ETH))


def ip_layers():
    whole = simple()
    opts = b"\x94\x04\0\0" + b"\1\1\1\0"
    pcap("ip4.pcap", [ether(ip) for ip in (
        roce(bth(0xa4, b"options", XRCETH), options=opts),
        roce(bth(0xa4, b"no DF", XRCETH), frag=0),
        roce(bth(0xa4, b"tos", XRCETH), tos=0x6b, ttl=3),
        ip4(whole[20:52], frag=0x2000, ident=0x77), ip4(whole[52:], frag=0x0004, ident=0x77),
        ip4(bytes(64), frag=0x2010, ident=0x77), ip4(bytes(64), frag=0x0010, proto=6))])
    pcap("padded.pcap", [ether(roce(bth(0xb1, ext=AETH))) + bytes(8), ether(simple()) + b"trailer of the wire"])

    def wrap(ext, first):
        return lambda payload, **args: ip6(ext + payload, nxt=first, **args)

    hbh, dest = b"\x3c\0\5\2\0\0\1\0", b"\x11\1" + bytes(14)
    routing = b"\x11\0\0\0\0\0\0\0"
    whole = simple(ip6)
    pcap("ip6.pcap", [ether(ip) for ip in (
        roce(bth(0xa4, b"hop-by-hop", XRCETH), wrap(hbh + dest, 0)),
        roce(bth(0xa4, b"routing", XRCETH), wrap(routing, 43)),
        roce(bth(0xa4, b"tclass", XRCETH), ip6, tclass=0x6b, flow=0xfffff, hlim=1),
        roce(bth(0xa4, b"atomic fragment", XRCETH), wrap(b"\x11\0\0\0\0\0\0\x01", 44)),
        ip6(b"\x11\0\0\x01\0\0\x77\x77" + whole[40:72], nxt=44),
        ip6(b"\x11\0\0\x20\0\0\x77\x77" + whole[72:], nxt=44),
        ip6(b"\x11\xff" + bytes(30), nxt=0), ip6(b"", nxt=59))])


def not_roce():
    arp = ether(struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1) + bytes(20), ethertype=0x0806)
    pcap("mixed.pcap", [arp, ether(simple()), ether(ip4(bytes(20), proto=6)), ether(ip4(udp(b"dns?", dport=53))),
                        ether(ip4(udp(bytes(40), sport=PORT, dport=49152))), ether(ip6(bytes(8), nxt=58)),
                        ether(bytes(60), ethertype=0x8915), ether(bytes(3), ethertype=0x0026)])


# Damage

def cut_at_each_length(frame, lengths):
    return [Frame(frame, cap=n) for n in lengths]


def damage():
    write_imm = ether(roce(bth(0xab, b"data", XRCETH + RETH + IMM)))
    pcap("snapped.pcap", cut_at_each_length(write_imm, range(len(write_imm) + 1)))
    pcap("snapped_some.pcap", cut_at_each_length(write_imm, (13, 14, 25, 34, 41, 42, 45, 54, 60, 78, 84, 86)))
    request = ether(mad(0x10, req(0x00000000013f1d32, ip_cm(A4, B4, 35509) + b"hello")))
    steps = (62, 63, 80, 86, 87, 90, 101, 102, 130, 200, 225, 226, 227, 228, 240, 262, 263, 300, 317, 318, 320)
    pcap("snapped_cm.pcap", cut_at_each_length(request, steps))
    pcap("snapped_ip6.pcap", cut_at_each_length(ether(simple(ip6)), range(14, 100, 3)))
    pcap("truncated.pcap", [Frame(write_imm[:n]) for n in range(0, len(write_imm), 5)])

    good = bth(0xa4, b"damage", XRCETH)
    whole = roce(good)
    pcap("damaged.pcap", [ether(ip) for ip in (
        roce(good, bad_icrc=True),
        roce(good, ip6, bad_icrc=True),
        roce(bth(0xa4, b"damage", XRCETH, tver=1)),
        roce(bth(0xb5, b"no such")), roce(bth(0x40, b"RD!!")), roce(bth(0xff)),
        roce(bth(0xa4, b"", XRCETH, pad=3)), roce(bth(0xb1, ext=AETH, pad=1)),
        roce(bth(0xb1, b"what is this", AETH)), roce(bth(0xac, b"data", XRCETH + RETH)),
        roce(bth(0xa6, b"", XRCETH + RETH[:8])), roce(bth(0xa4)[:12]), roce(bth(0xb3, ext=XRCETH)),
        roce(good + b"\0"), roce(good[:8]), roce(b""), ip4(udp(b"\xa4\0\xff")), ip4(udp(b"")),
        ip4(udp(good, length=7)), ip4(udp(good, length=200)), ip4(udp(good, length=20)), ip4(b"\x12\x34"), ip4(b""),
        ip4(udp(good), total=19), ip4(udp(good), ihl=3), ip4(udp(good), ihl=15), ip4(udp(good), total=0),
        whole[:8] + b"\x01" + whole[9:],
        ip6(udp(good), plen=4), ip6(udp(good), plen=0))]
        + [ether(whole, ethertype=0x86dd), ether(simple(ip6), ethertype=0x0800), ether(b"\x75" + whole[1:])])


def broken_files():
    capture = (OUT / "big_endian.pcap").read_bytes()
    write("empty.pcap", b"")
    write("cut_header.pcap", capture[:17])
    write("cut_record.pcap", capture[:-30])
    write("cut_record_header.pcap", capture[:24 + 16 + 70 + 9])
    write("bad_magic.pcap", b"\0" + capture[1:])
    write("huge_record.pcap", capture[:24 + 8] + b"\x7f\xff\xff\xff" + capture[36:])
    pcap("wifi.pcap", [bytes(40)], WIFI)
    ng = (OUT / "two_interfaces_ng.pcap").read_bytes()
    write("cut_block_ng.pcap", ng[:-20])


def fuzz_corpus():
    """Frames for the fuzzer to begin with; the first byte chooses the link type, as fuzz_dissect.c has it."""
    sll = struct.pack(">HHH8sH", 4, 1, 6, bytes(8), 0x0800)
    sll2 = struct.pack(">HHIHBB8s", 0x86dd, 0, 7, 772, 0, 6, bytes(8))
    write_imm = roce(bth(0xab, b"data", XRCETH + RETH + IMM))
    inputs = {
        "xrc_write": b"\0" + ether(write_imm), "xrc_ack": b"\0" + ether(roce(bth(0xb1, ext=AETH))),
        "vlan": b"\0" + ether(simple(), [(0x88a8, 1), (0x8100, 2)]), "sll": b"\1" + sll + simple(),
        "sll2": b"\2" + sll2 + simple(ip6), "raw_atomic": b"\3" + roce(bth(0xb3, ext=XRCETH + ATOMIC)),
        "null": b"\4\2\0\0\0" + simple(), "snapped": b"\x30" + ether(write_imm)[:60],
        "ip6_ext": b"\3" + roce(bth(0xa4, b"ext", XRCETH), lambda b, **a: ip6(b"\x11\0\5\2\0\0\1\0" + b, nxt=0)),
        "cm_req": b"\3" + mad(0x10, req(0x00000000013f1d32, ip_cm(A4, B4, 35509) + b"hello")),
        "cm_rep": b"\3" + mad(0x13, rep()), "cm_lap": b"\3" + mad(0x19, lap()),
        "cm_sidr_req": b"\3" + mad(0x17, sidr_req(0x0000000001111c06, ip_cm(A6, B6, 7))),
    }
    for name, data in inputs.items():
        (CORPUS / name).write_bytes(data)


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    CORPUS.mkdir(exist_ok=True)
    for part in (fuzz_corpus, opcodes, connection_manager, links, ip_layers, not_roce, damage, broken_files):
        part()
