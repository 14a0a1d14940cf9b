#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executable specification of the symbolic training-graph generator.

Follows docs/spec/stage.md in compat mode (section numbers are given with each
part).  Writes the Chakra v0.0.4 rank files byte for byte, the group file, the
memory report and a decoded form of every node.

    stage.py --output_dir D --output_name w.%d.et [--dp 2 --tp 2 ...]
    stage.py --random SEED --output_dir D
    stage.py --check DIR [DIR ...]        golden configuration directories

Extra options: --tag_base N (default 0), --decoded FILE, --json (writer of
section 14.2), --templates DIR (module CSV files; default: those of the golden data, $ORR_GOLDEN/stage).
Environment: STAGE_LEGACY_ATTR, STAGE_MERGE_COMMS, STAGE_MICROBATCH_OPTIMIZE
(section 15).
"""
import ast
import csv
import hashlib
import itertools
import json
import math
import os
import pathlib
import random
import sys
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

TEMPLATES = str(pathlib.Path(os.environ.get("ORR_GOLDEN", ".")) / "stage" / "templates")
AXES = ("dp", "tp", "cp", "ep")          # inference order, section 10


# ------------------------------------------------- expressions (section 2)

class Expr:
    """Canonical sum: terms are (coefficient, symbol powers, sum factors)."""
    __slots__ = ("terms", "text")

    def __init__(self, terms):
        merged = {}
        for coefficient, powers, sums in terms:
            key = powers, sums
            merged[key] = merged.get(key, 0) + coefficient
        self.terms = tuple((c, p, s) for (p, s), c in merged.items() if c)
        self.text = self._print()

    def __eq__(self, other):
        return self.text == other.text

    def __hash__(self):
        return hash(self.text)

    def __str__(self):
        return self.text

    def __add__(self, other):
        return Expr(self.terms + other.terms)

    def __mul__(self, other):
        if not self.terms or not other.terms:
            return Expr(())
        (c1, p1, s1), (c2, p2, s2) = self._as_term(), other._as_term()
        powers = dict(p1)
        for symbol, k in p2:
            powers[symbol] = powers.get(symbol, 0) + k
        kept = tuple(sorted((s, k) for s, k in powers.items() if k))
        sums = tuple(sorted(s1 + s2, key=str))
        if not kept and len(sums) == 1:          # number x sum distributes
            return Expr([(c1 * c2 * c, p, s) for c, p, s in sums[0].terms])
        return Expr([(c1 * c2, kept, sums)])

    def _as_term(self):
        return self.terms[0] if len(self.terms) == 1 else (Fraction(1), (), (self,))

    def inverse(self):
        (coefficient, powers, sums), = self.terms
        if sums:
            raise ValueError(f"cannot divide by {self}")
        return Expr([(1 / coefficient, tuple((s, -k) for s, k in powers), ())])

    def power(self, k):
        base = self if k >= 0 else self.inverse()
        return product([base] * abs(k))

    def symbols(self):
        found = set()
        for _, powers, sums in self.terms:
            found.update(s for s, _ in powers)
            for inner in sums:
                found |= inner.symbols()
        return found

    def rewrite(self, symbol, by):
        """Replace a symbol by an expression."""
        if symbol not in self.symbols():
            return self
        total = Expr(())
        for coefficient, powers, sums in self.terms:
            factors = [(by if s == symbol else name(s)).power(k) for s, k in powers]
            factors += [inner.rewrite(symbol, by) for inner in sums]
            total = total + number(coefficient) * product(factors)
        return total

    def value(self, env):
        """Exact rational value (section 2.4)."""
        total = Fraction(0)
        for coefficient, powers, sums in self.terms:
            for s, k in powers:
                coefficient *= Fraction(env[s]) ** k
            for inner in sums:
                coefficient *= inner.value(env)
            total += coefficient
        return total

    def _print(self):
        if not self.terms:
            return "0"
        generators = sorted({s for _, p, _ in self.terms for s, _ in p})
        nested = sorted({str(x) for _, _, s in self.terms for x in s})

        def rank(term):
            powers, inside = dict(term[1]), [str(x) for x in term[2]]
            return ([-powers.get(g, 0) for g in generators] + [-inside.count(x) for x in nested])
        return " + ".join(term_text(*t) for t in sorted(self.terms, key=rank))


def term_text(coefficient, powers, sums):
    """Text of one term (section 2.3)."""
    show = lambda s, k: s if k == 1 else f"{s}**{k}"
    over = [show(s, k) for s, k in powers if k > 0] + [f"({x})" for x in sums]
    under = [show(s, -k) for s, k in powers if k < 0]
    if coefficient.numerator != 1 or not over:
        over.insert(0, str(coefficient.numerator))
    if coefficient.denominator != 1:
        under.insert(0, str(coefficient.denominator))
    text = "*".join(over)
    if len(under) > 1:
        return f"{text}/({'*'.join(under)})"
    return f"{text}/{under[0]}" if under else text


def number(value):
    return Expr([(Fraction(value), (), ())])


def name(symbol):
    return Expr([(Fraction(1), ((symbol, 1),), ())])


def product(factors):
    result = number(1)
    for x in factors:
        result = result * x
    return result


PARSED = {}


def parse(text):
    """Expression of the grammar of section 2.1 (cached by text)."""
    if text not in PARSED:
        PARSED[text] = from_tree(ast.parse(text.strip(), mode="eval").body)
    return PARSED[text]


def from_tree(node):
    if isinstance(node, ast.Name):
        return name(node.id)
    if isinstance(node, ast.Constant):
        return number(Fraction(str(node.value)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return number(-1) * from_tree(node.operand)
    if not isinstance(node, ast.BinOp):
        raise ValueError("not an expression of section 2.1")
    left, right = from_tree(node.left), from_tree(node.right)
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left + number(-1) * right
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.Div):
        return left * right.inverse()
    if isinstance(node.op, ast.Pow):
        return left.power(int(right.value({})))
    raise ValueError("not an operator of section 2.1")


# ----------------------------------------------------- tensors (section 3)

class Layout(NamedTuple):
    """Local shape and partial-sum extents."""
    shape: tuple
    hidden: tuple

    def size(self):
        return product(self.shape)

    def rewrite(self, symbol, by):
        return Layout(*(tuple(x.rewrite(symbol, by) for x in part) for part in self))


ONE = (number(1),)


@dataclass(eq=False)
class Tensor:
    """A tensor and the operation that makes it; `need_*` = operand layouts."""
    name: str
    op: str
    need_a: Layout = None
    a: "Tensor" = None
    b: "Tensor" = None
    need_b: Layout = None
    attr: str = None
    rev: int = 0
    param: bool = False
    grad_of: "Tensor" = None
    extra: list = field(default_factory=list)
    made: Layout = None                      # cache of output()

    @property
    def ident(self):
        return f"{self.name}@{self.rev}"

    @property
    def leaf(self):
        return self.name.rsplit(".", 1)[-1]

    def output(self):
        if self.made is None:
            self.made = output_layout(self)
        return self.made

    def touch(self):
        """Forget the cached output after an edit."""
        self.made = None


def output_layout(t):
    """Column `y_shape @ y_hidden` of the table in section 3.1."""
    if t.op in ("R", "CUSTOM"):
        return t.need_b
    shape, hidden = t.need_a
    if t.op == "M":
        operands, result = t.attr.split("->")
        first, second = operands.split(",")
        extent = dict(zip(second, t.need_b.shape))
        extent.update(zip(first, shape))
        return Layout(tuple(extent[x] for x in result),
                      tuple(extent[x] for x in first if x not in result))
    if t.op in ("SLICE", "B", "C"):
        axis, _, factor = t.attr.partition(":" if t.op == "SLICE" else "*")
        changed = list(shape)
        i = int(axis)
        if t.op == "SLICE":
            changed[i] = parse(factor)
        elif t.op == "B":
            changed[i] = changed[i] * parse(factor)
        else:
            changed[i] = changed[i] + t.need_b.shape[i]
        return Layout(tuple(changed), hidden)
    return t.need_a


def operations(t):
    """Column `ops` of the table in section 3.1."""
    if t.op in ("T", "I", "S"):
        return number(0)
    if t.op == "CUSTOM":
        return parse(t.attr)
    made = t.output()
    if t.op in ("E", "E2"):
        return parse(t.attr) * made.size()
    if t.op == "M":
        return made.size() * product(made.hidden)
    return made.size()


def read_layout(shape, hidden):
    if not shape and not hidden:
        return None
    split = lambda text: tuple(parse(x) for x in text.split(",")) if text else ()
    return Layout(split(shape), split(hidden))


def load_module(path):
    """Template CSV of section 4."""
    with open(path, newline="", encoding="utf-8-sig") as f:
        rows = [r for r in csv.DictReader(f) if r["id"]]
    known = {}
    for r in rows:
        known[r["id"]] = Tensor(r["id"], r["op_type"], read_layout(r["x1_shape"], r["x1_hidden"]),
                                need_b=read_layout(r["x2_shape"], r["x2_hidden"]),
                                attr=r["op_attr"] or None, param=r["require_grads"] == "Y")
    for r in rows:
        t = known[r["id"]]
        t.a, t.b, t.grad_of = (known[r[k]] if r[k] else None for k in ("x1", "x2", "grad_of"))
        more = json.loads(r.get("extra_attr") or "{}")
        t.extra = [known[x] for x in more.get("data_deps", [])]
    return list(known.values())


def rewrite_tensor(t, symbol, text):
    """Section 5.4: symbolic in shapes, textual in some attributes."""
    by = parse(text)
    t.need_a, t.need_b = (x and x.rewrite(symbol, by) for x in (t.need_a, t.need_b))
    if t.op in ("SLICE", "B", "CUSTOM"):
        t.attr = t.attr.replace(symbol, f"({text})")
    t.touch()


def copied(tensors, prefix, changes=(), shared=()):
    """Copy a graph under a name prefix; tensors in `shared` are not copied."""
    twin = {t: replace(t, name=prefix + t.name, extra=list(t.extra))
            for t in tensors if t not in shared}
    for t in twin.values():
        t.a, t.b, t.grad_of = (twin.get(x, x) for x in (t.a, t.b, t.grad_of))
        t.extra = [twin.get(x, x) for x in t.extra]
        for symbol, text in changes:
            rewrite_tensor(t, symbol, text)
    return list(twin.values())


def link(tensors, table):
    """Each `a>b` in the table turns placeholder b into an I of a (section 5)."""
    by_name = {t.name: t for t in tensors}
    for entry in table.split():
        source, target = (by_name[x] for x in entry.split(">"))
        feed(target, source)


def feed(target, source):
    if target.op != "T":
        raise ValueError(f"{target.name} is already driven")
    target.op, target.a = "I", source


# ---------------------------------------------- model assembly (section 5)

ATTENTION_LINKS = """q>attn_kernel.q k>attn_kernel.k v>attn_kernel.v
    attn_kernel.dq>dq attn_kernel.dk>dk attn_kernel.dv>dv
    attn_kernel.qkv>attn dattn>attn_kernel.dqkv"""
LAYER_LINKS = """input_norm.y>mha.x mha.o>mha_res.x1 input_norm.x>mha_res.x2
    mha_res.dx1>mha.do mha_res.y>post_attn_norm.x post_attn_norm.dx>mha_res.dy
    post_attn_norm.y>{body_x} {body_y}>ffn_res.x1 post_attn_norm.x>ffn_res.x2
    ffn_res.dx1>{body_dy}"""
EXPERT_LINKS = """{p}.ldis.x_expert>{p}.ffn.x0 {p}.ffn.xdown>{p}.ldis.y_expert
    {p}.ldis.dy_expert>{p}.ffn.dxdown {p}.ffn.dx0>{p}.ldis.dx_expert
    moe.xrouted>{p}.ldis.x moe.dyrouted>{p}.ldis.dy"""
EXPERT_TOKENS = ("Seq", "Seq*KExperts/(Experts*ep)")


class Library:
    """Template directory of a model choice (section 4.1)."""

    def __init__(self, opt, root):
        kind = opt["model_type"]
        if kind == "moe":
            self.folder, self.attention = "tpsp_moe", "tpsp"
        elif kind == "debug" or (kind in ("dense", "llama") and opt["mixed_precision"]):
            self.folder = self.attention = "tpsp"
        else:
            self.folder = self.attention = "tpsp_gpt" if opt["tpsp"] else "tp_gpt"
        self.root = root

    def get(self, module, prefix="", changes=()):
        folder = self.attention if module.startswith("group_query") else self.folder
        return copied(load_module(os.path.join(self.root, folder, module + ".csv")), prefix, changes)


def attention(lib):
    tensors = (lib.get("group_query_attention_surrounding")
               + lib.get("group_query_attention_kernel_fused", "attn_kernel."))
    link(tensors, ATTENTION_LINKS)
    return tensors


def expert_sum(tensors, experts, source, target):
    """One reduction chain over the experts and its consumer."""
    by_name = {t.name: t for t in tensors}
    parts = [by_name[f"moe.{i}.ldis.{source}"] for i in range(experts)]
    total, layout = parts[0], parts[0].output()
    for i in range(1, experts):
        total = Tensor(f"moe.{target}_r{i}", "E2", layout, total, parts[i], layout,
                       attr="1" if i == experts - 1 else "0")
        tensors.append(total)
    feed(by_name["moe." + target], total)


def expert_block(lib, experts):
    tensors = lib.get("moe_frame", "moe.")
    for i in range(experts):
        p = f"moe.{i}"
        tensors += lib.get("expert_wrapper", p + ".ldis.")
        tensors += lib.get("llama_feed_forward_network", p + ".ffn.", [EXPERT_TOKENS])
        link(tensors, EXPERT_LINKS.format(p=p))
    expert_sum(tensors, experts, "dx", "dxrouted")
    expert_sum(tensors, experts, "y", "yrouted")
    return tensors


def join_gradients(tensors, target, first, second):
    """A placeholder gradient becomes the sum of two tensors."""
    by_name = {t.name: t for t in tensors}
    t = by_name[target]
    t.op, t.a, t.b, t.need_b = "A", by_name[first], by_name[second], t.need_a


def decoder_layer(lib, experts):
    """One layer; `experts` is None for dense models (section 5)."""
    if experts is None:
        body = lib.get("llama_feed_forward_network", "ffn.")
        names = {"body_x": "ffn.x0", "body_y": "ffn.xdown", "body_dy": "ffn.dxdown"}
        body_dx = "ffn.dx0"
    else:
        body = expert_block(lib, experts)
        names = {"body_x": "moe.x", "body_y": "moe.y", "body_dy": "moe.dy"}
        body_dx = "moe.dx"
    tensors = (lib.get("layer_norm", "input_norm.") + copied(attention(lib), "mha.")
               + lib.get("residual", "mha_res.") + lib.get("layer_norm", "post_attn_norm.")
               + body + lib.get("residual", "ffn_res."))
    link(tensors, LAYER_LINKS.format(**names))
    join_gradients(tensors, "input_norm.dy", "mha.dx", "mha_res.dx2")
    join_gradients(tensors, "post_attn_norm.dy", body_dx, "ffn_res.dx2")
    return merge_weights(tensors)


def merge_weights(tensors):
    """Weight sharding manager (section 5.1)."""
    weights = [t for t in tensors if t.param]
    gradient = {t.grad_of: t for t in tensors if t.grad_of}
    first, *others = [gradient[w] for w in weights]
    total = Expr([x for w in weights for x in w.output().size().terms])
    whole = Layout((total,), ONE)
    shard = Layout((total * name("fsdp").inverse(),), ONE)
    sharded = Tensor("_sharded_weight", "T", shard, param=True)
    assembled = Tensor("_assembled_weight", "I", whole, sharded)
    again = Tensor("_assembled_weight_backward", "I", whole, sharded)
    collected = Tensor("_assembled_grad", "CUSTOM", first.output(), first, attr="0", extra=others,
                       need_b=Layout((total,), first.output().hidden))
    reduced = Tensor("_sharded_grad", "I", shard, collected, grad_of=sharded)
    backward = {w: Tensor(f"_{w.name}_backward", "CUSTOM", whole, again, attr="0", need_b=w.output())
                for w in weights}
    for t in tensors:
        if t.leaf.startswith("d"):
            t.a, t.b = backward.get(t.a, t.a), backward.get(t.b, t.b)
    for w in weights:
        w.op, w.attr, w.param, w.a = "CUSTOM", "0", False, assembled
        w.need_a, w.need_b = whole, w.output()
        w.touch()
    return tensors + [sharded, assembled, reduced, collected, *backward.values(), again]


def whole_model(opt, lib):
    """Section 5.2."""
    experts = None
    if opt["model_type"] == "moe":
        if opt["experts"] % opt["ep"]:
            raise ValueError("experts must be a multiple of ep")
        experts = opt["experts"] // opt["ep"]
    layer, depth = decoder_layer(lib, experts), opt["num_stacks"]
    tensors = [t for i in range(depth) for t in copied(layer, f"transformer.{i}.")]
    tensors += lib.get("embedding", "in_emb.", [("Din", "Dvocal"), ("Dout", "Dmodel")])
    tensors += lib.get("embedding", "out_emb.", [("Din", "Dmodel"), ("Dout", "Dvocal")])
    tensors += lib.get("loss", "loss.")
    chain = ["in_emb.y>transformer.0.input_norm.x transformer.0.input_norm.dx>in_emb.dy"]
    for i in range(1, depth):
        chain.append(f"transformer.{i-1}.ffn_res.y>transformer.{i}.input_norm.x "
                     f"transformer.{i}.input_norm.dx>transformer.{i-1}.ffn_res.dy")
    last = f"transformer.{depth-1}.ffn_res"
    chain.append(f"{last}.y>out_emb.x out_emb.dx>{last}.dy out_emb.y>loss.y loss.dy>out_emb.dy")
    link(tensors, " ".join(chain))
    return tensors


def micro_batches(tensors, count):
    """Section 5.3: copies and shared parameters; also the merged gradient of each parameter."""
    params = [t for t in tensors if t.param]
    sources = [t for t in tensors if t.grad_of in params]
    copies = [copied(tensors, f"mb{m}.", [("Batch", "MicroBatch")], set(params)) for m in range(count)]
    result = [t for graph in copies for t in graph]
    index = {t.name: t for t in result}
    merged = {}
    for g in sources:
        parts = [index[f"mb{m}.{g.name}"] for m in range(count)]
        layout = parts[0].output()
        merged[g.grad_of] = Tensor(g.name, "CUSTOM", layout, parts[0], need_b=layout,
                                   attr=str(layout.size()), extra=parts[1:])
    return result + list(merged.values()) + params, merged


def finish_graph(tensors, gradient, sharded):
    """Section 5.4: resolve fsdp, append the weight updates."""
    for t in tensors:
        rewrite_tensor(t, "fsdp", "dp" if sharded else "1")
    updates = []
    for w in [t for t in tensors if t.param]:
        layout = w.output()
        updates.append(Tensor(w.name, "A", layout, w, gradient[w], layout, rev=1, param=True))
    return tensors + updates


def build_graph(opt, lib, single):
    """All symbolic passes (steps 1-6 of section 1); `single`: one micro-batch, see clone_nodes."""
    if opt["model_type"] == "debug":
        tensors = lib.get("embedding", "", [("Din", "Dvocal"), ("Dout", "Dvocal"),
                                            ("Batch", "MicroBatch")])
        gradient = {t.grad_of: t for t in tensors if t.grad_of}
    elif opt["batch"] % opt["micro_batch"]:
        raise ValueError("micro_batch must divide batch")
    elif single:
        tensors = whole_model(opt, lib)
        for t in tensors:
            rewrite_tensor(t, "Batch", "MicroBatch")
        gradient = {t.grad_of: t for t in tensors if t.grad_of}
    else:
        tensors, gradient = micro_batches(whole_model(opt, lib), opt["batch"] // opt["micro_batch"])
    return finish_graph(tensors, gradient, opt["weight_sharded"])


# ------------------------------------- stages, ranks, groups (sections 6-8)

def stage_of(t, opt):
    depth, stages = opt["num_stacks"], opt["pp"]
    parts = t.name.split(".")
    if "transformer" in parts:
        base, more = divmod(depth, stages)
        layer, wide = int(parts[parts.index("transformer") + 1]), more * (base + 1)
        return layer // (base + 1) if layer < wide else more + (layer - wide) // base
    if "in_emb" in t.name or opt["model_type"] == "debug":
        return 0
    return stages - 1 if opt["mixed_precision"] else (depth - 1) % stages


def split_stages(tensors, opt):
    """Per-stage lists with shadows, and the (remote, shadow) pairs."""
    if opt["pp"] > opt["num_stacks"]:
        raise ValueError("more stages than layers")
    home = {t: stage_of(t, opt) for t in tensors}
    stages = [[t for t in tensors if home[t] == s] for s in range(opt["pp"])]
    pairs = []
    for s, members in enumerate(stages):
        shadows = {}

        def local(x):
            if x is None or home[x] == s:
                return x
            if x not in shadows:
                shadows[x] = Tensor("shadow_" + x.name, "S", x.output(), rev=x.rev)
            return shadows[x]
        for t in members:
            t.a, t.b = local(t.a), local(t.b)
        pairs += [(home[x], x, s, shadow) for x, shadow in shadows.items()]
        members += shadows.values()
    return stages, pairs


class Grid:
    """Rank numbers and communicator groups (sections 7 and 8)."""

    def __init__(self, opt, env):
        routed = opt["model_type"] in ("moe", "debug")
        self.spatial = AXES if routed else AXES[:3]
        self.slow_to_fast = ("ep", "cp", "tp", "dp") if routed else ("cp", "tp", "dp")
        self.degree, self.stages = env, opt["pp"]
        self.groups, self.group_of = {}, {}
        for axis in self.spatial:
            rest = [x for x in self.spatial if x != axis]
            for place in itertools.product(range(self.stages), *(range(env[x]) for x in rest)):
                at = dict(zip(rest, place[1:]))
                gid = len(self.groups) + 1
                members = [self.rank(place[0], {**at, axis: i}) for i in range(env[axis])]
                self.groups[str(gid)] = members
                self.group_of.update({(axis, r): gid for r in members})

    def rank(self, stage, at):
        r = stage
        for axis in self.slow_to_fast:
            r = r * self.degree[axis] + at[axis]
        return r

    def places(self):
        """Coordinates of the ranks of a stage, in rank order."""
        for place in itertools.product(*(range(self.degree[x]) for x in self.slow_to_fast)):
            yield dict(zip(self.slow_to_fast, place))


# ------------------------------------------------ nodes (sections 9 to 13)

@dataclass(eq=False)
class Node:
    id: int
    kind: str                    # COMP, COLL, SEND, RECV
    name: str
    size: float                  # elements; output size for COMP
    deps: list = field(default_factory=list)
    ops: float = 0.0
    op: str = ""
    collective: str = ""
    axis: str = ""
    tag: int = 0
    peer: int = 0                # stage
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    need_size: float = 0.0       # only for the JSON writer


@dataclass(eq=False)
class Bundle:
    """Nodes of one tensor, in file order."""
    comp: Node
    on_a: list = field(default_factory=list)
    on_b: list = field(default_factory=list)
    p2p: list = field(default_factory=list)

    def nodes(self):
        return ([self.comp] if self.comp else []) + self.on_a + self.on_b + self.p2p

    def result(self):
        return self.p2p[0] if self.p2p and self.p2p[0].kind == "RECV" else self.comp


def axis_class(layout, axis):
    """How a layout uses one axis (section 10)."""
    for extent in layout.shape:
        if axis in extent.symbols():
            for other in AXES:
                if other != axis:
                    extent = extent.rewrite(other, number(1))
            return "partitioned", extent.text
    if any(axis in x.symbols() for x in layout.hidden):
        return "partial", None
    return "replicated", None


def infer_collectives(produced, needed, live):
    """(type, axis) list for one operand (table of section 10)."""
    chain = []
    for axis in live:
        (have, had), (want, wanted) = axis_class(produced, axis), axis_class(needed, axis)
        if want == "partial" and have != "partial":
            raise ValueError(f"cannot make a partial sum over {axis}")
        kind = {("partitioned", "replicated"): "ALL_GATHER", ("partial", "replicated"): "ALL_REDUCE",
                ("partial", "partitioned"): "REDUCE_SCATTER"}.get((have, want))
        if have == want == "partitioned" and had != wanted:
            kind = "ALL_TO_ALL"
        if kind:
            chain.append((kind, axis))
    return chain


class Lowering:
    """Turns stages of tensors into nodes (sections 9, 11, 13)."""

    def __init__(self, opt, env, grid, tag_base):
        self.env, self.tag_base = env, tag_base
        self.live = [x for x in grid.spatial if env[x] > 1]
        self.mixed = opt["mixed_precision"]
        self.sharded = opt["weight_sharded"] and opt["dp"] > 1
        self.ids = itertools.count(1)
        self.values, self.chains, self.bundle = {}, {}, {}

    def number(self, expr):
        """Value rounded once to a double (section 2.4)."""
        if expr.text not in self.values:
            self.values[expr.text] = float(expr.value(self.env))
        return self.values[expr.text]

    def size(self, layout):
        return self.number(layout.size())

    def collectives(self, t, operand, needed, suffix):
        if operand is None:
            return []
        key = operand.output(), needed
        if key not in self.chains:
            self.chains[key] = infer_collectives(*key, self.live)
        chain = [Node(next(self.ids), "COLL", t.ident + suffix, self.size(operand.output()),
                      collective=kind, axis=axis, need_size=self.size(needed))
                 for kind, axis in self.chains[key]]
        for before, after in zip(chain, chain[1:]):
            after.deps.append(before.id)
        return chain

    def create(self, stages, pairs):
        """Nodes and ids (section 9)."""
        for t in itertools.chain(*stages):
            comp = Node(next(self.ids), "COMP", t.ident + "_COMP", self.size(t.output()),
                        ops=self.number(operations(t)), op=t.op)
            self.bundle[t] = Bundle(comp, self.collectives(t, t.a, t.need_a, "_X1COMM"),
                                    self.collectives(t, t.b, t.need_b, "_X2_COMM"))
        for i, (source, remote, target, shadow) in enumerate(pairs):
            tag, size = self.tag_base + i, self.size(remote.output())
            send = Node(next(self.ids), "SEND", remote.ident + "_Y_SEND", size, tag=tag, peer=target)
            recv = Node(next(self.ids), "RECV", shadow.ident + "_Y_RECV", size, tag=tag, peer=source)
            send.deps.append(self.bundle[remote].comp.id)
            self.bundle[remote].p2p.append(send)
            self.bundle[shadow].p2p.append(recv)

    def wire(self, members):
        """Dependencies (section 11)."""
        for t in members:
            b = self.bundle[t]
            b.comp.deps += [chain[-1].id for chain in (b.on_a, b.on_b) if chain]
            for operand, chain in ((t.a, b.on_a), (t.b, b.on_b)):
                if operand is not None:
                    (chain[0] if chain else b.comp).deps.append(self.bundle[operand].result().id)
            b.comp.deps += [self.bundle[x].result().id for x in t.extra]

    def describe(self, members):
        """inputs and outputs lists (section 13)."""
        for t in members:
            b, operands = self.bundle[t], [x for x in (t.a, t.b) if x is not None]
            b.comp.inputs, b.comp.outputs = [self.io(x) for x in operands], [self.io(t)]
            for operand, chain in ((t.a, b.on_a), (t.b, b.on_b)):
                for node in chain:
                    node.inputs = [self.io(operand)]
            for node in b.p2p:
                if node.kind == "RECV":
                    node.outputs = [self.io(t)]
                else:
                    node.inputs = [self.io(t)]

    def io(self, t):
        """(text, size) of a tensor; the size keeps its int or float nature."""
        if t.op == "I":
            t = t.a
        text = t.ident + (",".join(x.text for x in t.output().shape) or "1")
        if self.sharded and ("_assembled_weight" in text or "_assembled_grad" in text
                             or "_backward" in text.lower()
                             or text.lower().rsplit(".", 1)[-1].startswith("d")):
            return text, 0
        return text, self.io_size(t)

    def io_size(self, t):
        elements = self.size(t.output())
        if not self.mixed or elements == 0:
            return elements * 5 if t.param else elements
        if t.param:
            return int(1.5 * elements) * 4 + 4 * elements
        return int(0.5 * elements) * 4


def drop_empty(bundles):
    """Removal of compute nodes without work (section 12)."""
    while True:
        nodes = [n for b in bundles for n in b.nodes()]
        empty = [b for b in bundles if b.comp and b.comp.ops == 0]
        if not empty:
            return
        children = {}
        for n in nodes:
            for d in n.deps:
                children.setdefault(d, []).append(n)
        pending = {b.comp.id for b in empty}
        for b in empty:
            gone = b.comp
            if pending.intersection(gone.deps):
                continue
            b.comp = None
            for child in children.get(gone.id, ()):
                child.deps.remove(gone.id)
                child.deps.extend(gone.deps)


def merge_collectives(nodes):
    """STAGE_MERGE_COMMS (section 15), as rank 0 shows it."""
    by_id = {n.id: n for n in nodes}
    deps = {n.id: list(dict.fromkeys(n.deps)) for n in nodes}
    dropped = set()
    for n in nodes:
        for d in n.deps if n.kind == "COLL" else ():
            if by_id[d].kind == "COLL" and by_id[d].collective == n.collective:
                deps[n.id] += [x for x in deps[d] if x not in deps[n.id]]
                dropped.add(d)
    return [replace(n, deps=[x for x in deps[n.id] if x not in dropped])
            for n in nodes if n.id not in dropped]


def clone_nodes(bundles, count):
    """STAGE_MICROBATCH_OPTIMIZE (section 15): every node again per further micro-batch."""
    result = []
    for b in bundles:
        result += b.nodes()
        for k in range(1, count):
            shift = k * 10**9
            result += [replace(n, id=n.id + shift, name=f"mb{k}.{n.name}",
                               deps=[d + shift for d in n.deps]) for n in b.nodes()]
    return result


class Run:
    """One complete generation: groups, per-stage nodes, memory figures."""

    def __init__(self, opt, environment=None, templates=TEMPLATES, tag_base=0):
        environment = environment or {}
        self.opt, self.legacy = opt, environment.get("STAGE_LEGACY_ATTR") == "1"
        single = environment.get("STAGE_MICROBATCH_OPTIMIZE")
        if single == "0" or (single and opt["model_type"] == "moe"):
            raise ValueError("this use of STAGE_MICROBATCH_OPTIMIZE is not modelled")
        clones = opt["batch"] // opt["micro_batch"] if single else 1
        self.env = symbol_values(opt)
        tensors = build_graph(opt, Library(opt, templates), single)
        self.grid = Grid(opt, self.env)
        self.stages, pairs = split_stages(tensors, opt)
        low = self.low = Lowering(opt, self.env, self.grid, tag_base)
        low.create(self.stages, pairs)
        self.nodes = []
        for members in self.stages:
            low.wire(members)
            low.describe(members)
            bundles = [low.bundle[t] for t in members]
            drop_empty(bundles)
            nodes = clone_nodes(bundles, clones)
            merge = environment.get("STAGE_MERGE_COMMS") == "1"
            self.nodes.append(merge_collectives(nodes) if merge else nodes)

    def ranks(self):
        """(rank, stage, coordinates) in rank order."""
        for stage in range(self.opt["pp"]):
            for at in self.grid.places():
                yield self.grid.rank(stage, at), stage, at

    def decoded(self, rank, stage, at):
        """Nodes of one rank in the form of the golden trace.jsonl."""
        for n in self.nodes[stage]:
            entry = {"rank": rank, "id": n.id, "name": n.name, "type": TYPE_NAME[n.kind]}
            deps = list(dict.fromkeys(n.deps))
            if deps:
                entry["data_deps"] = deps
            entry["attr"] = self.attributes(n, rank, at)
            yield entry

    def attributes(self, n, rank, at):
        """Attribute list of section 14.1."""
        listed = []
        for key, items in (("inputs", n.inputs), ("outputs", n.outputs)):
            flat = [x for text, size in items for x in (text, str(size))]
            listed.append([key, "string_list" if flat else None, flat or None])
        if n.kind == "COMP":
            return listed + [["num_ops", "int64_val", int(n.ops)],
                             ["tensor_size", "uint64_val", int(n.size)], ["op_type", "string_val", n.op]]
        listed.append(["comm_size", "int64_val", int(n.size)])
        if n.kind == "COLL":
            group = self.grid.group_of[n.axis, rank]
            listed.append(["comm_type", "int64_val", COLLECTIVE_CODE[n.collective]])
            listed.append(["comm_group", "int32_val", group] if self.legacy
                          else ["pg_name", "string_val", str(group)])
        else:
            listed.append(["comm_tag", "int32_val", n.tag])
            listed.append(["comm_dst" if n.kind == "SEND" else "comm_src", "int32_val",
                           self.grid.rank(n.peer, at)])
        return listed if self.legacy else listed + [["is_cpu_op", "int32_val", 0]]

    def memory_lines(self):
        """Section 16; the debug model prints nothing."""
        if self.opt["model_type"] == "debug":
            return
        title = {"moe": "[MoE] ", "gpt": "[GPT] "}.get(self.opt["model_type"], "[Dense] ")
        figures = [self.stage_memory(s) for s in self.stages]
        for _, stage, at in self.ranks():
            place = ",".join([f"pp={stage}"] + [f"{k}={v}" for k, v in at.items()])
            gib = [x / 2**30 for x in figures[stage]]
            yield (f"{title}[GPU {place}] total={sum(gib):.3f} GiB | weights={gib[0]:.3f} | "
                   f"opt={gib[1]:.3f} | acts={gib[2]:.3f} | grads={gib[3]:.3f}")

    def stage_memory(self, members):
        """Bytes of weights, optimizer state, activations, gradients of a stage."""
        weights = opt = acts = grads = 0
        for t in members:
            if "_assembled_weight" in t.name or "_assembled_grad" in t.name:
                continue
            if t.param:
                e = self.low.size(t.output())
                weights += int(1.5 * e) * 4 if self.low.mixed else 4 * e
                opt += 4 * e
            elif t.grad_of is not None and "_sharded_grad" in t.name:
                grads += self.low.io(t)[1]
            elif "_backward" not in t.name.lower() and not t.leaf.lower().startswith("d"):
                acts += self.low.io(t)[1]
        return weights, opt, acts, grads


# -------------------------------------------------- output (section 14)

TYPE_NAME = {"COMP": "COMP_NODE", "SEND": "COMM_SEND_NODE", "RECV": "COMM_RECV_NODE",
             "COLL": "COMM_COLL_NODE"}
TYPE_CODE = {"COMP_NODE": 4, "COMM_SEND_NODE": 5, "COMM_RECV_NODE": 6, "COMM_COLL_NODE": 7}
COLLECTIVE_CODE = {"ALL_REDUCE": 0, "ALL_GATHER": 2, "ALL_TO_ALL": 6, "REDUCE_SCATTER": 7}
VALUE_FIELD = {"int32_val": 7, "int64_val": 9, "uint64_val": 13, "string_val": 29, "string_list": 30}


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(0x80 | value & 0x7F)
        value >>= 7
    out.append(value)
    return bytes(out)


def framed(payload):
    return varint(len(payload)) + payload


def block_field(number_, payload):
    """Length-delimited protobuf field."""
    return varint(number_ << 3 | 2) + framed(payload)


def attribute_bytes(key, kind, value):
    data = block_field(1, key.encode())
    if kind is None:
        return data
    if kind == "string_list":
        return data + block_field(30, b"".join(block_field(1, x.encode()) for x in value))
    if kind == "string_val":
        return data + block_field(29, value.encode())
    return data + varint(VALUE_FIELD[kind] << 3) + varint(value)


def node_bytes(entry):
    data = b"\x08" + varint(entry["id"]) + block_field(2, entry["name"].encode())
    data += b"\x18" + varint(TYPE_CODE[entry["type"]])
    if "data_deps" in entry:
        data += block_field(5, b"".join(varint(d) for d in entry["data_deps"]))
    return data + b"".join(block_field(10, attribute_bytes(*x)) for x in entry["attr"])


def trace_bytes(entries):
    """A whole .et file: metadata, then nodes, each with a length prefix."""
    schema = attribute_bytes("schema", "string_val", "symbolic_tensor_network")
    return framed(block_field(2, schema)) + b"".join(framed(node_bytes(x)) for x in entries)


JSON_KIND = {"COMP": "comp_node", "COLL": "coll_comm_node", "SEND": "comm_send_node",
             "RECV": "comm_recv_node"}


def json_nodes(run, rank, stage, at):
    """Object of the JSON writer (section 14.2)."""
    listed = []
    for n in run.nodes[stage]:
        y_size = {"COMP": n.size, "COLL": n.need_size, "SEND": 0, "RECV": n.size}[n.kind]
        sides = {key: [{"name": text, "size": size} for text, size in items]
                 for key, items in (("inputs", n.inputs), ("outputs", n.outputs))}
        entry = {"id": n.id, "name": n.name, "node_type": JSON_KIND[n.kind],
                 "y_tensor_size": int(y_size), **sides, "data_deps": n.deps, "ctrl_deps": []}
        if n.kind == "COMP":
            entry.update(num_ops=int(n.ops), tensor_size=int(n.size), op_type=n.op)
        elif n.kind == "COLL":
            entry.update(comm_size=int(n.size), comm_type=n.collective,
                         comm_group=run.grid.group_of[n.axis, rank])
        else:
            peer = "comm_dst" if n.kind == "SEND" else "comm_src"
            entry.update({"comm_size": int(n.size), "comm_tag": n.tag,
                          peer: run.grid.rank(n.peer, at)})
        listed.append(entry)
    return {"nodes": listed}


# ------------------------------------------------- command line (section 15)

NUMBERS = dict(dp=1, tp=1, sp=1, ep=1, pp=1, dvocal=32000, dmodel=8192, dff=28672, batch=64,
               micro_batch=-1, seq=1024, head=64, kvhead=8, num_stacks=80, experts=8, kexperts=2)
FLAGS = dict(weight_sharded=False, activation_recompute=False, tpsp=True, mixed_precision=False,
             print_gpu_vram=False)
YES = set("1 t y true yes".split())
TEXTS = dict(output_dir=None, output_name=None, model_type="dense", chakra_schema_version="v0.0.4")


def read_options(words):
    """Option dictionary; a repeated option keeps its last value."""
    opt = {**NUMBERS, **FLAGS, **TEXTS}
    if len(words) % 2:
        raise ValueError("every option takes one value")
    for key, value in zip(words[::2], words[1::2]):
        key = key[2:] if key.startswith("--") else ""
        if key in NUMBERS:
            opt[key] = int(value)
        elif key in FLAGS:
            opt[key] = value.lower() in YES
        elif key in TEXTS:
            opt[key] = value
        else:
            raise ValueError(f"unknown option --{key}")
    if opt["micro_batch"] == -1:
        opt["micro_batch"] = opt["batch"]
    return opt


def symbol_values(opt):
    """Values of the symbols of section 2; dense models fold ep into tp."""
    env = {"Dvocal": opt["dvocal"], "Dmodel": opt["dmodel"], "Dff": opt["dff"],
           "Batch": opt["batch"], "MicroBatch": opt["micro_batch"], "Seq": opt["seq"],
           "Head": opt["head"], "KVHead": opt["kvhead"], "Experts": opt["experts"],
           "KExperts": opt["kexperts"], "dp": opt["dp"], "tp": opt["tp"], "cp": opt["sp"],
           "ep": opt["ep"], "pp": opt["pp"]}
    if opt["model_type"] not in ("moe", "debug"):
        env["tp"] *= env["ep"]
    return env


def save(path, data):
    with open(path, "wb") as f:
        f.write(data)


def group_file(pattern):
    """Name of the group file (section 8)."""
    return ".json".join("".join(pattern.split(".%d")).split(".et"))


def write_run(run, folder, pattern, decoded=None, as_json=False):
    """Rank files, group file, summary lines (rank, bytes, sha256)."""
    os.makedirs(folder, exist_ok=True)
    if "%d" not in pattern:
        pattern += ".%d.et"
    save(os.path.join(folder, group_file(pattern)), json.dumps(run.grid.groups).encode())
    lines = open(decoded, "w", encoding="utf-8") if decoded else None
    summary = []
    for place in run.ranks():
        entries = list(run.decoded(*place))
        data = json.dumps(json_nodes(run, *place)).encode() if as_json else trace_bytes(entries)
        save(os.path.join(folder, pattern % place[0]), data)
        summary.append({"rank": place[0], "bytes": len(data),
                        "sha256": hashlib.sha256(data).hexdigest(), "nodes": len(entries)})
        if lines:
            lines.writelines(json.dumps(x, separators=(",", ":")) + "\n" for x in entries)
    if lines:
        lines.close()
    return summary


def random_options(rng):
    """A small valid configuration touching every model kind and axis."""
    kind = rng.choice(("gpt", "gpt", "llama", "dense", "moe", "moe"))
    degree = {k: rng.choice((1, 1, 2, 3)) for k in ("dp", "tp", "sp", "ep")}
    while math.prod(degree.values()) > 12:
        degree[rng.choice(list(degree))] = 1
    depth = rng.randint(1, 4)
    pieces, micro = rng.choice((1, 1, 2, 3)), rng.choice((1, 2, 5))
    head = 6 * rng.randint(1, 2)
    opt = {"num_stacks": depth, "pp": rng.randint(1, min(3, depth)), "model_type": kind, **degree,
           "head": head, "kvhead": rng.choice((head, head // 2, 3)),
           "dmodel": head * rng.choice((4, 8, 10)), "dff": rng.choice((48, 100, 144)),
           "seq": rng.choice((7, 12, 36)), "dvocal": rng.choice((31, 60, 1000)),
           "micro_batch": micro * degree["dp"], "batch": pieces * micro * degree["dp"],
           "weight_sharded": rng.choice((0, 1)), "mixed_precision": rng.choice((0, 1))}
    if kind == "moe":
        opt.update(experts=degree["ep"] * rng.randint(1, 3), kexperts=rng.randint(1, 3))
    else:
        opt["tpsp"] = rng.choice((0, 1))
    return [x for key, value in opt.items() for x in (f"--{key}", str(value))]


def random_case(seed, folder, templates):
    """Inputs and expected output of a random configuration."""
    rng = random.Random(seed)
    words = random_options(rng)
    environment = {"STAGE_LEGACY_ATTR": "1"} if rng.random() < 0.15 else {}
    run = Run(read_options(words), environment, templates)
    os.makedirs(folder, exist_ok=True)
    summary = write_run(run, folder, "w.%d.et", os.path.join(folder, "trace.jsonl"))
    case = {"name": f"random_{seed}", "options": words, "env": environment, "ranks": len(summary)}
    save(os.path.join(folder, "config.json"), json.dumps(case, indent=1).encode())
    save(os.path.join(folder, "summary.jsonl"),
         "".join(json.dumps(x) + "\n" for x in summary).encode())
    save(os.path.join(folder, "vram.txt"), "".join(x + "\n" for x in run.memory_lines()).encode())


def check(folder, templates):
    """Compare one golden configuration; returns the list of differences."""
    load = lambda name_: json.load(open(os.path.join(folder, name_), encoding="utf-8"))
    case = load("config.json")
    run = Run(read_options(case["options"]), case.get("env"), templates)
    wrong = [] if run.grid.groups == load("comm_group.json") else ["groups"]
    with open(os.path.join(folder, "summary.jsonl"), encoding="utf-8") as f:
        expected = {x["rank"]: x["sha256"] for x in map(json.loads, f)}
    merged = case.get("env", {}).get("STAGE_MERGE_COMMS") == "1"
    for place in run.ranks():
        if merged and place[0]:
            continue                                     # only rank 0 is meaningful
        data = (json.dumps(json_nodes(run, *place)).encode() if case.get("writer") == "json"
                else trace_bytes(run.decoded(*place)))
        if hashlib.sha256(data).hexdigest() != expected.get(place[0]):
            wrong.append(f"rank {place[0]}")
    if not merged and len(expected) != sum(1 for _ in run.ranks()):
        wrong.append("number of ranks")
    if os.path.exists(os.path.join(folder, "vram.txt")):
        with open(os.path.join(folder, "vram.txt"), encoding="utf-8") as f:
            if f.read().splitlines() != list(run.memory_lines()):
                wrong.append("memory report")
    return wrong


def check_all(folders, templates):
    failed = 0
    for folder in folders:
        try:
            wrong = check(folder, templates)
        except (ValueError, KeyError) as e:
            wrong = [f"not run: {e}"]
        failed += bool(wrong)
        print("differs" if wrong else "same   ", os.path.basename(folder.rstrip("/")), *wrong[:4])
    print(f"{len(folders)} configurations, {len(folders) - failed} identical, {failed} different")
    return 1 if failed else 0


def main(words):
    """Command line; see the module text."""
    extra = {"templates": TEMPLATES, "tag_base": "0", "decoded": None, "random": None}
    if words[:1] == ["--check"]:
        return check_all(words[1:], TEMPLATES)
    if {"-h", "--help"} & set(words):
        print(__doc__)
        return 0
    as_json = "--json" in words
    words = [w for w in words if w != "--json"]
    rest = []
    for key, value in zip(words[::2], words[1::2]):
        if key[2:] in extra:
            extra[key[2:]] = value
        else:
            rest += [key, value]
    opt = read_options(rest)
    if not opt["output_dir"]:
        raise SystemExit("--output_dir is required")
    if extra["random"] is not None:
        random_case(int(extra["random"]), opt["output_dir"], extra["templates"])
        return 0
    if not opt["output_name"]:
        raise SystemExit("--output_name is required")
    run = Run(opt, os.environ, extra["templates"], int(extra["tag_base"]))
    write_run(run, opt["output_dir"], opt["output_name"], extra["decoded"], as_json)
    if opt["print_gpu_vram"]:
        print("\n".join(run.memory_lines()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
