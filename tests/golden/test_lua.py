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
import random
import shutil
import struct
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
    "snapped_cm.pcap", "snapped_ip6.pcap", "damaged.pcap", "truncated.pcap")] + [
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
        text = self.tshark(*args)
        if "Lua Error" in text:
            raise RuntimeError(f"{capture}: {text[text.index('Lua Error'):][:200]}")
        for n, packet in enumerate(ET.fromstring(text).iter("packet"), 1):
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


def is_read_alike(packet):
    """Wireshark waits for all fragments, takes the version for the protocol, and believes an IPv6 length of 0."""
    return not {"fragment", "bad-ip-version"} & set(packet["notes"]) and packet.get("ipv6.plen") != 0


def compare(tools, capture, every, seen):
    wrong = []
    theirs = dict(tools.packets(capture, every))
    for ours in tools.json(capture):
        n = ours["frame.number"]
        shown = theirs[n]
        if not is_read_alike(ours):
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


def numbers(tools, capture, display_filter, *options, lua=True):
    """The packets that a display filter finds."""
    out = tools.tshark("-r", capture, "-Y", display_filter, "-T", "fields", "-e", "frame.number", *options, lua=lua)
    return [int(line) for line in out.split()]


def expect(what, got, want):
    return [] if got == want else [f"{what}: {str(got)[:200]}, not {str(want)[:200]}"]


def check_filters(tools):
    """display filters find what rxe-dissect says"""
    rows = [("xrc_opcodes.pcap", "xrc.srqn == 0x020406", lambda p: p.get("xrc.srqn") == 0x020406),
            ("xrc_opcodes.pcap", "roce.reth.va == 0x7f0011223344", lambda p: p.get("roce.reth.va") == "0x00007f0011223344"),
            ("xrc_opcodes.pcap", "roce.immdt && !roce.reth.rkey", lambda p: "roce.immdt" in p and "roce.reth.rkey" not in p),
            ("xrc_opcodes.pcap", "roce.atomiceth.compare || roce.ieth.rkey",
             lambda p: "roce.atomiceth.compare" in p or "roce.ieth.rkey" in p),
            ("xrc_opcodes.pcap", "infiniband.bth.opcode == 164 && xrc.srqn", lambda p: p["roce.bth.opcode"] == 164),
            ("cm_messages.pcap", "cm.sidr_rep.qpn == 0x020406", lambda p: p.get("cm.sidr_rep.qpn") == 0x020406),
            ("cm_messages.pcap", 'cm.mra.message == "REP"', lambda p: p.get("cm.mra.message.text") == "REP"),
            ("damaged.pcap", 'roce.icrc.status == "bad"', lambda p: p.get("roce.icrc.status") == 0 and is_read_alike(p)),
            ("damaged.pcap", "roce.icrc.bad", lambda p: p.get("roce.icrc.status") == 0 and is_read_alike(p))]
    wrong = []
    for name, display_filter, wanted in rows:
        want = [p["frame.number"] for p in tools.json(GOLDEN + name) if wanted(p)]
        wrong += expect(display_filter, numbers(tools, GOLDEN + name, display_filter), want)
        wrong += [] if want else [f"{display_filter}: {name} has no such packet"]
    return wrong


def flipped(capture, path):
    """Write the capture with the last byte before each ICRC inverted; returns how many packets it has."""
    data = bytearray((TESTS / capture).read_bytes())
    at, count = 24, 0
    while at < len(data):
        length = int.from_bytes(data[at + 8:at + 12], "little")
        at += 16 + length
        data[at - 5] ^= 0xff
        count += 1
    Path(path).write_bytes(data)
    return count


def check_icrc(tools):
    """the ICRC of every packet is good in clean traces, bad after a byte of each was flipped, unverified if so wished"""
    wrong = []
    for capture in (RXE + "write_bw_5000.pcap", RXE + "rc_pingpong_ipv6ll.pcap", XRC + "xsrq_s2000_m1024_ipv6ll.pcap",
                    XRC + "write_bw_5000.pcap"):
        spoiled = run.home + "/flipped.pcap"
        everything = list(range(1, flipped(capture, spoiled) + 1))
        wrong += expect(capture, numbers(tools, capture, 'roce.icrc.status == "good"'), everything)
        wrong += expect(capture + ", flipped", numbers(tools, spoiled, 'roce.icrc.status == "bad"'), everything)
    off = numbers(tools, XRC + "err_mix.pcap", 'roce.icrc.status == "unverified"', "-o", "rxe_xrc.icrc:FALSE")
    xrc = [p["frame.number"] for p in tools.json(XRC + "err_mix.pcap") if p.get("roce.bth.opcode", 0) >> 5 == 5]
    return wrong + expect("not verified", off, xrc)


def check_info(tools):
    """the Info column has the opcode's name, PSN and SRQN"""
    wrong = []
    out = tools.tshark("-r", GOLDEN + "xrc_opcodes.pcap", "-T", "fields", "-e", "_ws.col.Info").splitlines()
    for info, p in zip(out, tools.json(GOLDEN + "xrc_opcodes.pcap"), strict=True):
        want = f"{p['roce.bth.opcode.text']} QP=0x{p['roce.bth.destqp']:06x} PSN={p['roce.bth.psn']}"
        if "xrc.srqn" in p:
            want += f" SRQN=0x{p['xrc.srqn']:06x}"
        if "roce.aeth.msn" in p:
            want += f" {p['roce.aeth.syndrome.text']} MSN={p['roce.aeth.msn']}"
        wrong += expect(f"packet {p['frame.number']}", info, want)
    out = tools.tshark("-r", GOLDEN + "cm_messages.pcap", "-Y", "cm.sidr_rep.status == 0", "-T",
                       "fields", "-e", "_ws.col.Info")
    return wrong + expect("SIDR_REP", out.strip(), "CM: ServiceIDResReqResp, request-id=0x0a0b0c0d, status=valid, "
                          "qp=0x020406, service=RDMA IP CM, IB port 7474, qkey=0x01234567")


def without_ours(tools, capture, lua):
    """The protocols of each packet, but for our tree and what Wireshark adds wherever a Lua script looks at fields."""
    options = ["-o", "rxe_xrc.plain:none"] if lua else []
    tree = ET.fromstring(tools.tshark("-r", capture, "-T", "pdml", *options, lua=lua))
    return [[ET.tostring(p, encoding="unicode").strip() for p in packet.iter("proto")
             if p.get("name") not in ("rxe_xrc", "fake-field-wrapper", "geninfo", "frame")]
            for packet in tree.iter("packet")]


def check_unchanged(tools):
    """what Wireshark's own dissectors show is the same with and without the Lua file"""
    wrong = []
    for capture in (RXE + "err_ok.pcap", RXE + "cm_rping.pcap", RXE + "uc_pingpong.pcap", RXE + "ud_pingpong.pcap",
                    XRC + "err_mix.pcap", GOLDEN + "snapped.pcap"):
        mine, stock = without_ours(tools, capture, True), without_ours(tools, capture, False)
        for n, (with_lua, without) in enumerate(zip(mine, stock, strict=True), 1):
            wrong += expect(f"{capture}: packet {n}", with_lua, without)
    return wrong[:20]


def check_payloads(tools):
    """payloads of less than 8 bytes are not taken for RPC over RDMA, private ones for nothing if so wished"""
    capture, malformed = RXE + "err_ok.pcap", "_ws.malformed"
    guessed = "infiniband_sdp || rpcordma || _ws.malformed"
    return (expect("without the file", numbers(tools, capture, malformed, lua=False), [1])
            + expect("tiny", numbers(tools, capture, malformed), [])
            + expect("none", numbers(tools, capture, malformed, "-o", "rxe_xrc.plain:none"), [1])
            + expect("all", numbers(tools, capture, guessed, "-o", "rxe_xrc.plain:all"), []))


def records(capture):
    """The frames of a little-endian pcap file."""
    data = (TESTS / capture).read_bytes()
    at = 24
    while at < len(data):
        length = int.from_bytes(data[at + 8:at + 12], "little")
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def check_damage(tools):
    """2000 packets with bytes changed behind the UDP header, cut or both raise no Lua error and are read alike"""
    rng = random.Random(4791)
    frames = [f for name in ("xrc_opcodes", "cm_messages", "other_opcodes") for f in records(GOLDEN + name + ".pcap")]
    path = run.home + "/damaged.pcap"
    behind_udp = 14 + 20 + 8
    with open(path, "wb") as out:
        out.write((TESTS / GOLDEN / "xrc_opcodes.pcap").read_bytes()[:24])
        for n in range(2000):
            frame = bytearray(rng.choice([f for f in frames if f[14] >> 4 == 4]))
            for _ in range(rng.choice((0, 1, 1, 3))):
                # Most meaning is in the first bytes.
                at = behind_udp + min(rng.randrange(60), rng.randrange(60))
                if at < len(frame):
                    frame[at] = rng.randrange(256)
            have = rng.choice((len(frame), rng.randrange(behind_udp, len(frame) + 1)))
            out.write(struct.pack("<IIII", n, 0, have, len(frame)) + frame[:have])
    return compare(tools, path, True, set()) + compare(tools, path, False, set())


def check_docs(tools):
    """docs/wireshark.md lists the fields and preferences"""
    text = (TESTS.parent / "docs/wireshark.md").read_text(encoding="utf-8")
    table = "| field | meaning | type |\n|---|---|---|\n" + tools.markdown
    wrong = [] if table in text else ["its table is not what gen-lua --fields prints"]
    return wrong + [f"it does not name {name}" for name in ("rxe_xrc.all", "rxe_xrc.icrc", "rxe_xrc.plain", *EXTRA)
                    if name not in text]


CHECKS = (check_filters, check_icrc, check_info, check_unchanged, check_payloads, check_damage, check_docs)


def main():
    if not shutil.which("tshark"):
        tap.skip_all("tshark is not installed")
    with tempfile.TemporaryDirectory() as run.home:
        if "with Lua" not in run(["tshark", "--version"]):
            tap.skip_all("this tshark has no Lua")
        return test(Tools(*sys.argv[1:]))


def test(tools):
    seen = set()
    t = tap.Tap(2 * len(CAPTURES) + 1 + len(CHECKS))
    for every in (True, False):
        for capture in CAPTURES:
            t.result(f"{capture}, {'all fields' if every else 'what Wireshark leaves out'}",
                     compare(tools, capture, every, seen))
    t.result("every field was compared at least once", sorted((tools.fields | EXTRA) - seen))
    for check in CHECKS:
        t.result(check.__doc__, check(tools))
    return t.status()


if __name__ == "__main__":
    sys.exit(main())
