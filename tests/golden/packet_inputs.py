# SPDX-License-Identifier: Apache-2.0
"""Inputs of the packet network, written from the rows of packet_cases.json: topologies, flows, configurations, and the
files that a collective needs.  The words are those of docs/format/packet.md."""

import json
import pathlib

BASE = {
    "ENABLE_QCN": "1", "USE_DYNAMIC_PFC_THRESHOLD": "1", "PACKET_PAYLOAD_SIZE": "1000", "TOPOLOGY_FILE": "topology.txt",
    "FLOW_FILE": "flow.txt", "TRACE_FILE": "trace.txt", "TRACE_OUTPUT_FILE": "out/mix.tr", "FCT_OUTPUT_FILE": "out/fct.txt",
    "PFC_OUTPUT_FILE": "out/pfc.txt", "QLEN_MON_FILE": "out/qlen.txt", "QLEN_MON_START": "100000000000000000",
    "QLEN_MON_END": "20000", "SIMULATOR_STOP_TIME": "40000000000000.00", "CC_MODE": "12", "ALPHA_RESUME_INTERVAL": "1",
    "RATE_DECREASE_INTERVAL": "4", "CLAMP_TARGET_RATE": "0", "RP_TIMER": "900", "EWMA_GAIN": "0.00390625",
    "FAST_RECOVERY_TIMES": "1", "RATE_AI": "50Mb/s", "RATE_HAI": "100Mb/s", "MIN_RATE": "100Mb/s",
    "DCTCP_RATE_AI": "1000Mb/s", "ERROR_RATE_PER_LINK": "0.0000", "L2_CHUNK_SIZE": "4000", "L2_ACK_INTERVAL": "1",
    "L2_BACK_TO_ZERO": "0", "HAS_WIN": "1", "GLOBAL_T": "0", "VAR_WIN": "1", "FAST_REACT": "1", "U_TARGET": "0.95",
    "MI_THRESH": "0", "INT_MULTI": "1", "MULTI_RATE": "0", "SAMPLE_FEEDBACK": "0", "PINT_LOG_BASE": "1.05",
    "PINT_PROB": "1.0", "NIC_TOTAL_PAUSE_TIME": "0", "RATE_BOUND": "1", "ACK_HIGH_PRIO": "0", "LINK_DOWN": "0 0 0",
    "ENABLE_TRACE": "0",
    "KMAX_MAP": "6 25000000000 400 40000000000 800 100000000000 1600 200000000000 2400 400000000000 3200 2400000000000 3200",
    "KMIN_MAP": "6 25000000000 100 40000000000 200 100000000000 400 200000000000 600 400000000000 800 2400000000000 800",
    "PMAX_MAP": "6 25000000000 0.2 40000000000 0.2 100000000000 0.2 200000000000 0.2 400000000000 0.2 2400000000000 0.2",
    "BUFFER_SIZE": "32"}

SYSTEM = {
    "scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
    "collective-optimization": "localBWAware", "local-mem-bw": 1600, "boost-mode": 0, "roofline-enabled": 0, "peak-perf": 900}


def star(hosts, rate, delay, errors=()):
    """One switch, after the hosts in number; `errors`: (host, probability of loss)."""
    lossy = dict(map(tuple, errors))
    links = [(hosts, host, rate, delay, lossy.get(host, 0)) for host in range(hosts)]
    return hosts + 1, [hosts], links


def leaf_spine(leaves, per_leaf, spines, rate, delay, uplink=None, up_delay=None):
    hosts = leaves * per_leaf
    links = [(host, hosts + host // per_leaf, rate, delay, 0) for host in range(hosts)]
    links += [(hosts + leaf, hosts + leaves + spine, uplink or rate, up_delay or delay, 0)
              for leaf in range(leaves) for spine in range(spines)]
    return hosts + leaves + spines, list(range(hosts, hosts + leaves + spines)), links


def pair(rate, delay):
    """Two hosts and a cable."""
    return 2, [], [(0, 1, rate, delay, 0)]


def ring(hosts, rate, delay):
    return hosts, [], [(host, (host + 1) % hosts, rate, delay, 0) for host in range(hosts)]


SHAPES = {"star": star, "leaf_spine": leaf_spine, "pair": pair, "ring": ring}


def write(folder, case):
    """The files of a case; returns the command line."""
    folder = pathlib.Path(folder)
    (folder / "out").mkdir(parents=True, exist_ok=True)
    shape, *words = case["topology"]
    nodes, switches, links = SHAPES[shape](*words)
    lines = [f"{nodes} {len(switches)} {len(links)}", " ".join(map(str, switches))]
    lines += [" ".join(map(str, link)) for link in links]
    (folder / "topology.txt").write_text("\n".join(lines) + "\n")
    flows = case.get("flows", [])
    rows = [f"{src} {dst} 3 100 {size} {start}" for src, dst, size, start in flows]
    (folder / "flow.txt").write_text("\n".join([str(len(flows)), *rows]) + "\n")
    traced = case.get("traced", [])
    (folder / "trace.txt").write_text(f"{len(traced)}\n{' '.join(map(str, traced))}\n")
    settings = {**BASE, **case.get("config", {})}
    (folder / "config.txt").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    if "collective" not in case:
        return ["AstraSimNetwork", "--network-configuration=config.txt"]
    return write_collective(folder, case)


def write_collective(folder, case):
    kinds = {"all-reduce": "ring", "all-gather": "ring", "reduce-scatter": "ring", "all-to-all": "direct", **case.get("algorithm", {})}
    dims = case["dims"]
    system = {**SYSTEM, **{f"{kind}-implementation": [name] * len(dims) for kind, name in kinds.items()}}
    (folder / "system.json").write_text(json.dumps(system))
    (folder / "memory.json").write_text('{"memory-type": "NO_MEMORY_EXPANSION"}')
    (folder / "logical.json").write_text(json.dumps({"logical-dims": [str(count) for count in dims]}))
    return ["AstraSimNetwork", "--workload-configuration=traces", "--system-configuration=system.json",
            "--network-configuration=config.txt", "--remote-memory-configuration=memory.json",
            "--logical-topology-configuration=logical.json"]
