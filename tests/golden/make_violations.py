#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Write tests/golden/captures/check_*.pcap, one for each rule of --check: make_violations.py, by hand, after a change here.

Each is a clean trace of the kernel's driver (tests/data) in which one thing is spoilt, with the ICRCs made right again,
so that only the rule in question is broken. What needs hundreds of packets is made from nothing: an XRC connection of
empty SENDs. test_checks.py looks that each is found and that nothing else is.

The name of the function is the name of the rule in small letters; behind two underscores stands a second case.
"""
import copy
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import make_captures as mc  # noqa: E402

DATA = HERE.parent / "data"
OUT = HERE / "captures"
AT = 14 + 20 + 8                # the BTH in a frame of Ethernet and IPv4
MAD = AT + 12 + 8
CM = MAD + 24
MS = 1_000_000                  # nanoseconds
FIRST, MIDDLE, LAST, ONLY = 0xa0, 0xa1, 0xa2, 0xa4
SEND_ONLY, READ, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY, ACK, FETCH_ADD = 0xa4, 0xac, 0xad, 0xae, 0xaf, 0xb0, 0xb1, 0xb4
REQ, REP, RTU, DREQ, DREP, SIDR_REP = 0x10, 0x13, 0x14, 0x15, 0x16, 0x18


class Packet:
    def __init__(self, ts, frame):
        self.ts = ts
        self.b = bytearray(frame)

    def u(self, at, n):
        return int.from_bytes(self.b[at:at + n], "big")

    def put(self, at, n, value):
        self.b[at:at + n] = (value & ((1 << 8 * n) - 1)).to_bytes(n, "big")

    def field(at, n):  # noqa: N805
        return property(lambda self: self.u(at, n), lambda self, v: self.put(at, n, v))

    op = field(AT, 1)
    flags = field(AT + 1, 1)
    pkey = field(AT + 2, 2)
    qpn = field(AT + 5, 3)
    psn = field(AT + 9, 3)
    syndrome = field(AT + 12, 1)        # of a response, without other headers
    msn = field(AT + 13, 3)
    ip_id = field(18, 2)
    attr = field(MAD + 16, 2)
    src = property(lambda self: bytes(self.b[26:30]))

    def resize(self, body):
        """What is between the BTH and the ICRC; the pad count is the caller's."""
        self.b[AT + 12:] = body + bytes(4)
        self.put(16, 2, len(self.b) - 14)
        self.put(38, 2, len(self.b) - 34)
        return self

    def body(self):
        return bytes(self.b[AT + 12:-4])

    def seal(self):
        self.put(24, 2, 0)
        self.put(24, 2, mc.checksum(bytes(self.b[14:34])))
        self.b[-4:] = mc.icrc(bytes(self.b[14:-4]), 28)

    def answer(self):
        return self.op & 0x1f in (0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12)


def load(name, first=0, end=None, folder=DATA):
    b = (folder / f"{name}.pcap").read_bytes()
    unit = 1 if struct.unpack_from("<I", b)[0] == 0xa1b23c4d else 1000
    at, out = 24, []
    while at < len(b):
        s, sub, cap, _ = struct.unpack_from("<IIII", b, at)
        out.append(Packet(s * 1000 * MS + sub * unit, b[at + 16:at + 16 + cap]))
        at += 16 + cap
    return out[first:end]


def save(name, packets, seal=True, folder=OUT):
    b = struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, mc.ETH)
    for p in packets:
        if seal:
            p.seal()
        b += struct.pack("<IIII", p.ts // (1000 * MS), p.ts % (1000 * MS), len(p.b), len(p.b)) + p.b
    (folder / f"check_{name}.pcap").write_bytes(b)


def again(p, later=MS, new_id=True):
    """The same once more, as a sender does it."""
    q = copy.deepcopy(p)
    q.ts += later
    if new_id:
        q.ip_id += 0x100
    return q


def requests(t):
    return [p for p in t if not p.answer()]


def acks(t):
    return [p for p in t if p.answer()]


class Line:
    """A clean XRC connection: A's INI 0x11 sends to SRQ 0x020001 by B's TGT 0x22; empty SENDs."""

    def __init__(self):
        self.t = []
        self.now = mc.START * 1000 * MS
        self.ident = {mc.A4: 0, mc.B4: 0}

    def packet(self, src, dst, transport):
        self.ident[src] += 1
        self.now += MS // 10
        self.t.append(Packet(self.now, mc.ether(mc.roce(transport, src=src, dst=dst, ident=self.ident[src]))))
        return self.t[-1]

    def send(self, psn, ackreq=1, payload=b""):
        return self.packet(mc.A4, mc.B4, mc.bth(SEND_ONLY, payload, struct.pack(">I", 0x020001), qp=0x22, psn=psn,
                                                ackreq=ackreq))

    def ack(self, psn, msn, syndrome=0x1f):
        return self.packet(mc.B4, mc.A4, mc.bth(ACK, b"", struct.pack(">I", syndrome << 24 | msn), qp=0x11, psn=psn))

    def exchange(self, n, psn=100):
        for i in range(n):
            self.send(psn + i)
            self.ack(psn + i, i + 1)
        return self


SMALL = "kernel-rxe-xrc/xsrq_s3_m1024"
LAT = "kernel-rxe-xrc/send_lat_64"
MULTI = "kernel-rxe-xrc/xsrq_s1001_m256"
WRITES = "kernel-rxe-xrc/write_bw_5000"
WRITE_ONLY = "kernel-rxe-xrc/write_lat_5"
READS = "kernel-rxe-xrc/read_lat_10"
MIX = "kernel-rxe-xrc/err_mix"
ATOMICS = "kernel-rxe-xrc/atomic_fadd"
CM_XRC = "kernel-rxe-xrc/cm_xrc_full"
CM_RC = "kernel-rxe-6.1/cm_rping"
SIDR = "kernel-rxe-6.1/cm_udaddy_sidr"


# What one packet shows

def icrc_bad():
    t = load(SMALL)
    t[4].b[-1] ^= 0x10
    return t, False


def segmented():
    t = load(SMALL)
    t[-2].resize(t[-2].body() + bytes(1 << 13))
    t[-2].seal()
    t[-2].b[-1] ^= 1
    return t, False


def length():
    t = load(SMALL)
    t[-1].resize(t[-1].body() + bytes(4))
    return t


def opcode_reserved():
    t = load(SMALL)
    t[-1].op = 0xb5
    return t


def tver():
    t = load(SMALL)
    t[-1].flags |= 1
    return t


def bth_reserved():
    t = load(SMALL)
    t[2].b[AT + 4] |= 0x20
    return t


def bth_reserved__7():
    t = load(SMALL)
    t[3].b[AT + 8] |= 0x40
    return t


def xrceth_reserved():
    t = load(SMALL)
    t[4].b[AT + 12] = 1
    return t


def deth_reserved():
    t = load(SIDR)
    t[2].b[AT + 16] = 1
    return t


def syndrome_reserved():
    t = load(SMALL)
    acks(t)[-1].syndrome = 0x45
    return t


def syndrome_reserved__nak():
    t = load(SMALL)
    p = acks(t)[-1]
    p.syndrome = 0x65
    p.msn -= 1
    return t


def syndrome_kind():
    t = load(ATOMICS)
    t[-1].syndrome = 0x62
    return t


def pad_count():
    t = load(SMALL)
    acks(t)[-1].flags |= 0x10
    return t


def pad_nonzero():
    t = load(SMALL)
    t[4].b[-5] = 0xaa
    return t


def pkey_invalid():
    t = load(SMALL)
    t[4].pkey = 0x8000
    return t


def pkey_other():
    t = load(SMALL)
    t[4].pkey = 0x8001
    return t


def qpn_multicast():
    t = load(SMALL)
    t[-1].qpn = 0xffffff
    return t


def se_early():
    t = load(MULTI, end=26)
    t[1].flags |= 0x80
    return t


def reth_length():
    t = load(WRITE_ONLY)
    t[4].put(AT + 28, 4, 6)
    return t


def reth_too_long():
    t = load(READS, end=-1)
    t[-1].put(AT + 28, 4, (1 << 31) + 1)
    return t


def atomic_align():
    t = load(ATOMICS)
    t[2].b[AT + 16 + 7] |= 4
    return t


def gsi_qkey():
    t = load(CM_XRC)
    t[-1].put(AT + 12, 4, 0x11111111)
    return t


def mad_length():
    t = load(CM_XRC)
    t[-1].resize(t[-1].body()[:-4])
    return t


def cnp_fields():
    t = load(SMALL)
    cnp = again(acks(t)[-1])
    cnp.op, cnp.psn = 0x81, 0
    return t + [cnp.resize(bytes(16))]          # BECN is missing


# Requests

def opcode_sequence():
    t = load(MULTI, 4, 26)
    t[2].op = FIRST
    return t


def opcode_sequence__kind():
    t = load(MULTI, 4, 9)
    t[3].op = 0xa8                              # WRITE LAST, the end of a SEND
    return t


def srqn_changed():
    t = load(MULTI, 4, 26)
    t[3].put(AT + 13, 3, 0x020007)
    return t


def mtu_payload():
    t = load(MULTI, 4, 26)
    t[2].resize(t[2].body()[:-4])
    return t


def last_length():
    t = load(MULTI, 4, 26)
    t[3].flags &= ~0x30
    t[3].resize(t[3].body()[:4])
    return t


def last_length__long():
    t = load(MULTI, 4, 26)
    t[3].flags &= ~0x30
    t[3].resize(t[3].body()[:4] + bytes(260))
    return t


def write_length():
    t = load(WRITES, end=25)
    last = next(p for p in t if p.op == 0xa8)
    last.resize(last.body()[:-4])
    return t


def read_span():
    t = load(MIX, 0, 25)                        # up to the end of the first READ's responses
    del t[13:16]                                # what was asked for after it
    p = again(t[12], 2 * MS)
    p.psn += 2
    p.op = SEND_ONLY
    return t + [p.resize(p.body()[:4])]


def resend_differs():
    t = load(LAT)
    p = again(t[0], 1000)
    p.resize(p.body()[:-4])
    return t[:1] + [p] + t[1:]


def resend_acked():
    c = Line().exchange(12)
    for _ in range(8):
        c.send(111)                             # it takes 100 to 110 as acknowledged
        c.send(105)                             # and 105 not
    return c.t


def nak_ignored():
    c = Line().exchange(8)
    c.send(109)
    c.ack(108, 8, 0x60)
    for i in range(260):
        c.now += 5 * MS
        c.send(110 + i)
    return c.t


def rnr_early():
    t = load("kernel-rxe-6.1/err_rnr")
    for i, p in enumerate(t):
        p.ts = t[0].ts + i * MS // 20
    return t


def retry_limit():
    c = Line().exchange(5)
    for _ in range(10):
        c.send(105)
        c.now += 60 * MS
    return c.t


def ackreq_never():
    c = Line().exchange(2)
    for i in range(515):
        c.send(102 + i, ackreq=0)
    return c.t


def psn_start():
    t = load(CM_XRC)
    rep = next(p for p in t if p.attr == REP and p.qpn == 1)
    rep.put(CM + 20, 3, rep.u(CM + 20, 3) + 1)
    return t


def transport_mix():
    t = load(SMALL)
    p = again(requests(t)[-1])
    p.op, p.psn = 0x04, p.psn + 1
    return t + [p.resize(p.body()[4:])]


def xrc_role():
    t = load(READS)
    p = again(t[0], t[-1].ts - t[0].ts + MS)
    p.b[26:30], p.b[30:34] = p.b[30:34], p.b[26:30]
    p.qpn = t[-1].qpn
    return t + [p]


# Responses

def read_opcode():
    t = load(MIX)
    last = [p for p in t if p.op == READ_LAST][-1]
    last.op = READ_MIDDLE
    last.resize(last.body()[4:])
    return t


def read_opcode__first():
    t = load(MIX)
    first = [p for p in t if p.op == READ_FIRST][-1]
    first.op = READ_MIDDLE
    first.resize(first.body()[4:])
    return t


def read_length():
    t = load(MIX)
    p = [p for p in t if p.op == READ_LAST][0]
    p.resize(p.body()[:-8])
    return t


def response_kind():
    t = load(LAT)
    p = acks(t)[-1]
    p.op = READ_ONLY
    p.resize(p.body() + bytes(64))
    return t


def atomic_replay():
    t = load(ATOMICS)
    request, reply = again(t[-2], 5 * MS), again(t[-1], 5 * MS)
    reply.b[AT + 23] ^= 1
    return t + [request, reply]


def never_sent():
    t = load(LAT)
    p = [p for p in acks(t) if p.src == acks(t)[0].src][6]
    p.psn += 2000
    return t


def never_sent__next():
    c = Line().exchange(8)
    c.t[-1].psn += 1                            # it has counted 8 messages, and acknowledges the ninth
    for i in range(8, 12):
        c.send(100 + i)
        c.ack(100 + i, i + 1)
    return c.t


def ack_backwards():
    t = load(LAT)
    p = [p for p in acks(t) if p.src == acks(t)[0].src][6]
    p.psn -= 2
    return t


def msn():
    t = load(LAT)
    for p in [p for p in acks(t) if p.src == acks(t)[0].src][6:]:
        p.msn += 5
    return t


def msn__read():
    t = load(READS)
    for p in acks(t)[6:]:
        p.msn -= 1
    return t


def gap_acked():
    t = load(LAT)
    gone = [p for p in requests(t) if p.src == t[0].src][5]
    t = [p for p in t if p.psn != gone.psn]     # a request and its ACK
    for p in acks(t):
        if p.src != gone.src and p.psn > gone.psn:
            p.msn -= 1
    return t


def gap_not_naked():
    c = Line().exchange(5)
    psn, count = 105, 5
    for _ in range(4):
        for i in range(1, 7):
            c.send(psn + i)
        c.now += 60 * MS
        for i in range(7):
            c.send(psn + i)
        psn, count = psn + 7, count + 7
        c.ack(psn - 1, count)
    return c.t


def ack_after_nak():
    t = load(LAT)
    p = [p for p in acks(t) if p.src == acks(t)[0].src][6]
    p.syndrome = 0x62
    p.msn -= 1
    return t


# The connection manager

def mads(t):
    return [p for p in t if p.qpn == 1]


def mad(t, attr):
    return next(p for p in mads(t) if p.attr == attr)


def cm_header():
    t = load(CM_XRC)
    t[-1].b[MAD + 3] = 1
    return t


def cm_xrc_req():
    t = load(CM_XRC)
    mad(t, REQ).b[CM + 51] += 1
    return t


def cm_xrc_rep():
    t = load(CM_XRC)
    mad(t, REP).put(CM + 16, 3, 0)
    return t


def cm_qpn():
    t = mads(load(CM_RC))
    mad(t, REQ).put(CM + 32, 3, 0)
    return t


def cm_mtu():
    t = load(CM_XRC)
    mad(t, REQ).b[CM + 50] = mad(t, REQ).b[CM + 50] & 0x0f | 0x90
    return t


def cm_remote_id():
    t = load(CM_XRC)
    p = mad(t, RTU)
    p.put(CM + 4, 4, p.u(CM + 4, 4) + 1)
    return t


def cm_dreq_qpn():
    t = load(CM_XRC)
    mad(t, DREQ).put(CM + 8, 3, 0x49)
    return t


def twice(drop_first=(), drop_second=()):
    """Two connections, the second 40 s later with other ids, and GSIs that number what they send."""
    out, last = [], {}
    for n, drop in enumerate((drop_first, drop_second)):
        for p in mads(load(CM_XRC)):
            if p.attr in drop:
                continue
            p.ts += n * 40_000 * MS
            for at in (CM, CM + 4) if p.attr != REQ else (CM,):
                p.put(at, 4, p.u(at, 4) + n)
            p.psn = last.get(p.src, 99) + 1
            last[p.src] = p.psn
            out.append(p)
    return out


def cm_no_req():
    return twice(drop_second=[REQ])


def cm_no_rep():
    return twice(drop_second=[REP])


def cm_no_dreq():
    return twice(drop_first=[DREQ])


def cm_sidr_qpn():
    t = load(SIDR)
    mad(t, SIDR_REP).put(CM + 8, 3, 0)
    return t


# Not violations: what a capture that lacks packets, or a network, may show

def clean_begins_late():
    return load(MULTI, 6, 40)


def clean_one_side():
    return acks(load(LAT))


def clean_sniffer_lost():
    """Every seventh packet is missing in the capture only."""
    return [p for i, p in enumerate(load(MIX) + load(MULTI, end=40)) if i % 7 != 3]


def clean_cm_lost():
    return [p for p in load(CM_XRC) if p.qpn != 1 or p.attr not in (REQ, REP)]


def clean_doubled():
    """A network that sends packets twice, later, and in another order."""
    t = load(LAT)
    out = t + [again(p, 30_000, False) for p in t[::5]]
    return sorted(out, key=lambda p: p.ts)


def main():
    for old in OUT.glob("check_*.pcap"):
        old.unlink()
    rules = (HERE.parent.parent / "pcap-dissect/checks.def").read_text(encoding="utf-8")
    for name, make in list(globals().items()):
        rule = name.partition("__")[0].upper()
        if name.islower() and (f"RULE({rule}," in rules or rule.startswith("CLEAN_")):
            made = make()
            save(name, *(made if isinstance(made, tuple) else (made,)))


if __name__ == "__main__":
    main()
