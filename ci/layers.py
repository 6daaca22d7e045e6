#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Which folder may include which: layers.py prints every #include of ours that the layers forbid.

A row of the table names a folder, or one file that may more than its folder, and the folders, or single headers, that it
may include beside itself.
The engine knows links only as struct link_ops, so of net/ it may see that header alone; the dissector may see
the bytes but nothing of the engine, so that it can judge it.
"""
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
ROOTS = ("", "include/", "rxe-xrc/")    # where the compiler looks

MAY_INCLUDE = {
    "include/rxe": [],
    "rxe-xrc/base": [],
    "rxe-xrc/wire": ["rxe-xrc/base"],
    "srq": ["rxe-xrc/base"],
    "rxe-xrc/engine": ["rxe-xrc/base", "rxe-xrc/wire", "srq", "rxe-xrc/net/link.h"],
    "rxe-xrc/net": ["rxe-xrc/base", "rxe-xrc/wire"],
    "rxe-xrc/node": ["rxe-xrc/base", "rxe-xrc/engine/foreign.h", "rxe-xrc/engine/limits.h"],
    "cm": ["rxe-xrc/base", "rxe-xrc/wire", "rxe-xrc/node", "rxe-xrc/engine/gsi.h", "include/rxe"],
    # The face puts the parts together, so it also makes the links.
    "rxe-xrc/verbs": ["rxe-xrc/base", "rxe-xrc/engine", "srq", "rxe-xrc/node", "cm", "rxe-xrc/net", "rxe-xrc/wire/ip.h",
                      "include/rxe"],
    # The launcher shares the parser of the settings with the library that it starts.
    "rxe-xrc/run": ["rxe-xrc/base", "rxe-xrc/verbs/config.h", "rxe-xrc/verbs/netdev.h", "rxe-xrc/net/fault.h"],
    "bench": ["include/rxe"],
    # It compares the receive queue with others, which cannot be done from outside of the device. A row may name a file.
    "bench/srq_bench.c": ["srq", "bench"],
    "pcap-dissect": ["include/rxe", "rxe-xrc/wire", "rxe-xrc/base"],
}


def tracked(*patterns):
    """Tracked files by Git's patterns; everything on disk where this is no Git checkout."""
    p = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "--", *patterns],
                       cwd=TOP, capture_output=True, text=True, check=False)
    if p.returncode == 0:
        return [f for f in p.stdout.splitlines() if (TOP / f).is_file()]
    return [str(f.relative_to(TOP)) for pattern in patterns for f in TOP.rglob(pattern)
            if not str(f.relative_to(TOP)).startswith("build")]


def resolve(includer, name):
    """The file of ours that `#include "name"` means, or None."""
    places = [str(Path(includer).parent / name)] + [root + name for root in ROOTS]
    return next((p for p in places if (TOP / p).is_file()), None)


def folder_of(path):
    """The longest row of the table that is @path or holds it."""
    return max((f for f in MAY_INCLUDE if path == f or path.startswith(f + "/")), key=len, default=None)


def complaints():
    wrong = []
    for path in tracked("*.c", "*.h", "*.def"):
        folder = folder_of(path)
        if path.startswith("tests/"):
            continue
        if folder is None:
            wrong.append(f"{path}: its folder is in no layer")
            continue
        text = (TOP / path).read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            m = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            target = m and resolve(path, m.group(1))
            if m and not target:
                wrong.append(f"{path}:{number}: there is no {m.group(1)}")
            elif m and not any(target.startswith(a + "/") or target == a for a in [folder, *MAY_INCLUDE[folder]]):
                wrong.append(f"{path}:{number}: {folder} may not include {target}")
    return wrong


if __name__ == "__main__":
    found = complaints()
    print("\n".join(found))
    sys.exit(1 if found else 0)
