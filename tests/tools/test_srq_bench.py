#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What bench/srq-bench refuses, before it measures anything: test_srq_bench.py SRQ_BENCH; speaks TAP."""
import subprocess
import sys

import tap

BAD = [("--repeat=x", "'x'"), ("--repeat=", "''"), ("--repeat=0", "'0'"), ("--repeat=-1", "'-1'"), ("--repeat=3x", "'3x'"),
       ("--repeat=1001", "'1001'"), ("--repeat=18446744073709551617", "'18446744073709551617'"), ("--repeat", "--repeat"),
       ("--fast", "--fast"), ("extra", "'extra'")]


def refuses(bench, argument, named):
    p = subprocess.run([bench, argument], capture_output=True, text=True, timeout=30, check=False)
    if p.returncode == 2 and not p.stdout and named in p.stderr and "usage: srq-bench" in p.stderr:
        return []
    return [f"status {p.returncode}", *p.stderr.splitlines()]


def main():
    t = tap.Tap(len(BAD))
    for argument, named in BAD:
        t.result(f"srq-bench {argument} is an error that names it", refuses(sys.argv[1], argument, named))
    return t.status()


if __name__ == "__main__":
    sys.exit(main())
