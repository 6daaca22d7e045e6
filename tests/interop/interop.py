#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The kernel as the peer: stock programs between this device and rdma_rxe in a guest, in both roles.

A guest with Debian's kernel (mkguest) runs in QEMU's emulation, which needs no KVM; it is slow, so only what
works is looked at, never how fast. Guest and device are joined by a tap interface in a network namespace that
this process enters: with it and QEMU everything is gone. Prints TAP, and skips with a reason where root, QEMU
or the kernel's package cannot be had.
"""
import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tools"), str(HERE.parent / "stock")]
import proc  # noqa: E402
import rocecheck  # noqa: E402
import tap  # noqa: E402
from cases import BAD, pingpong, table  # noqa: E402

HOST, GUEST, TAP, SHELL_PORT = "10.99.0.1", "10.99.0.2", "tapA", 2323
# The guest's GID 1 is its IPv4 address (0 is link-local), ours is 0.
OURS = {"ibv": "-g 0", "ib_": "-x 0"}
THEIRS = {"ibv": "-d rxe0 -g 1", "ib_": "-d rxe0 -x 1"}

# Command, what both ends print, options of rxe-run. MTU 1500 makes an IB MTU of 1024, 9000 one of 4096.
AT_1500 = [
    ("ibv_rc_pingpong -n 50 -s 64", pingpong(64, 50), ()),
    ("ibv_rc_pingpong -n 50 -s 5000", pingpong(5000, 50), ()),
    ("ibv_srq_pingpong -n 50 -q 4 -r 100", pingpong(4096, 50), ()),
    ("ibv_uc_pingpong -n 50 -s 3000", pingpong(3000, 50), ()),
    ("ibv_ud_pingpong -n 50 -s 1024", pingpong(1024, 50), ()),
    ("ib_send_bw -F -n 100", table([65536], 100, False), ()),
    ("ib_write_bw -F -n 100", table([65536], 100, False), ()),
    ("ib_write_bw -F -n 100", table([65536], 100, False), ("--gso", "off")),
    ("ib_read_bw -F -n 100", table([65536], 100, False), ()),
    ("ib_atomic_lat -F -n 50", table([8], 50, False), ()),
]
AT_9000 = [
    ("ibv_rc_pingpong -n 50 -m 4096 -s 10000", pingpong(10000, 50), ()),
    ("ib_write_bw -F -n 100 -m 4096", table([65536], 100, False), ()),
    ("ib_read_bw -F -n 100 -m 4096", table([65536], 100, False), ()),
]


class GuestProc:
    """A command in the guest, with the face of proc.Proc: its shell is one TCP connection."""

    def __init__(self, command, timeout):
        self.argv = ["(guest)"] + command.split()
        self.deadline = time.monotonic() + timeout + 2
        self.buffer, self.status = b"", None
        self.timed_out = False
        self.socket = socket.create_connection((GUEST, SHELL_PORT), 5)
        line = f"timeout -s KILL {timeout} {command} </dev/null 2>&1; echo; echo __status $?; exit\n"
        self.socket.sendall(line.replace("; echo; echo __status $?", "; s=$?; echo; echo __status $s").encode())

    def wait(self):
        try:
            while True:
                self.socket.settimeout(max(0.01, self.deadline - time.monotonic()))
                data = self.socket.recv(65536)
                if not data:
                    break
                self.buffer += data
            self.status = int(self.buffer.rpartition(b"\n__status ")[2] or -1)
        except (TimeoutError, ValueError, OSError):
            self.timed_out = self.status is None
        self.end()
        return self.status

    def wait_listening(self, port):
        """The guest's table is asked through a second shell; it has no other server."""
        rows = f"cat /proc/net/tcp /proc/net/tcp6 | grep -q ':{port:04X} 0*:0000 {proc.TCP_LISTEN} '"
        return proc.until(lambda: guest_run(f"sh -c \"{rows}\"")[0] == 0, self.deadline - time.monotonic())

    def end(self):
        self.socket.close()

    def text(self):
        return self.buffer.rpartition(b"\n__status ")[0].decode(errors="replace")

    def report(self, label):
        body = "\n".join("  " + line for line in self.text().splitlines()[-60:])
        return f"{label}: {' '.join(self.argv)}\n  exit status {self.status}\n{body}"


def guest_run(command, timeout=10):
    """(status, output) of a command in the guest."""
    p = GuestProc(command, timeout)
    return p.wait(), p.text()


def guest_answers():
    try:
        return guest_run("true", 2)[0] == 0
    except OSError:
        return False


class Guest:
    """QEMU with the guest, from start to end."""

    def __init__(self, folder, log):
        self.log = log
        self.qemu = subprocess.Popen([
            "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "1", "-m", "512", "-nodefaults",
            "-display", "none", "-no-reboot", "-serial", f"file:{log}", "-kernel", f"{folder}/vmlinux",
            "-initrd", f"{folder}/initrd.gz", "-device", "virtio-rng-pci",
            "-netdev", f"tap,id=n0,ifname={TAP},script=no,downscript=no",
            "-device", "virtio-net-pci,netdev=n0,romfile=,mac=52:54:00:99:00:02",
            "-append", f"console=ttyS0 quiet panic=-1 tsc=reliable mitigations=off nokaslr ip4={GUEST}/24 mtu=1500",
        ], stdin=subprocess.DEVNULL, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.qemu.kill()
        self.qemu.wait()

    def ready(self):
        return proc.until(lambda: guest_answers() or self.qemu.poll() is not None, 60) and self.qemu.poll() is None


def set_mtu(mtu):
    """At both ends. The guest's device follows its interface."""
    subprocess.run(["ip", "link", "set", TAP, "mtu", str(mtu)], check=True)
    status, out = guest_run(f"ip link set eth0 mtu {mtu}")
    assert status == 0, out


def run_case(rxe_run, port, command, check, options, we_serve):
    """One pair. Complaints, with the outputs behind them."""
    timeout = 20
    kind = command[:3]
    ours = [str(rxe_run), "--netdev", TAP, "--addr", HOST, *options, "--", *f"{command} {OURS[kind]} -p {port}".split()]
    theirs = f"{command} {THEIRS[kind]} -p {port}"
    wrong, procs = [], []
    try:
        procs.append(proc.Proc(ours, timeout) if we_serve else GuestProc(theirs, timeout))
        if not procs[0].wait_listening(port):
            wrong.append("the server never listened")
        else:
            procs.append(GuestProc(f"{theirs} {HOST}", timeout) if we_serve else proc.Proc(ours + [GUEST], timeout))
            if procs[1].wait() != 0:
                wrong.append("the client failed")
                procs[0].deadline = min(procs[0].deadline, time.monotonic() + 2)
        if procs[0].wait() != 0:
            wrong.append("the server failed")
        for i, p in enumerate(procs):
            out = p.text()
            wrong += check(out, i == 0)
            if BAD.search(out):
                wrong.append(f"prints '{BAD.search(out).group()}'")
        return wrong and wrong + [p.report(("server", "client")[i]) for i, p in enumerate(procs)]
    finally:
        for p in procs:
            p.end()


def run_capture(rxe_run, port):
    """What the device writes about a run with the kernel: right ICRCs both ways, the kernel's solved id included."""
    with tempfile.TemporaryDirectory(prefix="rxe-xrc-interop-") as folder:
        path = f"{folder}/run.pcap"
        wrong = run_case(rxe_run, port, "ibv_rc_pingpong -n 20 -s 5000", pingpong(5000, 20), ("--pcap", path), True)
        if wrong:
            return wrong
        names, wrong = rocecheck.check(path)
        sources = {str(p.src) for p in rocecheck.packets(path)}
        if sources != {HOST, GUEST}:
            wrong.append(f"packets of {sources}")
        return wrong + [f"no {name}" for name in ("RC_SEND_FIRST", "RC_SEND_LAST", "RC_ACK") if name not in names]


def run_all(t, rxe_run):
    port = 18700
    for mtu, cases in ((1500, AT_1500), (9000, AT_9000)):
        set_mtu(mtu)
        for command, check, options in cases:
            for we_serve in (True, False):
                port += 1
                role = "the kernel is the client" if we_serve else "the kernel is the server"
                name = " ".join([command, *options, f"(MTU {mtu}), {role}"])
                t.result(name, run_case(rxe_run, port, command, check, options, we_serve))
    t.result("a capture of a run with the kernel has right ICRCs", run_capture(rxe_run, port + 1))


def prepare(folder):
    """Skip the whole program where the guest cannot be had; make it where it can."""
    if os.geteuid() != 0:
        tap.skip_all("needs root, for a network namespace and a tap interface")
    if not shutil.which("qemu-system-x86_64"):
        tap.skip_all("qemu-system-x86_64 is not installed")
    if not os.path.exists("/dev/net/tun"):
        tap.skip_all("there is no /dev/net/tun")
    status, out = proc.run([str(HERE / "mkguest"), str(folder)], 240)
    if status == 77:
        tap.skip_all(out.splitlines()[-1])
    if status != 0:
        sys.exit(f"mkguest: status {status}\n{out}")
    if not proc.own_network():
        tap.skip_all("a network namespace is not allowed here")
    subprocess.run(["ip", "tuntap", "add", "dev", TAP, "mode", "tap"], check=True)
    subprocess.run(["ip", "addr", "add", f"{HOST}/24", "dev", TAP], check=True)
    subprocess.run(["ip", "link", "set", TAP, "up"], check=True)


def main():
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rxe-xrc-interop"
    parser = argparse.ArgumentParser(description="Run stock programs between this device and the kernel's rdma_rxe.")
    parser.add_argument("--rxe-run", type=Path, required=True, help="the launcher of a build tree")
    parser.add_argument("--guest", type=Path, default=cache, help="folder of kernel and file system (%(default)s)")
    parser.add_argument("--shell", metavar="COMMAND", help="only run a command in the guest")
    args = parser.parse_args()
    prepare(args.guest)
    with tempfile.NamedTemporaryFile(prefix="rxe-xrc-console-") as console, Guest(args.guest, console.name) as guest:
        if not guest.ready():
            sys.exit("the guest did not come up:\n" + Path(console.name).read_text(errors="replace")[-3000:])
        if args.shell:
            status, out = guest_run(args.shell, 60)
            print(out)
            return status
        t = tap.Tap(2 * (len(AT_1500) + len(AT_9000)) + 1)
        run_all(t, args.rxe_run.resolve())
        if t.failed:
            t.note("console of the guest:\n" + Path(console.name).read_text(errors="replace")[-3000:])
        return t.status()


if __name__ == "__main__":
    sys.exit(main())
