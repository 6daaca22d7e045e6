#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What tshark shows with the Lua dissector: test_lua.py RXE-DISSECT RXE-XRC.LUA GEN-LUA

Field by field, words included, it must say what rxe-dissect --json says: of every packet with the preference "all
fields", and without it of what Wireshark leaves out. Then the ICRC's status, display filters, the Info column, the
payloads that are kept from guessing dissectors, and the list of fields in docs/wireshark.md.
"""
import ipaddress
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "tools"))
import tap  # noqa: E402

TIMEOUT_S = 60
ROOT_WARNING = 'Running as user "root" and group "root". This could be dangerous.'
GOLDEN, RXE, XRC = "golden/captures/", "data/kernel-rxe-6.1/", "data/kernel-rxe-xrc/"

CAPTURES = [GOLDEN + name for name in (
    "xrc_opcodes.pcap", "other_opcodes.pcap", "cm_messages.pcap", "cm_rej_reasons.pcap", "syndromes.pcap", "flags.pcap",
    "ip4.pcap", "ip6.pcap", "vlan.pcap", "sll.pcap", "sll2.pcap", "raw.pcap", "null.pcap", "padded.pcap", "snapped.pcap",
    "snapped_cm.pcap", "snapped_ip6.pcap", "two_interfaces.pcapng", "damaged.pcap", "truncated.pcap")] + [
    RXE + name for name in ("cm_rping.pcap", "cm_udaddy_sidr.pcap", "cm_rej_nolistener.pcap", "err_ok.pcap",
                            "rc_pingpong_ipv6ll.pcap", "ud_pingpong.pcap", "uc_pingpong.pcap")] + [
    XRC + name for name in ("cm_xrc_full.pcap", "cm_rdma_x_c_x.pcap", "err_mix.pcap", "err_ok_ipv6.pcap",
                            "atomic_cswap.pcap", "viol2_err_badsrqn.pcap", "xsrq_s2000_m1024_ipv6ll.pcap")]

# Fields that the Lua file has beside those of the tables.
EXTRA = {"roce.icrc.expected"}
# Not in the JSON, which leaves the payload out.
ONLY_LUA = {"roce.payload"}


def run(args, stderr_empty=False):
    env = {**os.environ, "LC_ALL": "C.UTF-8", "HOME": run.home, "XDG_CONFIG_HOME": run.home}
    p = subprocess.run(args, cwd=TESTS, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S,
                       check=False, env=env)
    noise = [line for line in p.stderr.splitlines() if line and line != ROOT_WARNING]
    if p.returncode or (stderr_empty and noise):
        raise RuntimeError(f"{args[0]}: status {p.returncode}: {' / '.join(noise)}")
    return p.stdout


run.home = None     # a folder without the user's preferences and plugins


class Tools:
    def __init__(self, dissect, lua, gen_lua):
        self.dissect, self.lua = str(Path(dissect).resolve()), str(Path(lua).resolve())
        table = self.table(gen_lua)
        self.fields = {row.split("`")[1] for row in table.splitlines()}
        self.markdown = table

    @staticmethod
    def table(gen_lua):
        with tempfile.TemporaryDirectory() as folder:
            run([str(Path(gen_lua).resolve()), "--fields", folder + "/fields"])
            return Path(folder, "fields").read_text(encoding="utf-8")

    def tshark(self, *args, lua=True):
        script = ["-X", "lua_script:" + self.lua] if lua else []
        return run(["tshark", "-n", *script, *args], stderr_empty=True)

    def json(self, capture):
        for line in run([self.dissect, "--json", "-a", capture]).splitlines():
            yield json.loads(line)

    def packets(self, capture, every):
        """Packet number -> {field: (value, text)} of the tree that the Lua file adds."""
        args = ["-r", capture, "-T", "pdml", "-o", f"rxe_xrc.all:{'TRUE' if every else 'FALSE'}"]
        for n, packet in enumerate(ET.fromstring(self.tshark(*args)).iter("packet"), 1):
            tree = packet.find("proto[@name='rxe_xrc']")
            items = [] if tree is None else tree.iter("field")
            yield n, {f.get("name"): (f.get("show"), f.get("showname") or f.get("show")) for f in items
                      if f.get("name").split(".")[0] in ("roce", "xrc", "cm")}


def number(value):
    if isinstance(value, (bool, int)):
        return int(value)
    try:
        return int({"True": "1", "False": "0"}.get(value, value), 0)
    except ValueError:
        return None


def address(text):
    """IPv4 alone, mapped, and behind zeros: the same."""
    a = ipaddress.ip_address(text)
    return int(a) & 0xffffffff if a.version == 4 or int(a) >> 32 in (0, 0xffff) else int(a)


def same(name, ours, shown):
    if name.endswith(("gid", "ip_cm.src", "ip_cm.dst")):
        return address(ours) == address(shown)
    if isinstance(ours, str) and not ours.startswith("0x"):
        return ours == shown.replace(":", "")[:len(ours)]
    return number(ours) == number(shown)


def is_left_out(name, packet):
    """Whether Wireshark 4.0 has no field of its own for it."""
    if packet.get("roce.bth.opcode", 0) >> 5 in (4, 5):
        return not name.startswith("roce.bth.")
    messages = ("mra", "sidr_req", "sidr_rep", "lap", "apr")
    ip_cm_is_ours = "cm.sidr_req.request_id" in packet
    return name.startswith(("roce.icrc", *(f"cm.{m}." for m in messages))) or (
        ip_cm_is_ours and name.startswith("cm.ip_cm."))


def compare(tools, capture, every, seen):
    wrong = []
    theirs = dict(tools.packets(capture, every))
    for ours in tools.json(capture):
        n = ours["frame.number"]
        shown = theirs[n]
        # Wireshark waits for the other fragments and decodes none of them.
        if "fragment" in ours["notes"]:
            continue
        want = {name for name in ours if name in tools.fields | EXTRA and (every or is_left_out(name, ours))}
        wrong += [f"packet {n}: tshark lacks {name}" for name in sorted(want - set(shown))]
        wrong += [f"packet {n}: only tshark has {name}" for name in sorted(set(shown) - want - ONLY_LUA)
                  if name != "roce.icrc.bad"]
        for name in want & set(shown):
            seen.add(name)
            value, text = shown[name]
            if not same(name, ours[name], value):
                wrong.append(f"packet {n}: {name} is {ours[name]}, tshark says {value}")
            if ours.get(name + ".text", "") not in text:
                wrong.append(f"packet {n}: {name} is {ours[name + '.text']}, tshark says {text}")
        if "roce.payload" in shown:
            have = len(shown["roce.payload"][0].replace(":", "")) // 2
            size = ours.get("roce.payload.len", -1)
            if have > size or (have < size and not ours["notes"]):
                wrong.append(f"packet {n}: {have} bytes of payload, {size} expected")
            seen.add("roce.payload")
    return wrong[:20]


def main():
    if not shutil.which("tshark"):
        tap.skip_all("tshark is not installed")
    with tempfile.TemporaryDirectory() as run.home:
        if "with Lua" not in run(["tshark", "--version"]):
            tap.skip_all("this tshark has no Lua")
        return test(Tools(*sys.argv[1:]))


def test(tools):
    seen = set()
    t = tap.Tap(2 * len(CAPTURES) + 1)
    for every in (True, False):
        for capture in CAPTURES:
            t.result(f"{capture}, {'all fields' if every else 'what Wireshark leaves out'}",
                     compare(tools, capture, every, seen))
    t.result("every field was compared at least once", sorted((tools.fields | EXTRA) - seen))
    return t.status()


if __name__ == "__main__":
    sys.exit(main())
