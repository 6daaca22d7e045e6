#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What a reviewer should not have to look for, as TAP: format, layers, headers, licences, commits, stray paths.

To mend the format: clang-format -i $(git ls-files '*.c' '*.h')
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "tests/tools")]
import layers  # noqa: E402
import tap  # noqa: E402

TOP = layers.TOP
CFLAGS = ("-std=gnu11 -fsyntax-only -Wall -Wextra -Wshadow -Wundef -Wstrict-prototypes -Wmissing-prototypes -Wvla "
          "-Wno-unused-parameter -Werror -D_GNU_SOURCE -DURCU_INLINE_SMALL_FUNCTIONS -I. -Iinclude -Irxe-xrc").split()
BINARY = (".pcap", ".png", ".gz")
NO_LICENCE_LINE = re.compile(r"(^|/)(LICENSE|\.clang-format|\.editorconfig|\.gitignore|\.gitkeep|TESTLIST)$|\.(md|build|txt|svg)$")


class Skip(Exception):
    pass


def git(*args):
    p = subprocess.run(["git", "-c", "safe.directory=*", *args], cwd=TOP, capture_output=True, text=True, check=False)
    if p.returncode:
        raise Skip("this is no Git checkout")
    return p.stdout


def text_of(path):
    return (TOP / path).read_text(encoding="utf-8", errors="replace")


def check_format():
    """the C sources are as clang-format leaves them"""
    if not shutil.which("clang-format"):
        raise Skip("clang-format is not installed")
    p = subprocess.run(["clang-format", "--dry-run", "-Werror", *layers.tracked("*.c", "*.h")], cwd=TOP,
                       capture_output=True, text=True, check=False)
    return sorted(set(re.findall(r"^([^:\s]+):\d+:\d+: error:", p.stderr, re.M))) or ([p.stderr] if p.returncode else [])


def check_layers():
    """folders include only what their layer may"""
    return layers.complaints()


def compile_alone(header):
    cc = shlex.split(os.environ.get("CC", "cc"))
    p = subprocess.run([*cc, *CFLAGS, "-x", "c", "-include", header, "/dev/null"], cwd=TOP, capture_output=True,
                       text=True, check=False)
    return [] if p.returncode == 0 else [f"{header}: {p.stderr[:500]}"]


def check_headers():
    """every header compiles alone"""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [text for found in pool.map(compile_alone, layers.tracked("*.h")) for text in found]


def check_licence():
    """every file names its licence in its first three lines"""
    return [path for path in layers.tracked("*") if not path.endswith(BINARY) and not NO_LICENCE_LINE.search(path)
            and "SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause" not in "\n".join(text_of(path).splitlines()[:3])]


def check_subjects():
    """commit subjects are 'area: what', in at most 100 characters, without a full stop"""
    subjects = git("log", "--no-merges", "--format=%h %s").splitlines()
    return [s for s in subjects if not re.match(r"[0-9a-f]+ [\w./, -]+: \S.{0,100}[^.]$", s)
            or len(s.partition(" ")[2]) > 100]


def check_paths():
    """no tracked file names a place of the machine on which it was written"""
    # This checkout's own first folder is one, unless every machine has it; so are homes.
    first = TOP.parts[1]
    places = [r"/home/[a-z]\w*/", r"/root/"]
    if first not in ("tmp", "usr", "var", "home", "root", "opt", "srv", "mnt", "src", "app"):
        places.append(rf"(?<![\w./$}}-])/{re.escape(first)}/")
    found = []
    for path in layers.tracked("*"):
        if path.endswith(BINARY) or path == "ci/style.py":
            continue
        for number, line in enumerate(text_of(path).splitlines(), 1):
            if re.search("|".join(places), line):
                found.append(f"{path}:{number}: {line.strip()[:100]}")
    return found


def check_whitespace():
    """no trailing blanks, no missing newline at the end of a file"""
    wrong = []
    for path in layers.tracked("*"):
        if path.endswith(BINARY):
            continue
        text = text_of(path)
        wrong += [f"{path}:{n}: trailing blank" for n, line in enumerate(text.split("\n"), 1) if line != line.rstrip(" \t")]
        if text and not text.endswith("\n"):
            wrong.append(f"{path}: no newline at the end")
    return wrong


def main():
    checks = [check_format, check_layers, check_headers, check_licence, check_subjects, check_paths, check_whitespace]
    t = tap.Tap(len(checks))
    for check in checks:
        try:
            t.result(check.__doc__, check())
        except Skip as why:
            t.skip(check.__doc__, why)
    return t.status()


if __name__ == "__main__":
    sys.exit(main())
