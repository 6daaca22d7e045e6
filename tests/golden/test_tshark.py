#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Compare the fields of rxe-dissect --json with what tshark decodes: test_tshark.py RXE-DISSECT

tshark knows the BTH of every transport, the extension headers of RC and UD, and most messages of the connection
manager; where it knows a field both must say the same. It is left out where tshark 4.0 is known to be wrong: the
flow label and packet rate of a path (it reads them at other bits than the specification's table says). It knows
nothing behind the BTH of XRC, no MRA, SIDR_REQ, SIDR_REP, and verifies no ICRC.
"""
import json
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "tools"))
import tap  # noqa: E402

TIMEOUT_S = 60

CAPTURES = ["data/kernel-rxe-6.1/cm_rping.pcap", "data/kernel-rxe-6.1/cm_udaddy_sidr.pcap",
            "data/kernel-rxe-6.1/cm_rej_nolistener.pcap", "data/kernel-rxe-6.1/err_ok.pcap",
            "data/kernel-rxe-6.1/atomic_cswap.pcap", "data/kernel-rxe-6.1/rc_pingpong_ipv6ll.pcap",
            "data/kernel-rxe-xrc/cm_xrc_full.pcap", "data/kernel-rxe-xrc/cm_rdma_x_c_x.pcap",
            "data/kernel-rxe-xrc/err_mix.pcap", "golden/captures/cm_messages.pcap", "golden/captures/other_opcodes.pcap",
            "golden/captures/xrc_opcodes.pcap", "golden/captures/flags.pcap", "golden/captures/vlan.pcap",
            "golden/captures/ip6.pcap", "golden/captures/sll.pcap", "golden/captures/sll2.pcap"]

# Field of ours -> field of tshark's below "infiniband.", or with a dot in front its whole name.
PAIRS = {
    "frame.len": ".frame.len", "frame.cap_len": ".frame.cap_len", "udp.srcport": ".udp.srcport",
    "udp.length": ".udp.length", "ip.ttl": ".ip.ttl", "ip.id": ".ip.id", "ip.checksum": ".ip.checksum",
    "ip.dsfield.dscp": ".ip.dsfield.dscp", "ip.flags.df": ".ip.flags.df", "ip.src": ".ip.src", "ip.dst": ".ip.dst",
    "ipv6.flow": ".ipv6.flow", "ipv6.hlim": ".ipv6.hlim", "ipv6.plen": ".ipv6.plen", "ipv6.src": ".ipv6.src",
    "ipv6.dst": ".ipv6.dst", "ipv6.tclass.dscp": ".ipv6.tclass.dscp", "eth.src": ".eth.src", "eth.dst": ".eth.dst",
    "vlan.id": ".vlan.id", "vlan.priority": ".vlan.priority", "vlan.dei": ".vlan.dei",
    "sll.hatype": ".sll.hatype", "sll.halen": ".sll.halen", "sll.pkttype": ".sll.pkttype",
    "sll.ifindex": ".sll.ifindex",
    "roce.bth.opcode": "bth.opcode", "roce.bth.se": "bth.se", "roce.bth.mig": "bth.m", "roce.bth.pad": "bth.padcnt",
    "roce.bth.tver": "bth.tver", "roce.bth.pkey": "bth.p_key", "roce.bth.destqp": "bth.destqp",
    "roce.bth.ackreq": "bth.a", "roce.bth.resv7": "bth.reserved7", "roce.bth.psn": "bth.psn",
    "roce.deth.qkey": "deth.q_key", "roce.deth.srcqp": "deth.srcqp", "roce.reth.va": "reth.va",
    "roce.reth.rkey": "reth.r_key", "roce.reth.dmalen": "reth.dmalen", "roce.atomiceth.swapadd": "atomiceth.swapdt",
    "roce.atomiceth.compare": "atomiceth.cmpdt", "roce.aeth.syndrome": "aeth.syndrome", "roce.aeth.msn": "aeth.msn",
    "roce.atomicacketh.orig": "atomicacketh.origremdt", "roce.icrc": "invariant.crc",
    "roce.mad.baseversion": "mad.baseversion", "roce.mad.mgmtclass": "mad.mgmtclass",
    "roce.mad.classversion": "mad.classversion", "roce.mad.method": "mad.method", "roce.mad.status": "mad.status",
    "roce.mad.tid": "mad.transactionid", "roce.mad.attrid": "mad.attributeid",
    "roce.mad.attrmod": "mad.attributemodifier",
    "cm.req.local_comm_id": "cm.req", "cm.req.local_ca_guid": "cm.req.localcaguid",
    "cm.req.local_qkey": "cm.req.localqkey", "cm.req.local_qpn": "cm.req.localqpn",
    "cm.req.responder_resources": "cm.req.responderres", "cm.req.local_eecn": "cm.req.localeecn",
    "cm.req.initiator_depth": "cm.req.initdepth", "cm.req.remote_eecn": "cm.req.remoteeecn",
    "cm.req.remote_cm_timeout": "cm.req.remoteresptout", "cm.req.transport": "cm.req.transpsvctype",
    "cm.req.e2e_flow_control": "cm.req.e2eflowctrl", "cm.req.starting_psn": "cm.req.startpsn",
    "cm.req.local_cm_timeout": "cm.req.localresptout", "cm.req.retry_count": "cm.req.retrcount",
    "cm.req.pkey": "cm.req.pkey", "cm.req.path_mtu": "cm.req.pppmtu", "cm.req.rdc_exists": "cm.req.rdcexist",
    "cm.req.rnr_retry_count": "cm.req.rnrretrcount", "cm.req.max_cm_retries": "cm.req.maxcmretr",
    "cm.req.srq": "cm.req.srq", "cm.req.ext_transport": "cm.req.ext_transport",
    "cm.req.primary.local_lid": "cm.req.prim_locallid", "cm.req.primary.remote_lid": "cm.req.prim_remotelid",
    "cm.req.primary.tclass": "cm.req.prim_tfcclass", "cm.req.primary.hop_limit": "cm.req.prim_hoplim",
    "cm.req.primary.sl": "cm.req.prim_sl", "cm.req.primary.subnet_local": "cm.req.prim_subnetlocal",
    "cm.req.primary.ack_timeout": "cm.req.prim_localacktout", "cm.req.alt.local_lid": "cm.req.alt_locallid",
    "cm.req.alt.remote_lid": "cm.req.alt_remotelid", "cm.req.alt.tclass": "cm.req.alt_tfcclass",
    "cm.req.alt.hop_limit": "cm.req.alt_hoplim", "cm.req.alt.sl": "cm.req.alt_sl",
    "cm.req.alt.subnet_local": "cm.req.alt_subnetlocal", "cm.req.alt.ack_timeout": "cm.req.alt_localacktout",
    "cm.ip_cm.major": "cm.req.ip_cm.majv", "cm.ip_cm.minor": "cm.req.ip_cm.minv",
    "cm.ip_cm.ip_version": "cm.req.ip_cm.ipv", "cm.ip_cm.src_port": "cm.req.ip_cm.sport",
    "cm.ip_cm.src": "cm.req.ip_cm.sip4", "cm.ip_cm.dst": "cm.req.ip_cm.dip4",
    "cm.rep.local_comm_id": "cm.rep", "cm.rep.remote_comm_id": "cm.rep.remotecommid",
    "cm.rep.local_qkey": "cm.rep.localqkey", "cm.rep.local_qpn": "cm.rep.localqpn",
    "cm.rep.local_eecn": "cm.rep.localeecn", "cm.rep.starting_psn": "cm.rep.startpsn",
    "cm.rep.responder_resources": "cm.rep.respres", "cm.rep.initiator_depth": "cm.rep.initdepth",
    "cm.rep.target_ack_delay": "cm.rep.tgtackdelay", "cm.rep.failover": "cm.rep.failoveracc",
    "cm.rep.e2e_flow_control": "cm.rep.e2eflowctrl", "cm.rep.rnr_retry_count": "cm.rep.rnrretrcount",
    "cm.rep.srq": "cm.rep.srq", "cm.rep.local_ca_guid": "cm.rep.localcaguid", "cm.rep.private": "cm.rep.private",
    "cm.rtu.local_comm_id": "cm.rtu.localcommid", "cm.rtu.remote_comm_id": "cm.rtu.remotecommid",
    "cm.rtu.private": "cm.rtu.private",
    "cm.rej.local_comm_id": "cm.rej.localcommid", "cm.rej.remote_comm_id": "cm.rej.remotecommid",
    "cm.rej.message": "cm.rej.msgrej", "cm.rej.info_length": "cm.rej.rejinfolen", "cm.rej.reason": "cm.rej.reason",
    "cm.rej.ari": "cm.rej.ari", "cm.rej.private": "cm.rej.private",
    "cm.dreq.local_comm_id": "cm.dreq.localcommid", "cm.dreq.remote_comm_id": "cm.dreq.remotecommid",
    "cm.dreq.remote_qpn": "cm.req.remoteqpneecn", "cm.dreq.private": "cm.dreq.private",
    "cm.drep.local_comm_id": "cm.drsp.localcommid", "cm.drep.remote_comm_id": "cm.drsp.remotecommid",
    "cm.drep.private": "cm.drsp.private",
}


def theirs(name):
    return name[1:] if name.startswith(".") else "infiniband." + name


def run(args):
    p = subprocess.run(args, cwd=TESTS, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S,
                       check=False)
    if p.returncode:
        raise RuntimeError(f"{args[0]}: status {p.returncode}: {p.stderr}")
    return p.stdout.splitlines()


def tshark(capture):
    """Packet number -> {field of ours: its value in tshark's text}."""
    fields = ["frame.number", *(theirs(name) for name in PAIRS.values())]
    args = ["tshark", "-n", "-r", capture, "--disable-protocol", "rpcordma", "-T", "fields", "-E", "separator=|",
            "-E", "occurrence=f"]
    for name in fields:
        args += ["-e", name]
    packets = {}
    for line in run(args):
        number, *values = line.split("|")
        packets[int(number)] = {ours: v for ours, v in zip(PAIRS, values) if v}
    return packets


def number(value):
    """A value as a number where it is one: 7, "7", "0x07", True, "True", "1"."""
    if isinstance(value, (bool, int)):
        return int(value)
    text = value.lower()
    if text in ("true", "false"):
        return int(text == "true")
    try:
        return int(text, 0)
    except ValueError:
        return None


def same(ours, other):
    """Bytes may be separated by colons in tshark's text, and a run of digits may look like a number."""
    if isinstance(ours, str) and not ours.startswith("0x"):
        return ours.replace(":", "") == other.replace(":", "")
    return number(ours) is not None and number(ours) == number(other)


def compare(program, capture, seen):
    wrong = []
    packets = tshark(capture)
    for line in run([program, "--json", "-a", capture]):
        mine = json.loads(line)
        other = packets[mine["frame.number"]]
        # It gives the outer tag of a stack other names.
        stacked = mine.get("eth.type") not in (None, 0x8100)
        for name in PAIRS:
            if name in mine and name in other and not (stacked and name.startswith("vlan.")):
                seen.add(name)
                if not same(mine[name], other[name]):
                    wrong.append(f"packet {mine['frame.number']}: {name} is {mine[name]}, tshark says {other[name]}")
    return wrong[:20]


def main():
    if not shutil.which("tshark"):
        tap.skip_all("tshark is not installed")
    program = str(Path(sys.argv[1]).resolve())
    seen = set()
    t = tap.Tap(len(CAPTURES) + 1)
    for capture in CAPTURES:
        t.result(capture, compare(program, capture, seen))
    # A comparison that finds no field is none.
    t.result("every field was compared at least once", sorted(set(PAIRS) - seen))
    return t.status()


if __name__ == "__main__":
    sys.exit(main())
