# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The table of stock programs: what is run at both ends, and what each end has to print.

A row is a Case in one of the groups below. The command is that of the server; a client has the same and the
server's address behind it. Ports and addresses are the runner's (stock.py).
"""
import re
from dataclasses import dataclass, field

# The whole of perftest's -a: 2 bytes to 8 MiB.
ALL_SIZES = [2 << i for i in range(23)]
# No run that is fine prints one of these.
BAD = re.compile(r"Failed|failed|Couldn't(?! create the file for the XRC Domain but not stopping)|Completion with error|"
                 r"Completion error|invalid data|Unexpected|unexpected|parse error|rxe-xrc: error")


@dataclass(frozen=True)
class Case:
    """One run of a server and its clients."""
    name: str
    command: str
    check: object               # (output, is_server) -> list of complaints
    clients: int = 1
    timeout: int = 30           # seconds for the slowest end
    network: str = "v4"         # "v6" needs addresses that only a network of its own has
    refused: bool = False       # the programs must fail, and check() sees how
    user: str = ""              # run as this user; needs root
    server_only: str = ""       # arguments that only the server gets
    options: str = ""           # of the launcher, at both ends
    excuse: str = ""            # a failure with these words is the program's own; run it again, up to five times


@dataclass
class Group:
    """Cases of one Meson test."""
    title: str
    cases: list = field(default_factory=list)

    def add(self, name, command, check, **kw):
        self.cases.append(Case(name, command, check, **kw))


def wants(*texts):
    """Every one of @texts is in the output."""
    return lambda out, server: [f"'{t}' is missing" for t in texts if t not in out]


def pingpong(size, iters):
    """What rc, uc, ud and srq pingpong print at both ends: bytes of both ways, and iterations."""
    return wants(f"{size * iters * 2} bytes in ", f"{iters} iters in ")


def table(sizes, iters, server=True):
    """perftest's table: one row for each of @sizes with @iters iterations, at the client, and at a @server that prints it."""
    def check(out, is_server):
        if is_server and not server:
            return []
        rows = [line.split() for line in out.splitlines() if re.match(r"\s*\d+\s+\d+\s+[\d.]+", line)]
        got = [(int(r[0]), int(r[1])) for r in rows]
        want = [(s, iters) for s in sizes]
        return [] if got == want else [f"rows (bytes, iterations) are {got}, not {want}"]
    return check


def sizes_around(mtu):
    return [1, mtu - 1, mtu, mtu + 1, 65536]


def pingpongs(group, tail, extra=""):
    """Every pingpong of libibverbs at every size, with @extra arguments; @tail of the names."""
    n = 200
    for size in [0] + sizes_around(1024):
        group.add(f"rc, {size} bytes{tail}", f"ibv_rc_pingpong -g 0 -c -m 1024 -n {n} -s {size}{extra}", pingpong(size, n))
        group.add(f"uc, {size} bytes{tail}", f"ibv_uc_pingpong -g 0 -c -m 1024 -n {n} -s {size}{extra}", pingpong(size, n))
        group.add(f"xsrq, {size} bytes{tail}", f"ibv_xsrq_pingpong -g 0 -m 1024 -n {n} -s {size}{extra}", wants("success"))
    for size in sizes_around(1024):
        group.add(f"srq, {size} bytes{tail}", f"ibv_srq_pingpong -g 0 -c -m 1024 -n {n} -s {size}{extra}", pingpong(size, n))
    for size in [1, 4095, 4096]:
        group.add(f"ud, {size} bytes{tail}", f"ibv_ud_pingpong -g 0 -c -n {n} -s {size}{extra}", pingpong(size, n))


def several_clients(group, extra, n):
    """
    Several clients of one XRC server, each a process with an address of its own. From its second message to a client
    on, the program reaches that client's SRQ through the queue pair of another client.
    """
    for clients, args in ((2, ""), (2, " -s 1"), (2, " -m 1024 -s 1025"), (2, " -s 65536"), (4, "")):
        group.add(f"xsrq, {clients} clients{args}{extra}", f"ibv_xsrq_pingpong -g 0 -n {n}{args}{extra}",
                  wants("success"), clients=clients, server_only=f" -c {clients}")


def group_pingpong():
    """ibv_*_pingpong, polling."""
    g = Group("pingpong")
    n = 200
    pingpongs(g, "")
    for args in ("-t", "-N", "-t -N"):
        for size in [0] + sizes_around(1024):
            g.add(f"rc {args}, {size} bytes", f"ibv_rc_pingpong -g 0 -c -n {n} -s {size} {args}", pingpong(size, n))
    for mtu in (256, 2048, 4096):
        for size in (mtu - 1, mtu, mtu + 1, 65536):
            g.add(f"rc, path MTU {mtu}, {size} bytes", f"ibv_rc_pingpong -g 0 -c -m {mtu} -n {n} -s {size}", pingpong(size, n))
            g.add(f"xsrq, path MTU {mtu}, {size} bytes", f"ibv_xsrq_pingpong -g 0 -m {mtu} -n {n} -s {size}", wants("success"))
    several_clients(g, "", 50)
    g.add("ud, one byte above the MTU is refused", "ibv_ud_pingpong -g 0 -s 4097",
          wants("Requested size larger than port MTU"), refused=True, clients=0)
    g.add("rc over IPv6", "ibv_rc_pingpong -g 0 -c -n 200 -s 5000", pingpong(5000, n), network="v6")
    g.add("xsrq over IPv6", "ibv_xsrq_pingpong -g 0 -n 200 -s 5000", wants("success"), network="v6")
    g.add("ud over IPv6", "ibv_ud_pingpong -g 0 -c -n 200 -s 1000", pingpong(1000, n), network="v6")
    g.add("xsrq as a normal user", "ibv_xsrq_pingpong -g 0 -n 200", wants("success"), user="nobody")
    return g


def group_events():
    """Everything that sleeps on completion events."""
    g = Group("events")
    pingpongs(g, ", events", " -e")
    for args in ("-t -e", "-N -e", "-t -N -e"):
        # With -t the program takes a second completion with ibv_next_poll(); the event that this one raised, after
        # the queue was armed, then finds an empty queue, and ibv_start_poll()'s ENOENT ends the program.
        g.add(f"rc {args}", f"ibv_rc_pingpong -g 0 -c -n 200 {args}", pingpong(4096, 200),
              timeout=5, excuse="poll CQ failed 2" if "-t" in args else "")
    several_clients(g, " -e", 200)
    for c in ("RC", "XRC", "UC", "UD"):
        g.add(f"ib_send_lat -c {c} -e", f"ib_send_lat -F -c {c} -e -n 200 -s 64", table([64], 200))
        g.add(f"ib_send_bw -c {c} -e", f"ib_send_bw -F -c {c} -e -n 20 -s 4096", table([4096], 20))
    for c in ("RC", "XRC"):
        g.add(f"ib_read_lat -c {c} -e", f"ib_read_lat -F -c {c} -e -n 200 -s 64", table([64], 200, False))
        g.add(f"ib_read_bw -c {c} -e", f"ib_read_bw -F -c {c} -e -n 200", table([65536], 200, False))
        g.add(f"ib_atomic_lat -c {c} -e", f"ib_atomic_lat -F -c {c} -e -n 200", table([8], 200, False))
        g.add(f"ib_atomic_bw -c {c} -e", f"ib_atomic_bw -F -c {c} -e -n 200", table([8], 200, False))
    return g


def group_perftest_lat():
    """perftest's latency programs. ib_write_lat spins on memory, without a call that could make progress."""
    g = Group("perftest-lat")
    for c in ("RC", "XRC", "UC", "UD"):
        g.add(f"ib_send_lat -c {c}", f"ib_send_lat -F -c {c} -n 1000", table([2], 1000))
        g.add(f"ib_send_lat -c {c} -s 2048", f"ib_send_lat -F -c {c} -n 500 -s 2048", table([2048], 500))
    for c in ("RC", "XRC", "UC"):
        g.add(f"ib_write_lat -c {c}", f"ib_write_lat -F -c {c} -n 1000", table([2], 1000))
        g.add(f"ib_write_lat -c {c} -s 20000", f"ib_write_lat -F -c {c} -n 200 -s 20000", table([20000], 200))
    for c in ("RC", "XRC"):
        for size in (2, 65536):
            g.add(f"ib_read_lat -c {c} -s {size}", f"ib_read_lat -F -c {c} -n 500 -s {size}", table([size], 500, False))
        for kind in ("CMP_AND_SWAP", "FETCH_AND_ADD"):
            g.add(f"ib_atomic_lat -c {c} -A {kind}", f"ib_atomic_lat -F -c {c} -A {kind} -n 500", table([8], 500, False))
    return g


def group_perftest_bw():
    """perftest's bandwidth programs. What has no flow control sends less than a socket's buffer holds."""
    g = Group("perftest-bw")
    for c in ("RC", "XRC"):
        for q in ("", " -q 8"):
            for verb in ("send", "write", "read"):
                g.add(f"ib_{verb}_bw -c {c}{q}", f"ib_{verb}_bw -F -c {c}{q} -n 500",
                      table([65536], 500 * (8 if q else 1), server=verb == "send"))
            for kind in ("CMP_AND_SWAP", "FETCH_AND_ADD"):
                g.add(f"ib_atomic_bw -c {c} -A {kind}{q}", f"ib_atomic_bw -F -c {c} -A {kind}{q} -n 500",
                      table([8], 500 * (8 if q else 1), False))
        g.add(f"ib_send_bw -c {c} -b", f"ib_send_bw -F -c {c} -b -n 300", table([65536], 300))
    for c in ("UC", "UD"):
        g.add(f"ib_send_bw -c {c}", f"ib_send_bw -F -c {c} -n 20 -s 2048", table([2048], 20))
    g.add("ib_write_bw -c UC", "ib_write_bw -F -c UC -n 20 -s 2048", table([2048], 20, False))
    return g


def group_perftest_all_sizes():
    """perftest with -a: 2 bytes to 8 MiB."""
    g = Group("perftest-all-sizes")
    for c in ("RC", "XRC"):
        for verb in ("send", "write"):
            g.add(f"ib_{verb}_lat -c {c} -a", f"ib_{verb}_lat -F -c {c} -a -n 10", table(ALL_SIZES, 10), timeout=90)
            g.add(f"ib_{verb}_bw -c {c} -a", f"ib_{verb}_bw -F -c {c} -a -n 10",
                  table(ALL_SIZES, 10, server=verb == "send"), timeout=90)
    return g


def group_lanes():
    """Several lanes in each process."""
    g = Group("lanes")
    n = 200
    for lanes in (2, 16):
        o = {"options": f"--lanes {lanes}"}
        for args in ("", " -e"):
            tail = f"{args}, {lanes} lanes"
            g.add(f"rc{tail}", f"ibv_rc_pingpong -g 0 -c -n {n}{args}", pingpong(4096, n), **o)
            g.add(f"uc{tail}", f"ibv_uc_pingpong -g 0 -c -n {n}{args}", pingpong(4096, n), **o)
            g.add(f"ud{tail}", f"ibv_ud_pingpong -g 0 -c -n {n} -s 1024{args}", pingpong(1024, n), **o)
            g.add(f"srq{tail}", f"ibv_srq_pingpong -g 0 -c -n {n}{args}", pingpong(4096, n), **o)
            g.add(f"xsrq{tail}", f"ibv_xsrq_pingpong -g 0 -n {n}{args}", wants("success"), **o)
            g.add(f"xsrq, 2 clients{tail}", f"ibv_xsrq_pingpong -g 0 -n 50{args}", wants("success"), clients=2,
                  server_only=" -c 2", **o)
            for c in ("RC", "XRC"):
                g.add(f"ib_send_bw -c {c} -q 8{tail}", f"ib_send_bw -F -c {c} -q 8 -n 300{args}", table([65536], 2400), **o)
                g.add(f"ib_send_lat -c {c}{tail}", f"ib_send_lat -F -c {c} -n 500{args}", table([2], 500), **o)
        for c in ("RC", "XRC"):
            g.add(f"ib_write_bw -c {c} -q 8, {lanes} lanes", f"ib_write_bw -F -c {c} -q 8 -n 300",
                  table([65536], 2400, False), **o)
            g.add(f"ib_read_bw -c {c} -q 8, {lanes} lanes", f"ib_read_bw -F -c {c} -q 8 -n 300",
                  table([65536], 2400, False), **o)
            g.add(f"ib_atomic_bw -c {c} -q 8, {lanes} lanes", f"ib_atomic_bw -F -c {c} -q 8 -n 300",
                  table([8], 2400, False), **o)
            g.add(f"ib_write_lat -c {c}, {lanes} lanes", f"ib_write_lat -F -c {c} -n 500", table([2], 500), **o)
    lossy = "--lanes 2 --fault drop=0.5%,dup=0.5%,reorder=1%,seed=5"
    g.add("ib_send_bw -c XRC -q 8, 2 lanes, with faults", "ib_send_bw -F -c XRC -q 8 -n 100", table([65536], 800),
          options=lossy)
    g.add("rc over IPv6, 2 lanes", f"ibv_rc_pingpong -g 0 -c -n {n} -s 5000", pingpong(5000, n), network="v6",
          options="--lanes 2")
    return g


def group_smoke():
    """One run of each transport: the fast look at everything."""
    g = Group("smoke")
    g.add("xsrq", "ibv_xsrq_pingpong -g 0 -n 100", wants("success"))
    g.add("rc", "ibv_rc_pingpong -g 0 -c -n 100", pingpong(4096, 100))
    g.add("rc, events", "ibv_rc_pingpong -g 0 -c -n 100 -e", pingpong(4096, 100))
    g.add("uc", "ibv_uc_pingpong -g 0 -c -n 100", pingpong(4096, 100))
    g.add("ud", "ibv_ud_pingpong -g 0 -c -n 100 -s 1024", pingpong(1024, 100))
    g.add("srq", "ibv_srq_pingpong -g 0 -c -n 100", pingpong(4096, 100))
    g.add("ib_send_lat -c XRC", "ib_send_lat -F -c XRC -n 200", table([2], 200))
    g.add("ib_write_lat -c XRC", "ib_write_lat -F -c XRC -n 200", table([2], 200))
    g.add("ib_read_bw -c XRC", "ib_read_bw -F -c XRC -n 50", table([65536], 50, False))
    g.add("ib_atomic_lat -c XRC", "ib_atomic_lat -F -c XRC -n 50", table([8], 50, False))
    return g


GROUPS = {g.title: g for g in (
    group_smoke(), group_pingpong(), group_events(), group_perftest_lat(), group_perftest_bw(), group_perftest_all_sizes(),
    group_lanes())}
