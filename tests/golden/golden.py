#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Compare what rxe-dissect prints with what it should, byte by byte: golden.py [--update] RXE-DISSECT [NAME]...

Each row of TESTLIST is a test: its name, a capture below tests/ (or - for none), and the flags. What is compared is
expected/NAME.txt: standard output, then standard error behind a line "--- standard error", then a line
"--- exit status N" unless it is 0.

--update writes the expected files anew, of the rows that are named or of all. Read the difference before it is
committed: it is the specification of the output.
"""
import difflib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path.insert(0, str(TESTS / "tools"))
import tap  # noqa: E402

TIMEOUT_S = 30


def rows():
    for line in (HERE / "TESTLIST").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words and not words[0].startswith("#"):
            name, capture, *flags = words
            yield name, [] if capture == "-" else [capture], flags


def printed(program, capture, flags):
    """What the program prints, in the form of an expected file."""
    p = subprocess.run([program, *flags, *capture], cwd=TESTS, stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=TIMEOUT_S, check=False, env={**os.environ, "TZ": "UTC", "LC_ALL": "C"})
    out = p.stdout.decode("utf-8", "backslashreplace")
    if p.stderr:
        out += "--- standard error\n" + p.stderr.decode("utf-8", "backslashreplace")
    if p.returncode:
        out += f"--- exit status {p.returncode}\n"
    return out


def expected_file(name):
    return HERE / "expected" / f"{name}.txt"


def complaints(name, got):
    path = expected_file(name)
    if not path.is_file():
        return [f"{path.name} is missing: golden.py --update RXE-DISSECT {name}"]
    # Not read_text(): it would take one newline for another.
    want = path.read_bytes().decode("utf-8")
    if got == want:
        return []
    diff = list(difflib.unified_diff(want.splitlines(), got.splitlines(), "expected", "printed", lineterm="", n=1))
    return diff[:40] or ["they differ in the end of a line"]


def main():
    args = sys.argv[1:]
    update = "--update" in args
    program, *names = [a for a in args if a != "--update"]
    program = str(Path(program).resolve())
    tests = [row for row in rows() if not names or row[0] in names]
    left_over = {p.stem for p in (HERE / "expected").glob("*.txt")} - {row[0] for row in rows()}
    if update:
        (HERE / "expected").mkdir(exist_ok=True)
        for name, capture, flags in tests:
            expected_file(name).write_bytes(printed(program, capture, flags).encode())
        return 0
    t = tap.Tap(len(tests) + 1)
    for name, capture, flags in tests:
        t.result(name, complaints(name, printed(program, capture, flags)))
    t.result("every expected file has a row in TESTLIST", sorted(left_over))
    return t.status()


if __name__ == "__main__":
    sys.exit(main())
