#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Run stock verbs programs on the device and judge what they print: stock.py --rxe-run PATH GROUP

Server and client are two processes on two addresses of lo. Each pair has addresses and a TCP port of its own,
and where the caller may (as root) the whole group has a network namespace of its own, so that it neither
disturbs nor is disturbed. The groups of pairs are in cases.py; devinfo, capture and wrong-use are here, since
each of their tests is a little different. Prints TAP; what the programs said is shown when a test fails.

To look at one thing: stock.py --rxe-run build/rxe-xrc/rxe-run --only 'xsrq*' pingpong
"""
import argparse
import copy
import fnmatch
import itertools
import os
import pwd
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import proc  # noqa: E402
import rocecheck  # noqa: E402
import tap  # noqa: E402
from cases import BAD, GROUPS, pingpong as wants_pingpong, wants  # noqa: E402

IBV_DEVICE_XRC = 1 << 20
# perftest makes its XRC domains of these files, leaves them behind, and fails on those of another user.
PERFTEST_DOMAINS = [Path("/tmp/xrc_domain_server"), Path("/tmp/xrc_domain_client")]
LIBRARY = "verbs/librxe-verbs.so"   # where the launcher of a build tree finds it, from its own folder


class Runner:
    """Hands out addresses and ports, and puts the launcher before a command."""

    def __init__(self, rxe_run):
        self.rxe_run = rxe_run
        self.own = os.geteuid() == 0 and proc.own_network()
        self.numbers = itertools.cycle(range(1, 255))
        self.ports = itertools.count(18600)

    def address(self, network="v4"):
        n = next(self.numbers)
        if network == "v4":
            return f"127.0.0.{n}"
        address = f"fd00::{n:x}"
        status, out = proc.run(["ip", "addr", "add", f"{address}/128", "dev", "lo", "nodad"])
        assert status == 0 or "exists" in out, out
        return address

    def port(self):
        return next(self.ports)

    def command(self, address, command, *options, user=""):
        """The argument vector of a stock program's @command line on the device with @address."""
        as_user = ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups"] if user else []
        argv = command if isinstance(command, list) else shlex.split(command)
        return as_user + [str(self.rxe_run), "--netdev", "lo", "--addr", address, *options, "--"] + argv

    def for_everyone(self):
        """A copy of launcher and library that any user reaches, wherever the build tree is: (runner, folder)."""
        folder = tempfile.TemporaryDirectory(prefix="rxe-xrc-stock-")
        for part in (self.rxe_run.name, LIBRARY):
            target = Path(folder.name, part)
            target.parent.mkdir(exist_ok=True)
            target.parent.chmod(0o755)
            shutil.copy(self.rxe_run.parent / part, target)
        everyones = copy.copy(self)
        everyones.rxe_run = Path(folder.name, self.rxe_run.name)
        return everyones, folder


def judge(procs, check):
    """Complaints about the outputs of a pair; the first process is the server."""
    complaints = []
    for i, p in enumerate(procs):
        side, out = ("client", "server")[i == 0], p.text()
        complaints += [f"{side}: {text}" for text in check(out, i == 0)]
        bad = BAD.search(out)
        if bad:
            complaints.append(f"{side} prints '{bad.group()}'")
    return complaints


def reports(procs):
    return [p.report(("client", "server")[i == 0]) for i, p in enumerate(procs)]


def foreign_domain():
    """Take away what an earlier perftest left; the file that cannot be taken away, or None."""
    for path in PERFTEST_DOMAINS:
        try:
            path.unlink(missing_ok=True)
        except PermissionError:
            return path
    return None


def run_case(runner, case):
    """One row of a table. Complaints, with the outputs behind them."""
    if case.refused:
        status, out = proc.run(runner.command(runner.address(), case.command), case.timeout)
        wrong = case.check(out, True) + (["it did not fail"] if status == 0 else [])
        return wrong and wrong + [f"status {status}\n{out}"]
    for _ in range(5 if case.excuse else 1):
        procs, wrong = run_once(runner, case)
        if not wrong or not any(case.excuse in p.text() for p in procs):
            break
    return wrong and wrong + reports(procs)


def run_once(runner, case):
    """(processes, complaints) of a server and its clients."""
    port, server = runner.port(), runner.address(case.network)
    line = f"{case.command} -p {port}"
    # Some programs exchange their numbers over IPv4 only, whatever the device's address is.
    host = server if case.network == "v4" else "127.0.0.1"
    options = case.options.split()
    clients = [runner.command(runner.address(case.network), f"{line} {host}", *options, user=case.user)
               for _ in range(case.clients)]
    procs, wrong = proc.run_pair(runner.command(server, line + case.server_only, *options, user=case.user), clients,
                                 port, case.timeout)
    return procs, wrong + judge(procs, case.check)


def run_group(runner, cases):
    t = tap.Tap(len(cases))
    for case in cases:
        if case.network == "v6" and not runner.own:
            t.skip(case.name, "needs root, for IPv6 addresses in a network of its own")
        elif case.user and os.geteuid() != 0:
            t.skip(case.name, "needs root, to become another user")
        elif "-c XRC" in case.command and foreign_domain():
            t.skip(case.name, f"{foreign_domain()} of another user is in perftest's way")
        elif case.user:
            everyones, folder = runner.for_everyone()
            with folder:
                t.result(case.name, run_case(everyones, case))
        else:
            t.result(case.name, run_case(runner, case))
    return t


# --- devinfo -----------------------------------------------------------------------------------------------

def devinfo_complaints(status, out, address):
    """What is wrong with the output of ibv_devinfo -v for the device on @address."""
    wrong = [f"ibv_devinfo ended with status {status}"] if status != 0 else []
    bad = BAD.search(out)
    if bad:
        wrong.append(f"prints '{bad.group()}'")
    caps = re.search(r"device_cap_flags:\s*0x([0-9a-f]+)", out)
    if not caps or not int(caps.group(1), 16) & IBV_DEVICE_XRC:
        wrong.append("XRC is not in device_cap_flags")
    for what in (r"hca_id:\s*xrc_lo\b", r"^\s+XRC$", r"state:\s*PORT_ACTIVE", r"link_layer:\s*Ethernet", r"active_mtu:\s*4096",
                 rf"GID\[\s*0\]:\s*::ffff:{re.escape(address)}, RoCE v2"):
        if not re.search(what, out, re.M):
            wrong.append(f"nothing matches '{what}'")
    return wrong


def test_devices(runner):
    """ibv_devices lists the device"""
    status, out = proc.run(runner.command(runner.address(), "ibv_devices"))
    wrong = [] if status == 0 and re.search(r"^\s+xrc_lo\s+[0-9a-f]{16}$", out, re.M) else [f"status {status}"]
    return wrong and wrong + [out]


def test_devinfo(runner, user=""):
    """ibv_devinfo -v shows a port that is up, with XRC among the capabilities"""
    address = runner.address()
    status, out = proc.run(runner.command(address, "ibv_devinfo -v", user=user))
    wrong = devinfo_complaints(status, out, address)
    return wrong and wrong + [out]


def test_devinfo_by_name(runner):
    """ibv_devinfo -d xrc_lo, and a name that is no device"""
    status, out = proc.run(runner.command(runner.address(), "ibv_devinfo -d xrc_lo"))
    wrong = [f"status {status}\n{out}"] if status != 0 or "xrc_lo" not in out else []
    status, out = proc.run(runner.command(runner.address(), "ibv_devinfo -d nosuch"))
    return wrong + ([f"nosuch: status {status}\n{out}"] if status in (0, None) or status < 0 else [])


def test_devinfo_nobody(runner):
    """ibv_devices and ibv_devinfo -v as the user nobody"""
    everyones, folder = runner.for_everyone()
    with folder:
        status, out = proc.run(everyones.command(everyones.address(), "ibv_devices", user="nobody"))
        wrong = [] if status == 0 and "xrc_lo" in out else [f"ibv_devices: status {status}\n{out}"]
        return wrong + test_devinfo(everyones, user="nobody")


def test_without_options(runner):
    """without options lo comes first"""
    status, out = proc.run([str(runner.rxe_run), "--", "ibv_devinfo", "-l"])
    names = re.findall(r"^\s+(\w+)$", out, re.M)
    return [] if status == 0 and names[:1] == ["xrc_lo"] else [f"status {status}\n{out}"]


# --- capture -----------------------------------------------------------------------------------------------

# What is run, and the packets that must be in its capture.
CAPTURES = [
    ("XRC SEND", "ibv_xsrq_pingpong -g 0 -m 1024 -n 20 -s 5000",
     ["XRC_SEND_FIRST", "XRC_SEND_MIDDLE", "XRC_SEND_LAST", "XRC_ACK"]),
    ("XRC SEND of one packet", "ib_send_lat -F -c XRC -n 20 -s 64", ["XRC_SEND_ONLY", "XRC_ACK"]),
    ("XRC WRITE", "ib_write_bw -F -c XRC -n 20 -m 1024 -s 5000",
     ["XRC_WRITE_FIRST", "XRC_WRITE_MIDDLE", "XRC_WRITE_LAST", "XRC_ACK"]),
    ("XRC READ", "ib_read_bw -F -c XRC -n 20 -m 1024 -s 5000",
     ["XRC_READ_REQUEST", "XRC_READ_RESP_FIRST", "XRC_READ_RESP_MIDDLE", "XRC_READ_RESP_LAST"]),
    ("XRC FETCH_ADD", "ib_atomic_lat -F -c XRC -n 20 -A FETCH_AND_ADD", ["XRC_FETCH_ADD", "XRC_ATOMIC_ACK"]),
    ("XRC CMP_SWAP", "ib_atomic_lat -F -c XRC -n 20 -A CMP_AND_SWAP", ["XRC_CMP_SWAP", "XRC_ATOMIC_ACK"]),
    ("RC SEND", "ibv_rc_pingpong -g 0 -n 20 -s 5000", ["RC_SEND_FIRST", "RC_SEND_MIDDLE", "RC_SEND_LAST", "RC_ACK"]),
    ("UC SEND", "ibv_uc_pingpong -g 0 -n 20 -s 5000", ["UC_SEND_FIRST", "UC_SEND_MIDDLE", "UC_SEND_LAST"]),
    ("UD SEND", "ibv_ud_pingpong -g 0 -n 20 -s 1000", ["UD_SEND_ONLY"]),
]


def tshark_complaints(path, names):
    """tshark must read the capture, and name the opcode of every packet that is listed in @names."""
    status, out = proc.run(["tshark", "-r", path, "--disable-protocol", "rpcordma", "-T", "pdml"], 60)
    if status != 0:
        return [f"tshark ended with status {status}: {out[-500:]}"]
    shown = {int(value, 16): text for text, value in re.findall(
        r'name="infiniband\.bth\.opcode" showname="Opcode: ([^"]*)"[^>]*value="([0-9a-f]+)"', out)}
    wrong = []
    long_names = {"XRC": "Extended Reliable Connection (XRC)", "RC": "Reliable Connection (RC)",
                  "UC": "Unreliable Connection (UC)", "UD": "Unreliable Datagram (UD)"}
    for name in names:
        code = next(c for c, row in rocecheck.OPCODES.items() if row[0] == name)
        transport = long_names[name.split("_")[0]]
        if not shown.get(code, "").startswith(transport + " - "):
            wrong.append(f"tshark shows opcode {code:#x} as '{shown.get(code)}', not as one of {transport}")
    return wrong


def run_capture(runner, command, names):
    """Both ends write a capture of @command; each is judged alone, then against the other."""
    with tempfile.TemporaryDirectory(prefix="rxe-xrc-stock-") as folder:
        files = [f"{folder}/server.pcap", f"{folder}/client.pcap"]
        port, server = runner.port(), runner.address()
        line = f"{command} -p {port}"
        procs, wrong = proc.run_pair(
            runner.command(server, line, "--pcap", files[0]),
            [runner.command(runner.address(), f"{line} {server}", "--pcap", files[1])], port, 30)
        wrong += judge(procs, lambda out, is_server: [])
        if not wrong:
            for path in files:
                seen, bad = rocecheck.check(path)
                wrong += bad + [f"{path} has no {name}" for name in names if name not in seen]
                wrong += tshark_complaints(path, names)
            wrong += rocecheck.sent_and_received(*files)
        return wrong and wrong + reports(procs)


# --- wrong use ---------------------------------------------------------------------------------------------

# Arguments of the launcher, the exit status, and what it has to name.
WRONG_USE = [
    ("an unknown option", ["--nosuch", "--", "true"], 2, "nosuch"),
    ("an address that is none", ["--netdev", "lo", "--addr", "127.0.0.256", "--", "true"], 2, "127.0.0.256"),
    ("an address of another interface", ["--netdev", "lo", "--addr", "203.0.113.9", "--", "true"], 2, "203.0.113.9"),
    ("an interface that is none", ["--netdev", "nosuch0", "--", "true"], 2, "nosuch0"),
    ("a fault that is none", ["--fault", "drop=200%", "--", "true"], 2, "drop=200%"),
    ("a log level that is none", ["--log", "loud", "--", "true"], 2, "loud"),
    ("no program", ["--netdev", "lo"], 2, "--help"),
    ("a program that is none", ["--", "./nosuch-program"], 127, "nosuch-program"),
]


def run_wrong_use(runner, args, status, named):
    got, out = proc.run([str(runner.rxe_run)] + args)
    wrong = [] if got == status else [f"exit status {got}, not {status}"]
    if named.lower() not in out.lower():
        wrong.append(f"the message does not name '{named}'")
    return wrong and wrong + [out]


def test_address_in_use(runner):
    """a second process on an address is told so, and can still ask for the device's attributes"""
    port, address = runner.port(), runner.address()
    server = proc.Proc(runner.command(address, f"ibv_rc_pingpong -g 0 -p {port}"), 30)
    try:
        if not server.wait_listening(port):
            return ["the first process never listened", server.report("first")]
        status, out = proc.run(runner.command(address, f"ibv_rc_pingpong -g 0 -p {runner.port()}"), 10)
        wrong = []
        if status in (0, None) or status < 0:
            wrong.append(f"the second process ended with status {status}")
        if address not in out or "in use" not in out.lower():
            wrong.append(f"the message does not say that {address} is in use")
        info_status, info = proc.run(runner.command(address, "ibv_devinfo -v"))
        wrong += devinfo_complaints(info_status, info, address)
        if not server.running():
            wrong.append("the first process ended")
        return wrong and wrong + [out, info]
    finally:
        server.end()


def test_wrong_gid_index(runner):
    """a GID index that the table does not have fails with a message, not with a signal"""
    status, out = proc.run(runner.command(runner.address(), "ibv_rc_pingpong -g 200"), 10)
    return [] if status not in (0, None) and status > 0 and out else [f"status {status}\n{out}"]


def test_status_passes(runner):
    """the launcher becomes the program: arguments, output and exit status are the program's"""
    status, out = proc.run(runner.command(runner.address(), ["sh", "-c", "echo \"$0|$1\"; exit 7", "a b", "-x"]))
    return [] if (status, out) == (7, "a b|-x\n") else [f"status {status}\n{out}"]


# --- the launcher's other options ---------------------------------------------------------------------------

def counters(text):
    """What --stats printed: name -> value."""
    return {name: int(value) for name, value in re.findall(r"^([a-z][\w.]*) (\d+)$", text, re.M)}


def run_with_options(runner, command, check, *options):
    """(processes, complaints) of a pair that has @options at both ends."""
    port, server = runner.port(), runner.address()
    line = f"{command} -p {port}"
    procs, wrong = proc.run_pair(runner.command(server, line, *options),
                                 [runner.command(runner.address(), f"{line} {server}", *options)], port, 30)
    return procs, wrong + judge(procs, check)


def test_fault(runner):
    """--fault loses packets, the program does not notice, --stats tells of both"""
    procs, wrong = run_with_options(runner, "ibv_rc_pingpong -g 0 -c -n 300 -s 5000", wants_pingpong(5000, 300),
                                    "--fault", "drop=2%,dup=1%,seed=7", "--stats")
    for p in procs:
        seen = counters(p.text())
        wrong += [f"no counter {name}: {seen}" for name in ("drop.fault", "retransmits", "tx_packets") if not seen.get(name)]
    return wrong and wrong + reports(procs)


def test_stats_file(runner):
    """--stats=FILE writes the counters there, %p in its name being the process"""
    with tempfile.TemporaryDirectory(prefix="rxe-xrc-stock-") as folder:
        procs, wrong = run_with_options(runner, "ibv_xsrq_pingpong -g 0 -n 10", wants("success"), f"--stats={folder}/%p")
        for p in procs:
            path = Path(folder, str(p.pid))
            seen = counters(path.read_text(encoding="ascii")) if path.exists() else {}
            if not seen.get("tx_packets") or not seen.get("rx_packets"):
                wrong.append(f"{path}: {seen}")
            # xsrq_pingpong's server may send before its client's QP can receive; the packet is sent again.
            wrong += [f"a run without loss counts {name}: {n}" for name, n in seen.items()
                      if name.startswith("drop.") and name != "drop.qp_state"]
        return wrong and wrong + reports(procs)


def test_gso_off(runner):
    """--gso off sends the same"""
    procs, wrong = run_with_options(runner, "ib_write_bw -F -c RC -n 100", lambda out, is_server: [], "--gso", "off")
    return wrong and wrong + reports(procs)


def test_environment(runner):
    """environment variables do what the options do"""
    address = runner.address()
    status, out = proc.run([str(runner.rxe_run), "--", "ibv_devinfo", "-v"], env={"RXE_NETDEV": "lo", "RXE_ADDR": address})
    wrong = devinfo_complaints(status, out, address)
    return wrong and wrong + [out]


def requests_served(pid):
    """How often the thread that executes other processes' requests has slept: at least once a request."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text(encoding="ascii").strip() == "rxe-domain":
            found = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", (task / "status").read_text(encoding="ascii"), re.M)
            return int(found.group(1))
    return 0


def test_client_killed(runner):
    """of two XRC clients that feed each other's SRQs one is killed; the others go on, or fail as programs do"""
    wrong = []
    for args in ("", " -e"):
        port, server = runner.port(), runner.address()
        line = f"ibv_xsrq_pingpong -g 0 -n 10000{args} -p {port}"
        procs = [proc.Proc(runner.command(server, line + " -c 2"), 30)]
        try:
            if not procs[0].wait_listening(port):
                return ["the server never listened", *reports(procs)]
            procs += [proc.Proc(runner.command(runner.address(), f"{line} {server}"), 30) for _ in range(2)]
            victim, *rest = procs[1], procs[0], procs[2]
            if not proc.until(lambda: not victim.running() or requests_served(victim.pid) > 200, 20):
                return ["the first client never got going", *reports(procs)]
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()
            # A server whose next turn is the dead client's waits for it without end; whoever waits can be ended.
            proc.until(lambda: not any(p.running() for p in rest), 2)
            for p in rest:
                if p.running():
                    os.kill(p.pid, signal.SIGTERM)
                p.deadline = time.monotonic() + 5
                status = p.wait()
                if status is None or (status < 0 and status != -signal.SIGTERM):
                    wrong.append(f"{line}: one of the others ended with status {status}")
        finally:
            for p in procs:
                p.end()
        if wrong:
            return wrong + reports(procs)
    return []


def test_valgrind(runner):
    """valgrind has nothing to say of a program with one lane, and with two"""
    wrong = []
    # What the kernel or another process is given is initialised, padding too. The program itself is clean. One
    # of its threads runs at a time, and without fairness one that polls keeps the others for seconds.
    under = "valgrind -q --fair-sched=try --error-exitcode=9 ibv_xsrq_pingpong -g 0 -n 20"
    for lanes in ("1", "2"):
        port, server = runner.port(), runner.address()
        line = f"{under} -p {port}"
        client = runner.command(runner.address(), f"{line} {server}", "--lanes", lanes)
        procs, complaints = proc.run_pair(runner.command(server, line, "--lanes", lanes), [client], port, 60)
        complaints += judge(procs, wants("success"))
        wrong += complaints and [*complaints, *reports(procs)]
    return wrong


def missing(test):
    """What @test needs and there is not, in words."""
    if test is test_devinfo_nobody and os.geteuid() != 0:
        return "needs root, to become another user"
    if test is test_valgrind and not shutil.which("valgrind"):
        return "needs valgrind"
    return ""


def functions(runner, *tests):
    """TAP over test functions, named by their docstrings."""
    t = tap.Tap(len(tests))
    for test in tests:
        if missing(test):
            t.skip(test.__doc__, missing(test))
        else:
            t.result(test.__doc__, test(runner))
    return t


def group_devinfo(runner):
    return functions(runner, test_devices, test_devinfo, test_devinfo_by_name, test_devinfo_nobody, test_without_options)


def group_capture(runner):
    t = tap.Tap(len(CAPTURES))
    for name, command, names in CAPTURES:
        if "-c XRC" in command and foreign_domain():
            t.skip(f"capture of {name}", f"{foreign_domain()} of another user is in perftest's way")
            continue
        t.result(f"capture of {name}", run_capture(runner, command, names))
    return t


def group_wrong_use(runner):
    tests = [test_address_in_use, test_wrong_gid_index, test_status_passes]
    t = tap.Tap(len(WRONG_USE) + len(tests))
    for name, args, status, named in WRONG_USE:
        t.result(f"rxe-run: {name}", run_wrong_use(runner, args, status, named))
    for test in tests:
        t.result(test.__doc__, test(runner))
    return t


def group_options(runner):
    return functions(runner, test_fault, test_stats_file, test_gso_off, test_environment, test_client_killed,
                     test_valgrind)


SPECIAL = {"devinfo": group_devinfo, "options": group_options, "capture": group_capture, "wrong-use": group_wrong_use}


def main():
    parser = argparse.ArgumentParser(description="Run stock verbs programs on the device.")
    parser.add_argument("--rxe-run", type=Path, required=True, help="the launcher of a build tree")
    parser.add_argument("--only", default="*", metavar="GLOB", help="of a table, only the tests whose name matches")
    parser.add_argument("group", choices=[*GROUPS, *SPECIAL])
    args = parser.parse_args()
    if not os.access(args.rxe_run, os.X_OK):
        parser.error(f"there is no launcher at {args.rxe_run}")
    runner = Runner(args.rxe_run.resolve())
    if args.group in SPECIAL:
        return SPECIAL[args.group](runner).status()
    return run_group(runner, [c for c in GROUPS[args.group].cases if fnmatch.fnmatch(c.name, args.only)]).status()


if __name__ == "__main__":
    sys.exit(main())
