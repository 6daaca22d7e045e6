# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Test Anything Protocol, as Meson reads it: one line a test, a plan first, diagnostics behind '#'."""
import sys


class Tap:
    """Prints the plan of @count tests, then a line for each; status() is the program's exit status."""

    def __init__(self, count):
        self.done = self.failed = 0
        self._say(f"1..{count}" if count else "1..0 # SKIP nothing to do")

    @staticmethod
    def _say(line):
        print(line, flush=True)

    def note(self, text):
        """Diagnostics: shown when the test fails."""
        for line in text.splitlines():
            self._say("# " + line)

    def result(self, name, complaints):
        """@complaints: what is wrong, an empty list for a test that passed."""
        self.done += 1
        self.failed += bool(complaints)
        self._say(f"{'not ok' if complaints else 'ok'} {self.done} - {name}")
        for text in complaints:
            self.note(text)

    def skip(self, name, why):
        self.done += 1
        self._say(f"ok {self.done} - {name} # SKIP {why}")

    def status(self):
        return 1 if self.failed else 0


def skip_all(why):
    """The whole program has nothing to run here, and says why."""
    print(f"1..0 # SKIP {why}", flush=True)
    sys.exit(0)
