#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
rxe-dissect --check finds each rule that is broken, that one alone, and nothing in clean traces: test_checks.py RXE-DISSECT

For each row of checks.def there is a capture check_TOKEN.pcap, made by make_violations.py, perhaps with more cases
behind two underscores. check_clean_* and all traces of the kernel's driver in tests/data break no rule: what was made
to go wrong there (err_*, viol*) went wrong by the rules. They still break none when packets are left out, as a capture
does that begins late or cannot keep up; nor when one follows another on the same QP numbers, as when a program is
started again. What breaks a rule is found behind another connection too.
"""
import copy
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]
import make_captures as mc  # noqa: E402
import make_violations as mv  # noqa: E402
import tap  # noqa: E402

REPORT = re.compile(r": packet \d+: ([A-Z0-9_]+): ")
TIMEOUT_S = 30
ETHERTYPE_IP4 = b"\x08\x00"
RC, UC, XRC = 0, 1, 5            # an opcode's upper three bits
HOSTS = (socket.inet_aton(mc.A4), socket.inet_aton(mc.B4))
SECOND = 1000 * mv.MS


def rules():
    text = (HERE.parent.parent / "pcap-dissect/checks.def").read_text(encoding="utf-8")
    return dict(re.findall(r"^RULE\((\w+), (\w+),", text, re.M))


def check(program, capture):
    p = subprocess.run([program, "--check", capture], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return REPORT.findall(p.stdout), p.returncode, p.stdout + p.stderr


def rule_of(capture):
    return capture.stem[len("check_"):].partition("__")[0].upper()


def complaints(program, capture, want, status):
    found, code, text = check(program, capture)
    if found == want and code == status:
        return []
    return [f"exit status {code}, should be {status}", *text.splitlines()[:20]]


def lose(capture, keep):
    """The file without the packets that keep(number) refuses."""
    b = capture.read_bytes()
    out, at, n = b[:24], 24, 0
    while at < len(b):
        end = at + 16 + struct.unpack_from("<I", b, at + 8)[0]
        if keep(n):
            out += b[at:end]
        at, n = end, n + 1
    return out


def losses(capture):
    rng = random.Random(capture.name)
    for start in (1, 2, 3, 7):
        yield f"begins {start} packets late", lose(capture, lambda n, start=start: n >= start)
    for percent in (3, 10, 30, 60):
        yield f"lacks {percent} %", lose(capture, lambda n, percent=percent: rng.random() * 100 >= percent)


def with_losses(program, capture, folder):
    for what, data in losses(capture):
        part = Path(folder) / "part.pcap"
        part.write_bytes(data)
        found, _, text = check(program, part)
        if found:
            return [what, *text.splitlines()[:20]]
    return []


def transport(p):
    return p.op >> 5


def connected(packets):
    """Those of connected QPs."""
    return [p for p in packets if p.b[12:14] == ETHERTYPE_IP4 and p.qpn != 1 and transport(p) in (RC, UC, XRC)]


def connections():
    """The clean traces of one connection each: name and packets, the CM's left out."""
    for c in sorted((HERE.parent / "data").glob("*/*.pcap")):
        t = connected(mv.load(f"{c.parent.name}/{c.stem}"))
        if t and len({(p.src, p.qpn) for p in t}) <= 2:
            yield c.stem, t


def moved(packets, hosts, qpns, psns, when):
    """The same connection, but of these hosts and QPs, whose requests begin with these PSNs, at this time.

    The first of each two is of who sends first.
    """
    t = copy.deepcopy(packets)
    leader, before, begin = t[0].src, t[0].ts, {}
    for p in t:
        if not p.answer():
            begin.setdefault(p.src == leader, p.psn)
    for p in t:
        leads = p.src == leader
        asks = leads != p.answer()              # whether the request is the leader's
        p.psn += psns[0 if asks else 1] - begin.get(asks, p.psn)
        p.b[26:34] = hosts[0] + hosts[1] if leads else hosts[1] + hosts[0]
        p.qpn = qpns[1 if leads else 0]
        p.ts += when - before
    return t


def reused(rng, first, others):
    """Other connections behind @first on QP numbers that it had: what is special, and the packets."""
    length = max((p.psn - first[0].psn) & 0xffffff for p in first if p.src == first[0].src)
    starts = {"the same PSN": 0, "a PSN ahead": 7, "a PSN behind": -7, "a PSN inside": length // 2,
              "a PSN after it": length + 40, "a far PSN": 0x300000}
    same = [t for t in others if transport(t[0]) == transport(first[0])]
    for what, d in starts.items():
        for pause in (rng.choice([3, 60, -100]), 0.05, 0.4):
            at_once = 0 < pause < 1
            # In so short a time only this is told apart.
            if at_once and d not in (0, 0x300000):
                continue
            psn = rng.choice([0, 100, 0xfffff0])
            qpns = rng.choice([(0x11, 0x22), (0x11, 0x23), (0x12, 0x22)])
            lost = 0 if at_once else rng.choice([0, 0.1, 0.4])
            t = moved(first, HOSTS, (0x11, 0x22), (psn, psn + 1000), mc.START * SECOND)
            t += moved(rng.choice(same if at_once else others), HOSTS, qpns, (psn + d, psn + d + 1000),
                       t[-1].ts + int(pause * SECOND))
            yield f"{what}, after {pause} s, {lost * 100:.0f} % lost", [p for p in t if rng.random() >= lost]


def not_taken_for_one(program, name, first, others, folder):
    part = Path(folder) / "check_reused.pcap"
    for what, t in reused(random.Random(name), first, others):
        mv.save("reused", t, folder=Path(folder))
        found, _, text = check(program, part)
        if found:
            return [what, *text.splitlines()[:20]]
    return []


def found_behind(program, capture, want, folder):
    """Whether the rule is found when another connection had the QP numbers before."""
    broken = mv.load(capture.stem, folder=capture.parent)
    t = connected(broken)
    if not t:
        return []
    p = next((p for p in t if not p.answer()), t[0])
    back = next((q.qpn for q in t if q.src != p.src), p.qpn)
    name = {RC: "kernel-rxe-6.1/send_lat", UC: "kernel-rxe-6.1/send_lat_uc", XRC: mv.WRITES}[transport(p)]
    before = connected(mv.load(name))
    before = moved(before, (p.src, bytes(p.b[30:34])), (back, p.qpn), (p.psn - 5, 7), broken[0].ts - 60 * SECOND)
    for q in before:
        q.seal()
    mv.save("behind", before + broken, seal=False, folder=Path(folder))
    found, _, text = check(program, Path(folder) / "check_behind.pcap")
    return [] if found == want else [f"reported {found}", *text.splitlines()[:20]]


def main():
    program = sys.argv[1]
    severity = rules()
    captures = sorted((HERE / "captures").glob("check_*.pcap"))
    clean = sorted((HERE.parent / "data").glob("*/*.pcap"))
    single = dict(connections())
    broken = [c for c in captures if not c.stem.startswith("check_clean_")]
    t = tap.Tap(len(captures) + 2 * len(clean) + len(single) + len(broken) + 1)
    seen = set()
    for c in captures:
        rule = rule_of(c)
        if rule.startswith("CLEAN_"):
            t.result(c.stem, complaints(program, c, [], 0))
            continue
        seen.add(rule)
        t.result(c.stem, complaints(program, c, [rule], 1 if severity.get(rule) == "BROKEN" else 0))
    for c in clean:
        t.result(f"clean: {c.parent.name}/{c.name}", complaints(program, c, [], 0))
    with tempfile.TemporaryDirectory() as folder:
        for c in clean:
            t.result(f"with losses: {c.parent.name}/{c.name}", with_losses(program, c, folder))
        for name, first in single.items():
            t.result(f"its QPs are used again: {name}",
                     not_taken_for_one(program, name, first, list(single.values()), folder))
        for c in broken:
            t.result(f"behind another connection: {c.stem}", found_behind(program, c, [rule_of(c)], folder))
    t.result("every rule has a capture that breaks it", sorted(set(severity) - seen))
    return t.status()


if __name__ == "__main__":
    sys.exit(main())
