#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A large capture: its end is reached, memory does not grow with it, progress is told: test_large.py RXE-DISSECT

The file is a trace of the kernel's driver, repeated. The program's memory is compared with what it takes for the
trace once.
"""
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "tools"))
import tap  # noqa: E402

TRACE = TESTS / "data/kernel-rxe-xrc/write_bw_5000.pcap"
HEADER = 24
SIZE = 80 << 20             # above 64 MiB progress is told
GROWTH_KIB = 4096
TIMEOUT_S = 120


def peak_kib(program, *args):
    """Exit status, lines printed, standard error, and the most memory that the program had."""
    script = ("import resource, subprocess, sys\n"
              "p = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)\n"
              "print(p.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    p = subprocess.run([sys.executable, "-c", script, program, *args], capture_output=True, text=True,
                       timeout=TIMEOUT_S, check=True)
    status, peak = p.stdout.split()
    return int(status), int(peak), p.stderr


def line_count(program, path):
    """Lines of the one-line output, counted as they come."""
    with subprocess.Popen([program, "-t", path], stdout=subprocess.PIPE) as p:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: p.stdout.read(1 << 20), b""))


def packets_of(trace):
    count, at = 0, HEADER
    while at < len(trace):
        at += 16 + int.from_bytes(trace[at + 8:at + 12], "little")
        count += 1
    return count


def check(program, folder):
    trace = TRACE.read_bytes()
    times = SIZE // (len(trace) - HEADER) + 1
    large = str(Path(folder) / "large.pcap")
    with open(large, "wb") as f:
        f.write(trace[:HEADER])
        for _ in range(times):
            f.write(trace[HEADER:])
    lines, packets = line_count(program, large), packets_of(trace) * times
    yield "every packet of a large file is shown", [] if lines == packets else [f"{lines} lines, {packets} packets"]

    _, small_peak, _ = peak_kib(program, str(TRACE))
    status, peak, err = peak_kib(program, "--progress", large)
    yield "memory does not grow with the file", (
        [] if peak < small_peak + GROWTH_KIB else [f"{peak} KiB, {small_peak} KiB for the trace once"])
    percents = [int(line.split()[-4]) for line in err.splitlines() if " %, " in line]
    told = len(percents) >= 9 and percents == sorted(set(percents)) and percents[-1] >= 90
    yield "progress is told", [] if status == 0 and told else [f"exit status {status}", err[:500]]
    _, _, err = peak_kib(program, "--progress", str(TRACE))
    yield "a small file has no progress", [err] if err else []


def main():
    program = str(Path(sys.argv[1]).resolve())
    t = tap.Tap(4)
    with tempfile.TemporaryDirectory() as folder:
        for name, complaints in check(program, folder):
            t.result(name, complaints)
    return t.status()


if __name__ == "__main__":
    sys.exit(main())
