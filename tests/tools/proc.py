# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes under test: started in a group of their own, awaited by conditions, always ended by pid.

A server is ready when the kernel lists a listening TCP socket that is its own; nothing here waits for a
time to pass. Every process has a deadline. What it printed is kept in a file, so that a full pipe can never
stop it. Meson's perturbed malloc is taken back: stock programs have not all been cleaned of what it finds, and
their speed is looked at. Where the caller may, own_network() moves it into a network namespace with a loopback interface
only: addresses and ports of other tests of the host are then out of reach.
"""
import ctypes
import os
import signal
import subprocess
import tempfile
import time

CLONE_NEWNET = 0x40000000
TCP_LISTEN = "0A"
POLL = 0.005


def until(condition, timeout):
    """Whether @condition() became true within @timeout seconds."""
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL)
    return True


def own_network():
    """Enter a new network namespace with lo up. False, and nothing changed, where that is not allowed."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        return False
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    return True


class Proc:
    """One running program with its output, its deadline and its process group."""

    def __init__(self, argv, timeout, env=None, cwd=None):
        self.argv = argv
        self.deadline = time.monotonic() + timeout
        self.timed_out = False
        self.threads = ""
        self.out = tempfile.TemporaryFile()
        self.popen = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=self.out, stderr=subprocess.STDOUT, cwd=cwd,
            env=dict(os.environ, MALLOC_PERTURB_="0", **(env or {})), start_new_session=True)

    @property
    def pid(self):
        return self.popen.pid

    def running(self):
        return self.popen.poll() is None

    def _socket_inodes(self):
        inodes = set()
        try:
            for fd in os.listdir(f"/proc/{self.pid}/fd"):
                try:
                    target = os.readlink(f"/proc/{self.pid}/fd/{fd}")
                except OSError:
                    continue
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
        except OSError:
            pass
        return inodes

    def listens(self, port):
        """Whether this very process has a listening TCP socket on @port."""
        listening = set()
        for table in ("tcp", "tcp6"):
            try:
                with open(f"/proc/{self.pid}/net/{table}", encoding="ascii") as f:
                    rows = [line.split() for line in f][1:]
            except OSError:
                continue
            listening |= {r[9] for r in rows if r[3] == TCP_LISTEN and int(r[1].rsplit(":", 1)[1], 16) == port}
        return bool(listening and listening & self._socket_inodes())

    def wait_listening(self, port):
        """False when the process ended, or its time ran out, before it listened."""
        until(lambda: self.listens(port) or not self.running(), self.deadline - time.monotonic())
        return self.listens(port)

    def _describe_threads(self):
        """Where the threads of a process that hangs are: the only trace of it that a kill leaves."""
        lines = []
        try:
            for tid in sorted(os.listdir(f"/proc/{self.pid}/task"), key=int):
                task = f"/proc/{self.pid}/task/{tid}/"
                with open(task + "stat", encoding="utf-8") as f:
                    comm, rest = f.read().rsplit(")", 1)
                with open(task + "wchan", encoding="utf-8") as f:
                    wchan = f.read()
                state, utime, stime = (rest.split()[i] for i in (0, 11, 12))
                lines.append(f"thread {tid} {comm.split('(', 1)[1]}: {state} in {wchan}, cpu ticks {utime}+{stime}")
        except OSError as e:
            lines.append(f"(threads not readable: {e})")
        return "\n".join(lines)

    def wait(self):
        """The exit status, negative for a signal; None when the deadline passed and it had to be killed."""
        try:
            return self.popen.wait(max(0.01, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.timed_out = True
            self.threads = self._describe_threads()
            self.end()
            return None

    def end(self):
        """Kill what is left of the group and reap it. May be called more than once."""
        if self.running():
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.popen.wait()

    def text(self):
        self.out.seek(0)
        return self.out.read().decode(errors="replace")

    def report(self, label):
        """What a reader needs to know about it when the test failed."""
        status = "killed at its deadline" if self.timed_out else f"exit status {self.popen.poll()}"
        body = "\n".join("  " + line for line in self.text().splitlines()[-60:])
        threads = "\n" + "\n".join("  " + line for line in self.threads.splitlines()) if self.threads else ""
        return f"{label}: {' '.join(self.argv)}\n  {status}{threads}\n{body}"


def run(argv, timeout=30, **kw):
    """Run one program to its end. (status, output); status None when its time ran out."""
    p = Proc(argv, timeout, **kw)
    status = p.wait()
    return status, p.text()


def run_pair(server, clients, port, timeout):
    """
    Start @server, wait until it listens on @port, run all of @clients side by side, wait for all.

    Return: (processes, complaints); the first process is the server. Nothing is left running.
    """
    procs = [Proc(server, timeout)]
    complaints = []
    try:
        if not procs[0].wait_listening(port):
            complaints.append(f"the server never listened on TCP port {port}")
            return procs, complaints
        procs += [Proc(argv, timeout) for argv in clients]
        # Clients first: when one fails, its server may wait for it without end.
        for p in procs[1:]:
            status = p.wait()
            if status != 0:
                complaints.append("a client was killed at its deadline" if status is None
                                  else f"a client ended with status {status}")
        if complaints:
            procs[0].deadline = min(procs[0].deadline, time.monotonic() + 2)
        status = procs[0].wait()
        if status != 0:
            complaints.append("the server was killed at its deadline" if status is None
                              else f"the server ended with status {status}")
    finally:
        for p in procs:
            p.end()
    return procs, complaints
