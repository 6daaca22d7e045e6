#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
rxe-dissect -i: packets of an interface as they come, in a network namespace of the test's own: test_live.py RXE-DISSECT

Frames are put on lo as they are, also with VLAN tags, by a packet socket. What must not be shown is sent first, so
that it would be seen before what must.
"""
import os
import signal
import socket
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]
import make_captures as make  # noqa: E402
import proc  # noqa: E402
import tap  # noqa: E402

TIMEOUT_S = 20
A, B = "127.0.0.1", "127.0.0.2"


def transport(text, src=A, **more):
    return make.roce(make.bth(0xa4, text, make.XRCETH), src=src, dst=B, **more)


def start(program, *args):
    p = proc.Proc([program, "-i", "lo", "-t", *args], TIMEOUT_S)
    return p, proc.until(lambda: "listening on lo" in p.text() or not p.running(), TIMEOUT_S)


def send(frames):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind(("lo", 0))
        for frame in frames:
            s.send(frame)


def lines(p):
    return [line for line in p.text().splitlines() if line.startswith("IP")]


def shown(p, parts):
    """What is wrong with the lines that @p printed: each must hold its part, in this order, and no other."""
    got = lines(p)
    if len(got) == len(parts) and all(part in line for part, line in zip(parts, got)):
        return []
    return ["expected: " + "; ".join(parts), *p.text().splitlines()]


def finish(p, want):
    status = p.wait()
    return [] if status == want else [f"exit status {status}, not {want}", p.text()]


def test_count(program):
    p, _ = start(program, "-c", "3")
    send([make.ether(make.ip4(make.udp(b"other port", dport=4790), src=A, dst=B)),
          make.ether(transport(b"1")),
          make.ether(transport(b"22"), [(0x8100, 5)]),
          make.ether(make.roce(make.bth(0xa4, b"333", make.XRCETH), make.ip6, src="::1", dst="::1"))])
    wrong = finish(p, 0)
    return wrong + shown(p, ["length 1, icrc ok", "length 2, icrc ok", "length 3, icrc ok"])


def test_filter(program):
    p, _ = start(program, "-c", "2", "-f", "src host 127.0.0.3 or port 50000")
    send([make.ether(transport(b"1")), make.ether(transport(b"22", src="127.0.0.3")), make.ether(transport(b"4444")),
          make.ether(transport(b"333", udp_args={"sport": 50000}))])
    wrong = finish(p, 0)
    return wrong + shown(p, ["length 2, icrc ok", "length 3, icrc ok"])


def test_snaplen(program):
    """What tcpdump's users type, all in one: 62 bytes are up to the end of the XRCETH and a little more."""
    p, _ = start(program, "-nn", "-l", "-p", "-e", "-s", "62", "-c", "1")
    send([make.ether(transport(b"333"))])
    wrong = finish(p, 0)
    got = [line for line in p.text().splitlines() if "XRC" in line]
    if len(got) != 1 or "02:00:00:00:00:a0 > 02:00:00:00:00:b0, ethertype IPv4 (0x0800), length 66: IP" not in got[0] or not \
            got[0].endswith("length 3 [snapped]"):
        wrong += ["not as expected:", p.text()]
    return wrong


def test_signal(program):
    p, _ = start(program)
    send([make.ether(transport(b"1"))])
    # The packet is shown before the program ends: nothing waits in a buffer.
    if not proc.until(lambda: lines(p), TIMEOUT_S):
        return ["the packet was not shown", p.text()]
    p.popen.send_signal(signal.SIGINT)
    wrong = finish(p, 0)
    if "1 packets shown" not in p.text():
        wrong.append("no summary: " + p.text())
    return wrong


def test_trouble(program):
    p = proc.Proc([program, "-i", "nosuch0"], TIMEOUT_S)
    wrong = finish(p, 2)
    # Once, though libpcap has it from two functions.
    if p.text() != "rxe-dissect: nosuch0: No such device exists\n":
        wrong.append("not the interface and the reason: " + p.text())
    p = proc.Proc(["setpriv", "--bounding-set=-net_raw,-net_admin", "--inh-caps=-net_raw,-net_admin", program, "-i", "lo"],
                  TIMEOUT_S)
    wrong += finish(p, 2)
    reason = p.text().removeprefix("rxe-dissect: lo: ").strip()
    if reason == p.text().strip() or any(p.text().count(part) > 1 for part in reason.split(": ")):
        wrong.append("not the interface and the reason, once: " + p.text())
    p, _ = start(program, "-f", "nonsense")
    wrong += finish(p, 2)
    if "rxe-dissect: nonsense: " not in p.text():
        wrong.append("the filter is not named: " + p.text())
    return wrong


TESTS = {
    "packets of port 4791, with VLAN tags and in IPv6, until -c": test_count,
    "the user's filter": test_filter,
    "-e, and a snap length": test_snaplen,
    "packets are shown at once; SIGINT ends with a summary": test_signal,
    "an interface and a filter that do not exist": test_trouble,
}


def main():
    if os.geteuid() or not proc.own_network():
        tap.skip_all("needs root for a network namespace and for capturing")
    program = str(Path(sys.argv[1]).resolve())
    t = tap.Tap(len(TESTS))
    for name, test in TESTS.items():
        t.result(name, test(program))
    return t.status()


if __name__ == "__main__":
    sys.exit(main())
