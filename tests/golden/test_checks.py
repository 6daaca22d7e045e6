#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
rxe-dissect --check finds each rule that is broken, that one alone, and nothing in clean traces: test_checks.py RXE-DISSECT

For each row of checks.def there is a capture check_TOKEN.pcap, made by make_violations.py, perhaps with more cases
behind two underscores. check_clean_* and all traces of the kernel's driver in tests/data break no rule: what was made
to go wrong there (err_*, viol*) went wrong by the rules. They still break none when packets are left out, as a capture
does that begins late or cannot keep up.
"""
import random
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import tap  # noqa: E402

REPORT = re.compile(r": packet \d+: ([A-Z0-9_]+): ")
TIMEOUT_S = 30


def rules():
    text = (HERE.parent.parent / "pcap-dissect/checks.def").read_text(encoding="utf-8")
    return dict(re.findall(r"^RULE\((\w+), (\w+),", text, re.M))


def check(program, capture):
    p = subprocess.run([program, "--check", capture], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return REPORT.findall(p.stdout), p.returncode, p.stdout + p.stderr


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


def main():
    program = sys.argv[1]
    severity = rules()
    captures = sorted((HERE / "captures").glob("check_*.pcap"))
    clean = sorted((HERE.parent / "data").glob("*/*.pcap"))
    t = tap.Tap(len(captures) + 2 * len(clean) + 1)
    seen = set()
    for c in captures:
        rule = c.stem[len("check_"):].partition("__")[0].upper()
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
    t.result("every rule has a capture that breaks it", sorted(set(severity) - seen))
    return t.status()


if __name__ == "__main__":
    sys.exit(main())
