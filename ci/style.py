#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What a reviewer should not have to look for, as TAP: format, layers, headers, licences, commits, stray paths, and
documents that have fallen behind the code.

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
BINARY = re.compile(r"\.(pcap|png|gz)$|/corpus/")
NO_LICENCE_LINE = re.compile(r"(^|/)(LICENSE|\.clang-format|\.editorconfig|\.gitignore|\.gitkeep|TESTLIST)$|\.(md|build|txt|svg)$")


DOCUMENTS = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "docs/*.md", "docs/*.[1-9]"]
# In a path: stands for many, or is not in the source tree.
NO_FILE = re.compile(r"FILE|[*<]|^build")


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
    return [path for path in layers.tracked("*") if not BINARY.search(path) and not NO_LICENCE_LINE.search(path)
            and "SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause" not in "\n".join(text_of(path).splitlines()[:3])]


def check_subjects():
    """commit subjects are 'area: what', in at most 100 characters, without a full stop"""
    subjects = git("log", "--no-merges", "--format=%h %s").splitlines()
    return [s for s in subjects if not re.match(r"[0-9a-f]+ [\w./, -]+: \S.{0,100}[^.]$", s)
            or len(s.partition(" ")[2]) > 100]


def check_paths():
    """no tracked file names a place of the machine on which it was written"""
    # The home is one, and this checkout's own first folder, unless every machine has it.
    first = TOP.parts[1]
    places = [re.escape(str(Path.home())) + "/"]
    if first not in ("tmp", "usr", "var", "home", "root", "opt", "srv", "mnt", "src", "app"):
        places.append(rf"(?<![\w./$}}-])/{re.escape(first)}/")
    found = []
    for path in layers.tracked("*"):
        if BINARY.search(path) or path == "ci/style.py":
            continue
        for number, line in enumerate(text_of(path).splitlines(), 1):
            if re.search("|".join(places), line):
                found.append(f"{path}:{number}: {line.strip()[:100]}")
    return found


def check_whitespace():
    """no trailing blanks, no missing newline at the end of a file"""
    wrong = []
    for path in layers.tracked("*"):
        if BINARY.search(path):
            continue
        text = text_of(path)
        wrong += [f"{path}:{n}: trailing blank" for n, line in enumerate(text.split("\n"), 1) if line != line.rstrip(" \t")]
        if text and not text.endswith("\n"):
            wrong.append(f"{path}: no newline at the end")
    return wrong


def document(path):
    """The text of a document, without the backslashes that a manual page writes before hyphens."""
    return text_of(path).replace("\\-", "-")


def words_missing(words, paths):
    """Each of @words must stand in each of the documents @paths."""
    return [f"{path} does not name {word}" for path in paths for word in words
            if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", document(path))]


def found_some(names, where):
    """A check that finds nothing to look for would pass for ever."""
    return [] if names else [f"nothing was found in {where}: is this check still right?"]


def check_options():
    """every option of rxe-run --help is in README.md and its manual page"""
    options = re.findall(r'^\s*"  (--[a-z-]+)', text_of("rxe-xrc/run/rxe-run.c"), re.M)
    return found_some(options, "the text of --help") + words_missing(options, ["README.md", "docs/rxe-run.1"])


def check_variables():
    """every RXE_ variable is in README.md and the manual pages, and documents name no other"""
    known = re.findall(r'\{"(RXE_\w+)",', text_of("rxe-xrc/verbs/config.c"))
    wrong = found_some(known, "config.c") + words_missing(known, ["README.md", "docs/rxe-run.1", "docs/rxe-xrc.7"])
    for path in layers.tracked(*DOCUMENTS):
        wrong += [f"{path} names {word}, which is no variable"
                  for word in sorted(set(re.findall(r"\bRXE_[A-Z_]+", document(path))) - set(known))]
    return wrong


def check_counters():
    """counters have their names in base/stats.def alone, and documents name no drop reason that is not there"""
    rows = re.findall(r"^(STAT|DROP)\((\w+),", text_of("rxe-xrc/base/stats.def"), re.M)
    counts, drops = ({name for kind, name in rows if kind == which} for which in ("STAT", "DROP"))
    wrong = found_some(counts, "stats.def") + found_some(drops, "stats.def")
    for path in layers.tracked("*.c", "*.h"):
        if path.startswith(("rxe-xrc/", "srq/")) and not path.startswith("rxe-xrc/base/stats."):
            wrong += [f"{path} has the name of a counter, {literal}" for literal in re.findall(r'"[^"\n]*"', text_of(path))
                      if counts & set(re.findall(r"\w+", literal)) or '"drop.' in literal]
    for path in layers.tracked(*DOCUMENTS):
        wrong += [f"{path} names {name}, which is no reason"
                  for name in sorted(set(re.findall(r"\b(?:drop\.|DROP_)(\w+)", document(path))) - drops - {"name"})]
    return wrong


def check_suites():
    """the lists of suites in ci/test and CONTRIBUTING.md are Meson's"""
    lists = re.findall(r"suite: \[([^]]*)\]", "".join(map(text_of, layers.tracked("*meson.build"))))
    suites = set(re.findall(r"'(\w+)'", "".join(lists)))
    wrong = found_some(suites, "meson.build")
    for path in ("ci/test", "CONTRIBUTING.md"):
        named = re.search(r"one suite[^:]*: ([^(]*)", text_of(path))
        words = set(re.findall(r"\w+", named[1])) if named else set()
        wrong += [f"{path} does not name the suite {name}" for name in sorted(suites - words)]
    return wrong


def find_file(name, tracked):
    """The tracked file or folder that a document means: from the top, from where the compiler looks, or a program's source."""
    return next((p for p in (name, "rxe-xrc/" + name, name + ".c") if p in tracked), None)


def check_named_files():
    """files that documents name or link to exist"""
    files = layers.tracked("*")
    tracked = set(files) | {str(folder) for f in files for folder in Path(f).parents}
    # What begins with one of these is a path; other words with a slash are not looked at.
    roots = {f.split("/")[0] for f in files if "/" in f} | {f.split("/")[1] for f in files if f.startswith("rxe-xrc/")}
    wrong = []
    for path in (d for d in layers.tracked(*DOCUMENTS) if d.endswith(".md")):
        names = {n.rstrip("/.") for n in re.findall(r"(?<![\w/.-])((?:[\w.-]+/)+[\w.*<-]*)", document(path))}
        wrong += [f"{path} names {name}, which does not exist" for name in sorted(names)
                  if name.split("/")[0] in roots and not NO_FILE.search(name) and not find_file(name, tracked)]
        wrong += [f"{path} links to {link}, which does not exist" for link in re.findall(r"\]\(([^):#]+)\)", document(path))
                  if os.path.normpath(Path(path).parent / link) not in tracked]
    return wrong


def check_named_functions():
    """functions that ARCHITECTURE.md names exist, in the file it says"""
    text = text_of("ARCHITECTURE.md")
    sources = {f: text_of(f) for f in layers.tracked("*.c", "*.h")}
    placed = re.findall(r"`([\w/.-]+): (\w+)\(\)`", text)
    wrong = found_some(placed, "ARCHITECTURE.md")
    wrong += [f"{name}() is not in {path}" for path, name in placed
              if f"{name}(" not in sources.get(find_file(path, sources), "")]
    wrong += [f"there is no {name}()" for name in sorted(set(re.findall(r"\b(\w+)\(\)", text)))
              if not any(re.search(rf"\b{name}\b", source) for source in sources.values())]
    return wrong


def main():
    checks = [check_format, check_layers, check_headers, check_licence, check_subjects, check_paths, check_whitespace,
              check_options, check_variables, check_counters, check_suites, check_named_files, check_named_functions]
    t = tap.Tap(len(checks))
    for check in checks:
        try:
            t.result(check.__doc__, check())
        except Skip as why:
            t.skip(check.__doc__, why)
    return t.status()


if __name__ == "__main__":
    sys.exit(main())
