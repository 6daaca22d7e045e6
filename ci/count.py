#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Count the single test cases of `meson test` runs: count.py (LOG-FOLDER EXIT-STATUS-OF-MESON)...

The JUnit log holds every TAP line of every program. A program that died or ran out of time without a failed
line of its own is one more failed case (the JSON log knows it). Prints what failed with its diagnostics, which
Meson keeps to itself when a test speaks TAP, then the line "N passed, N failed, N skipped" over all runs. Exit
status 0 only if nothing failed, something passed in each, and Meson agrees.
"""
import json
import sys
import xml.etree.ElementTree
from pathlib import Path

BAD = {"FAIL", "TIMEOUT", "INTERRUPT", "ERROR", "UNEXPECTEDPASS"}


def cases(junit):
    """(program, case, 'passed' or 'failed' or 'skipped') of each test case."""
    for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        # A program with many cases is the class name's last part; one without is the case's own name.
        program = case.get("classname", "").partition(".")[2] or case.get("name")
        yield program, case.get("name"), outcome


def diagnostics(output):
    """The failed lines of a program's TAP, each with what it said before the next line of a test."""
    lines, keep = [], False
    for line in output.splitlines():
        if line.startswith(("ok", "not ok")):
            keep = line.startswith("not ok")
        if keep:
            lines.append(line)
    return lines


def count_run(logs, total):
    """Add the run in @logs to @total and print what failed in it. Whether something passed."""
    count, failed = {"passed": 0, "failed": 0, "skipped": 0}, []
    try:
        for program, name, outcome in cases(logs / "testlog.junit.xml"):
            count[outcome] += 1
            if outcome == "failed":
                failed.append((program, name))
        with open(logs / "testlog.json", encoding="utf-8") as f:
            results = [json.loads(line) for line in f]
    except (OSError, xml.etree.ElementTree.ParseError) as e:
        print(f"ci/count.py: the log of the test run is missing or broken: {e}")
        total["failed"] += 1
        return False
    for r in results:
        if r["result"] in BAD and r["name"] not in {program for program, _ in failed}:
            count["failed"] += 1
            failed.append((r["name"], f"the program itself ({r['result']}, status {r.get('returncode')})"))
    for r in results:
        if r["result"] in BAD:
            print("\n".join([f"--- {r['name']}", *diagnostics(r.get("stdout", "")), ""]))
    for program, name in failed:
        print(f"failed in {logs.parent.name}: {program}: {name}")
    for outcome in total:
        total[outcome] += count[outcome]
    return count["passed"] > 0


def main():
    total, good = {"passed": 0, "failed": 0, "skipped": 0}, True
    for logs, status in zip(sys.argv[1::2], sys.argv[2::2]):
        good &= count_run(Path(logs), total) and int(status) == 0
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 0 if good and not total["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
