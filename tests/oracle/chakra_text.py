#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executable specification of the Text conversion (docs/spec/chakra.md, section 4.3): ASTRA-sim 1.0 workload -> .et files.

  chakra_text.py --input FILE --output PREFIX --num-npus N --num-passes N [--num-dims D]
      writes PREFIX.<npu>.et and PREFIX.<npu>.jsonl; --num-dims gives the older form with involved_dim
  chakra_text.py --random SEED --out DIR        random case: input.txt, args.json, out.<npu>.et, out.<npu>.jsonl
  chakra_text.py --verify DIR                   every case of DIR/manifest.json that uses Text; exit status, .et, .jsonl

Exit status 1 and a one-line message where the reference fails. Then no output is written (the reference leaves partial
files in some of these cases).

How a pass is described: each policy has two lists of rules, one applied to the layers upwards (0..n-1), one downwards.
A rule "X <- deps" creates node X of the current layer i; deps are taken in order:
    Y     node Y of layer i          Y-   of layer i-1, if i > 0       Y+   of layer i+1, if i < n-1
    Y^    of layer i, if i = n-1     Y'   of layer i in the previous pass, if it exists
    Y'|Z' the first of the two that exists                            Y@k  of layer 0, if i = k     Y?0 of layer 0, if i = 0 and it exists
A rule may carry a condition after "when".
"""
import argparse
import json
import os
import random
import sys
import tempfile

from chakra_feeder import write_et, write_jsonl

MODEL_UP = ["F <- FC- WG'", "FC <- F"]
MODEL_DOWN = ["IG <- FC^ WG+ IGC+", "IGC <- IG when inner", "WG <- IG"]
HYBRID_UP = ["F <- WGC' FC-", "FC <- F"]
DLRM = (["F <- WGC'|WG' F- FC@k", "FC <- F when fwd_alltoall"],
        ["WG <- F^ IG+ IGC?0", "WGC <- WG when wg_comm", "IG <- WG when above_bottom", "IGC0 <- IG when first_top"])
POLICIES = {
    "MICRO": (["WGC <-"], []),
    "DATA": (["F <- F- WGC'"], ["WG <- F^ IG+", "WGC <- WG", "IG <- WG when above_bottom"]),
    "MODEL": (MODEL_UP, MODEL_DOWN),
    "HYBRID_DATA_MODEL": (HYBRID_UP, MODEL_DOWN + ["WGC <- WG"]),
    "HYBRID_MODEL_DATA": (HYBRID_UP, MODEL_DOWN + ["WGC <- WG"]),
    "HYBRID_DLRM": DLRM,
    "HYBRID_DLRM_ENHANCED": DLRM,
}
PHASE_NAMES = {"F": "FWD", "IG": "BWD_IG", "WG": "BWD_WG"}
COLUMN = {"F": 2, "FC": 3, "IG": 5, "IGC": 6, "WG": 8, "WGC": 9}       # time, or communication name followed by size
COMM_TYPES = {"ALLREDUCE": 0, "ALLGATHER": 2, "ALLTOALL": 6, "REDUCESCATTER": 7}
SCHEMA, OLD_SCHEMA = "1.0.2-chakra.1.0.0", "1.0.2-chakra.0.0.4"


class InputError(ValueError):
    """The input is rejected."""


class Workload:
    """The parsed text file."""

    def __init__(self, text):
        lines = text.split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        if len(lines) < 2 or not lines[0].split():
            raise InputError("policy or layer count missing")
        self.policy, *arguments = lines[0].split()
        if self.policy not in POLICIES:
            raise InputError("unsupported policy " + self.policy)
        self.count = integer(lines[1])
        self.last_bottom = None
        if self.policy.startswith("HYBRID_DLRM"):
            if not arguments:
                raise InputError("index of the last bottom layer missing")
            self.last_bottom = integer(arguments[0])
        self.layers = [self.layer(line, number) for number, line in enumerate(lines[2:], 3)]

    @staticmethod
    def layer(line, number):
        words = line.split()
        if len(words) < 12:
            raise InputError("line %d has fewer than 12 columns" % number)
        for column in (2, 4, 5, 7, 8, 10):
            words[column] = integer(words[column])
        return words


def integer(text):
    try:
        return int(text)
    except ValueError:
        raise InputError("not an integer: %r" % text) from None


class Expansion:
    """All passes of one NPU. Node ids continue from first_id."""

    def __init__(self, work, passes, first_id, dims=None):
        self.work, self.dims, self.next_id, self.nodes = work, dims, first_id, []
        self.now, self.before = {}, {}                        # (rule name, layer) -> node id, this and previous pass
        up, down = POLICIES[work.policy]
        count = len(work.layers)
        for _ in range(passes):
            self.before, self.now = self.now, {}
            for rules, layers in ((up, range(count)), (down, reversed(range(count)))):
                for layer in layers:
                    for rule in rules:
                        self.apply(rule, layer)

    def apply(self, rule, layer):
        target, _, right = rule.partition(" <-")
        wanted, _, condition = right.partition(" when ")
        if condition and not self.holds(condition, layer):
            return
        parents = [p for word in wanted.split() for p in self.resolve(word, layer)]
        owner = 0 if target == "IGC0" else layer
        target = target.rstrip("0")
        self.now[target, owner] = self.emit(target, owner, parents)

    def holds(self, condition, layer):
        words, top = self.work.layers[layer], len(self.work.layers) - 1
        return {"above_bottom": layer > 0,
                "inner": top - layer != self.work.count - 1,
                "fwd_alltoall": words[COLUMN["FC"]] == "ALLTOALL",
                "wg_comm": words[COLUMN["WGC"]] != "NONE",
                "first_top": self.work.last_bottom is not None and layer == self.work.last_bottom + 1}[condition]

    def resolve(self, word, layer):
        """Node ids meant by one dependency word, an empty list when it does not apply."""
        top = len(self.work.layers) - 1
        if "'" in word:
            known = [self.before[name.rstrip("'"), layer] for name in word.split("|")
                     if (name.rstrip("'"), layer) in self.before]
            return known[:1]
        if word.endswith("?0"):
            found = self.now.get((word[:-2], 0))
            return [found] if layer == 0 and found is not None else []
        place = {"-": (layer > 0, layer - 1), "+": (layer < top, layer + 1), "^": (layer == top, layer)}.get(word[-1])
        if word.endswith("@k"):
            place = (layer == self.work.last_bottom, 0)
        applies, owner = place or (True, layer)
        if not applies:
            return []
        name = word.rstrip("-+^").replace("@k", "")
        if (name, owner) not in self.now:
            raise InputError("layer %d needs node %s of layer %d, which does not exist" % (layer, name, owner))
        return [self.now[name, owner]]

    def emit(self, target, layer, parents):
        words, column = self.work.layers[layer], COLUMN[target]
        node = {"id": self.next_id, "name": "", "type": "COMP_NODE", "ctrl_deps": [], "data_deps": parents,
                "start_time_micros": 0, "duration_micros": 0, "attr": []}
        self.next_id += 1
        if target in PHASE_NAMES:
            node["name"] = "COMP_NODE_%s_%s" % (words[0], PHASE_NAMES[target])
            node["duration_micros"] = words[column]
            if words[column] < 0:
                raise InputError("negative time in layer %s" % words[0])
        else:
            mark = "_IG_COMM_" if target == "IGC" and self.work.policy == "HYBRID_DATA_MODEL" else ""
            node["name"] = "COMM_COLL_NODE_%s%s_%s" % (words[0], mark, words[column])
            node["type"] = "COMM_COLL_NODE"
            node["attr"] = self.comm_attributes(target, words[column], words[column + 1])
        self.nodes.append(node)
        return node["id"]

    def comm_attributes(self, target, name, size):
        kind = {"name": "comm_type", "int64_val": COMM_TYPES.get(name, 0)}
        if self.dims is None:
            return [kind, {"name": "comm_size", "int64_val": size}]
        first = {"HYBRID_DATA_MODEL": target != "WGC", "HYBRID_MODEL_DATA": target == "WGC"}.get(self.work.policy)
        involved = [first is None or first == (i == 0) for i in range(self.dims)]
        return [kind, {"name": "comm_size", "uint64_val": size}, {"name": "involved_dim", "bool_list": involved}]


def convert(text, npus, passes, dims=None):
    """[(metadata, nodes)] per NPU."""
    work, results, next_id = Workload(text), [], 0
    metadata = {"global": {"version": "", "attr": [
        {"name": "schema", "string_val": SCHEMA if dims is None else OLD_SCHEMA}, {"name": "input_file", "string_val": text}]}}
    for _ in range(npus):
        expansion = Expansion(work, passes, next_id, dims)
        next_id = expansion.next_id
        results.append((metadata, expansion.nodes))
    return results


def write_outputs(prefix, results):
    for npu, (metadata, nodes) in enumerate(results):
        write_et("%s.%d.et" % (prefix, npu), metadata, nodes)
        write_jsonl("%s.%d.jsonl" % (prefix, npu), metadata, nodes)


# --------------------------------------------------------------------------------------------- random, verification

def random_text(rng):
    policy, count = rng.choice(sorted(POLICIES)), rng.randint(1, 9)
    head = policy
    if "DLRM" in policy:
        count = max(count, 3)
        head += " %d" % rng.randint(1, count - 2)
    names = ["ALLREDUCE", "ALLTOALL", "ALLGATHER", "REDUCESCATTER", "NONE"]
    lines = [head, str(count)]
    for layer in range(count):
        words = ["layer%d" % layer, "-1"]
        for phase in range(3):
            forward_of_first = phase == 0 and layer == 0 and "DLRM" in policy
            comm = "ALLTOALL" if forward_of_first else rng.choice(names)
            words += [str(rng.randrange(100000)), comm, str(0 if comm == "NONE" else rng.randrange(1 << 24))]
        lines.append(rng.choice(["\t", " "]).join(words + [str(rng.randrange(100))]))
    return "\n".join(lines) + "\n"


def write_random(seed, out):
    rng = random.Random(seed)
    text, npus, passes = random_text(rng), rng.randint(1, 3), rng.randint(1, 3)
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "input.txt"), "w") as file:
        file.write(text)
    with open(os.path.join(out, "args.json"), "w") as file:
        json.dump(["Text", "--input", "input.txt", "--output", "out", "--num-npus", str(npus), "--num-passes", str(passes)], file)
    write_outputs(os.path.join(out, "out"), convert(text, npus, passes))


def option(words, name):
    names = ["--" + name, "--" + name.replace("-", "_")]
    return next((int(words[i + 1]) for i, word in enumerate(words) if word in names), None)


def same_files(folder, results):
    """Compare .et bytes and .jsonl of every NPU that has stored results."""
    equal = True
    with tempfile.TemporaryDirectory() as scratch:
        write_outputs(os.path.join(scratch, "out"), results)
        for npu in range(len(results)):
            for suffix in ("et", "jsonl"):
                name = "out.%d.%s" % (npu, suffix)
                if os.path.exists(os.path.join(folder, name)):
                    wanted = open(os.path.join(folder, name), "rb").read()
                    equal &= wanted == open(os.path.join(scratch, name), "rb").read()
    return equal


def verify(root):
    counts = {"converted": [0, 0], "rejected": [0, 0]}
    for entry in json.load(open(os.path.join(root, "manifest.json"))):
        words = [str(word) for word in entry.get("args", [])]
        if "Text" not in words:
            continue
        folder = os.path.join(root, entry["dir"])
        with open(os.path.join(folder, "input.txt")) as file:
            text = file.read()
        try:
            results = convert(text, option(words, "num-npus"), option(words, "num-passes"), option(words, "num-dims"))
            ok = entry["exit"] == 0 and same_files(folder, results)
        except InputError:
            ok = entry["exit"] != 0
        counts["converted" if entry["exit"] == 0 else "rejected"][not ok] += 1
        if not ok:
            print("differs:", entry["case"])
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input")
    parser.add_argument("--output")
    parser.add_argument("--num-npus", type=int, default=1)
    parser.add_argument("--num-passes", type=int, default=1)
    parser.add_argument("--num-dims", type=int)
    parser.add_argument("--random", type=int, metavar="SEED")
    parser.add_argument("--out", default="text_case")
    parser.add_argument("--verify", metavar="DIR")
    args = parser.parse_args()
    if args.random is not None:
        return write_random(args.random, args.out)
    if args.verify:
        counts = verify(args.verify)
        print(json.dumps(counts))
        return 1 if any(bad for _, bad in counts.values()) else 0
    if not args.input or not args.output:
        parser.error("--input and --output are required")
    with open(args.input) as file:
        text = file.read()
    try:
        write_outputs(args.output, convert(text, args.num_npus, args.num_passes, args.num_dims))
    except InputError as error:
        print("error:", error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
