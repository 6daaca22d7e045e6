#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The command line of rxe-dissect, where a row of TESTLIST cannot say it: pipes, odd names, all pairs of options:
test_cli.py RXE-DISSECT
"""
import itertools
import json
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


def odd_files(folder):
    """Captures whose names are no text, and an option that is none: as bytes."""
    for name in (b"esc\x1b]0;x\x07.pcap", b"latin\xe9.pcap", b"c1\xc2\x9b2J.pcap", b"quote\"\\.pcap", b"new\nline.pcap",
                 "good \u20ac.pcap".encode(), b"long" + b"\xff" * 240 + b".pcap"):
        path = os.path.join(os.fsencode(folder), name)
        Path(os.fsdecode(path)).write_bytes(CAPTURE.read_bytes())
        yield name


def raw_bytes(text):
    """Bytes that a terminal may obey, or that are not UTF-8."""
    return sorted({c for c in text if (ord(c) < 0x20 and c != "\n") or 0x7f <= ord(c) < 0xa0 or 0xdc80 <= ord(c) <= 0xdcff})


def test_names(program, folder):
    names = list(odd_files(folder))
    wrong = []
    for args in ([], ["--json"], ["-V"], ["--flows"], ["--check"], ["--follow", "1"], ["--follow", "0x123456"],
                 ["--progress"], ["-f", "nonsense\x1b"], ["--flows", "--json"]):
        # Those that are not there are named too.
        for files in (names, [b"no" + n for n in names], names[:1]):
            r = Run(program, *args, *files, cwd=folder)
            if raw_bytes(r.out + r.err):
                wrong.append(f"{args}: {raw_bytes(r.out + r.err)!a}")
    for arg in ("-\x1b", "--\x1b", b"-\xff", "--json=\x1b", "--follow=\x1b", "-c\x1b", "-i\x1b", "-i\x1b\x1b"):
        r = Run(program, arg, CAPTURE)
        if raw_bytes(r.out + r.err) or r.status != 2 or not r.err:
            wrong.append(f"{arg!a}: exit status {r.status}, {r.err!a}")
    return wrong


def test_json_names(program, folder):
    names = list(odd_files(folder))
    r = Run(program, "--json", *names, cwd=folder)
    wrong = r.complaints(0)
    got = list(dict.fromkeys(json.loads(line)["file"] for line in r.raw_out.decode("utf-8").splitlines()))
    want = [n.decode("utf-8", "surrogateescape") for n in names]
    want = ["".join("\ufffd" if 0xdc80 <= ord(c) <= 0xdcff else c for c in n) for n in want]
    return wrong + ([] if got == want else [ascii(want), ascii(got)])


def test_options(program, folder):
    """What getopt would have said."""
    tail = "Try 'rxe-dissect --help'."
    return [text for args, why in {
        ("-?",): "invalid option -- '?'", ("-i",): "option requires an argument -- 'i'", ("--f", "1"): "ambiguous option '--f'",
        ("--follow",): "option '--follow' requires an argument", ("--json=1",): "option '--json=1' takes no argument",
        ("--nonsense",): "unrecognized option '--nonsense'", ("--nonsense=x",): "unrecognized option '--nonsense=x'",
    }.items() for text in Run(program, *args).complaints(2, f"rxe-dissect: {why}", tail)]


# Which options may stand beside each other: what is printed for whom.
MODES = {"-V": [], "--json": [], "--flows": [], "--follow": ["1"], "--check": []}
TOGETHER = [{"--json", "--flows"}, {"--follow", "-V"}, {"--follow", "--json"}]


def test_pairs(program, folder):
    """Every pair in both orders: it does what both say, or is refused by both names."""
    wrong = []
    for a, b in itertools.permutations(MODES, 2):
        r = Run(program, a, *MODES[a], b, *MODES[b], CAPTURE)
        refused = r.status == 2 and "do not go together" in r.err
        if refused == ({a, b} in TOGETHER) or (refused and (a not in r.err or b not in r.err or r.out)):
            wrong.append(f"{a} {b}: exit status {r.status}, {r.err!a}")
    tail = "Try 'rxe-dissect --help'."
    wrong += Run(program, "-i", "lo", "-i", "lo").complaints(2, "rxe-dissect: -i is given twice", tail)
    wrong += Run(program, "--follow", "1", "--follow", "2").complaints(2, "rxe-dissect: --follow is given twice", tail)
    return wrong


TESTS = {
    "--follow needs regular files, and does not wait for others": test_follow_pipe,
    "what can be read only once is not given twice": test_twice,
    "no name reaches a terminal with what it may obey": test_names,
    "names in JSON are UTF-8, whatever their bytes": test_json_names,
    "options that do not exist": test_options,
    "every pair of ways to print": test_pairs,
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
