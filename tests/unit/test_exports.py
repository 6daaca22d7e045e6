#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every public function of the installed libibverbs is exported by the preload library.

usage: test_exports.py librxe-verbs.so [libibverbs.so.1]; prints TAP.

A function that is not there would reach the real library with one of our objects, and crash. Checked are the default
versions (@@) of the nodes IBVERBS_1.x, ibv_query_gid_type of the private node (ibv_devinfo and pyverbs use
it), and what later releases than Debian 12's add. Nothing of our own may be visible beside them and the
C library's functions that are interposed; and nothing may carry a symbol version.
"""
import re
import subprocess
import sys

LATER = ("ibv_alloc_dmah", "ibv_dealloc_dmah", "ibv_reg_mr_ex", "ibv_dm_export_dmabuf_fd",
         "ibv_query_port_speed", "ibv_alloc_buf", "ibv_free_buf", "ibv_reg_buf_mr")


def symbols(library):
    """(name, version or "") of each function that the library defines."""
    out = subprocess.run(["readelf", "--wide", "--dyn-syms", library], check=True,
                         capture_output=True, text=True).stdout
    found = []
    for line in out.splitlines():
        f = line.split()
        if len(f) >= 8 and f[3] in ("FUNC", "IFUNC") and f[4] in ("GLOBAL", "WEAK") and f[6] != "UND":
            name, _, version = f[7].partition("@")
            found.append((name, version))
    return found


def path_of(soname):
    """Where the loader finds a library."""
    for line in subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True,
                               text=True).stdout.splitlines():
        m = re.match(r"\s+(\S+) .*=> (\S+)$", line)
        if m and m.group(1) == soname:
            return m.group(2)
    sys.exit(f"{soname} is not installed")


def main():
    ours = symbols(sys.argv[1])
    real = sys.argv[2] if len(sys.argv) > 2 else path_of("libibverbs.so.1")
    names = {name for name, _ in ours}
    public = {n for n, v in symbols(real) if re.match(r"@IBVERBS_1\.", v)}
    wanted = sorted(public | {"ibv_query_gid_type"} | set(LATER))
    libc = {n for n, _ in symbols(path_of("libc.so.6"))}
    results = [(n in names, f"{n} is exported") for n in wanted]
    results.append((len(public) >= 75, "libibverbs has the public functions that it had in release 44"))
    extra = sorted(n for n in names if n not in wanted and n not in libc)
    results.append((not extra, "nothing else is visible: " + " ".join(extra)))
    versioned = sorted(n for n, v in ours if v)
    results.append((not versioned, "no symbol has a version: " + " ".join(versioned)))
    print(f"1..{len(results)}")
    for i, (ok, text) in enumerate(results, 1):
        print("ok" if ok else "not ok", i, "-", text)
    return 0 if all(ok for ok, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
