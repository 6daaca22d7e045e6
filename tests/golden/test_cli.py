#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The command line of rxe-dissect, where a row of TESTLIST cannot say it: pipes, odd names, all pairs of options:
test_cli.py RXE-DISSECT
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import tap  # noqa: E402

TIMEOUT_S = 20
CAPTURE = HERE / "captures/nano.pcap"


class Run:
    """What a run printed, as text whose odd bytes are kept, and its exit status; None when it hung."""

    def __init__(self, program, *args, cwd=None, stdin=b""):
        try:
            p = subprocess.run([program, *args], cwd=cwd, input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False)
            out, err, self.status = p.stdout, p.stderr, p.returncode
        except subprocess.TimeoutExpired as e:
            out, err, self.status = e.stdout or b"", e.stderr or b"", None
        self.raw_out, self.raw_err = out, err
        self.out, self.err = out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape")

    def complaints(self, status, *errors):
        """What is not as it should be: the exit status, and the lines on standard error."""
        wrong = [] if self.status == status else [f"exit status {self.status}, not {status}"]
        if self.err.splitlines() != list(errors):
            wrong += ["standard error should be:", *map(ascii, errors), "and is:", *map(ascii, self.err.splitlines())]
        return wrong


def test_follow_pipe(program, folder):
    os.mkfifo(folder / "pipe")
    why = "rxe-dissect: pipe: --follow reads twice, it needs a regular file"
    wrong = Run(program, "--follow", "1", "pipe", cwd=folder).complaints(2, why)
    # The other file is read all the same.
    r = Run(program, "--follow", "0x123456", "pipe", CAPTURE, cwd=folder)
    wrong += r.complaints(2, why)
    if "qp 0x123456" not in r.out:
        wrong.append("the file behind the pipe was not read")
    # Standard input by another name, where it is a pipe.
    wrong += Run(program, "--follow", "1", "/dev/stdin", stdin=CAPTURE.read_bytes()).complaints(
        2, why.replace("pipe", "/dev/stdin"))
    return wrong


def test_twice(program, folder):
    capture = CAPTURE.read_bytes()
    once = "rxe-dissect: {}: can be read only once"
    os.mkfifo(folder / "twice")
    wrong = Run(program, "-", "-", stdin=capture).complaints(2, once.format("standard input"))
    wrong += Run(program, "--check", "-r", "-", "-", stdin=capture).complaints(2, once.format("standard input"))
    wrong += Run(program, "-", "/dev/stdin", stdin=capture).complaints(2, once.format("/dev/stdin"))
    wrong += Run(program, "twice", "./twice", cwd=folder).complaints(2, once.format("./twice"))
    # A file can, and a pipe once.
    wrong += Run(program, CAPTURE, CAPTURE).complaints(0)
    wrong += Run(program, CAPTURE, "-", stdin=capture).complaints(0)
    return wrong


TESTS = {
    "--follow needs regular files, and does not wait for others": test_follow_pipe,
    "what can be read only once is not given twice": test_twice,
}


def main():
    program = str(Path(sys.argv[1]).resolve())
    t = tap.Tap(len(TESTS))
    with tempfile.TemporaryDirectory() as folder:
        for name, test in TESTS.items():
            t.result(name, test(program, Path(folder)))
    return t.status()


if __name__ == "__main__":
    sys.exit(main())
