// SPDX-License-Identifier: Apache-2.0
// test_feeder_drop_in.cc - feeder.hpp in place of Chakra's C++ feeder: what the ten tests of Chakra's
// feeder suite state, on a trace of our own with the same properties; then the feeder of ASTRA-sim's
// fork, the accessors of records, and what damaged or incomplete traces do.  No macro is defined and
// nothing but the header is included, as in a program that changed its #include.
//
// The trace: 20 (compute, on the host) has the children 21, 40 and 45; 42 (a collective, on the host)
// has the child 43; 21 waits for 20 only.  20 and 42 have a control parent, 3, that is not there.
#include <orrery/feeder.hpp>

#include <cstdio>
#include <functional>

static unsigned tests, failures;

static void report(bool is_ok, const char *what)
{
    tests++;
    failures += !is_ok;
    std::printf("%sok %u - %s\n", is_ok ? "" : "not ", tests, what);
}
#define STATE(what, ...) report((__VA_ARGS__), what)

static void must(orr_code code, const orr_error &err)
{
    if (code)
        throw orrery::Error(err);
}

static orr_attr attr(const char *name, orr_value_kind kind, int64_t value)
{
    orr_attr a = orr_attr();
    a.name = orr_str_of(name);
    a.kind = kind;
    a.value.i = value;
    return a;
}

struct Line {
    uint64_t id;
    uint32_t type;
    std::vector<uint64_t> data, ctrl;
    int64_t rf_id;
};

static void write(const char *path, const std::vector<Line> &lines)
{
    orr_error err;
    orr_trace *t;
    const orr_value dims[] = {{1}, {0}, {1}};
    orr_meta meta = orr_meta();
    meta.version = orr_str_of("1.0.0");
    must(orr_trace_create(&meta, &t, &err), err);
    for (const Line &line : lines) {
        const std::string name = "op" + std::to_string(line.id);
        std::vector<orr_attr> attrs = {attr("is_cpu_op", ORR_VALUE_BOOL, 1),
                                       attr("rf_id", ORR_VALUE_INT64, line.rf_id)};
        if (line.type == ORR_NODE_COMM_COLL) {
            attrs.push_back(attr("comm_type", ORR_VALUE_INT64, ORR_COLL_BROADCAST));
            attrs.push_back(attr("comm_size", ORR_VALUE_UINT64, 4096)); // not Chakra's member
            orr_attr list = attr("involved_dim", ORR_VALUE_BOOL, 0);
            list.is_list = true;
            list.items = dims;
            list.item_count = 3;
            attrs.push_back(list);
            orr_attr group = attr("pg_name", ORR_VALUE_STRING, 0);
            group.value.s = orr_str_of("7");
            attrs.push_back(group);
        }
        const orr_io io = {orr_str_of("[8]"), orr_str_of("[[]]"), orr_str_of("[\"Int\"]")};
        orr_draft d = orr_draft();
        d.id = line.id;
        d.name.ptr = name.data();
        d.name.len = name.size();
        d.type = line.type;
        d.duration_us = line.id * 2;
        d.data_deps = line.data.data();
        d.data_count = line.data.size();
        d.ctrl_deps = line.ctrl.data();
        d.ctrl_count = line.ctrl.size();
        d.inputs = &io;
        d.attrs = attrs.data();
        d.attr_count = attrs.size();
        must(orr_trace_append(t, &d, &err), err);
    }
    must(orr_trace_seal(t, &err), err);
    must(orr_trace_write(t, path, nullptr, &err), err);
    orr_trace_destroy(t);
}

// The text of what f throws; empty if it does not.
static std::string thrown(const std::function<void()> &f)
{
    try {
        f();
    } catch (const std::exception &e) {
        return e.what();
    }
    return "";
}
static bool has(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

// ---- the ten statements of Chakra's suite ----

static void chakra_suite()
{
    const char *path = "chakra.et";
    {
        Chakra::ETFeeder trace(path);
        const uint64_t first = trace.getNextIssuableNode()->id();
        STATE("a new feeder hands out the two free nodes by id",
              first == 20 && trace.getNextIssuableNode()->id() == 42);
    }
    {
        Chakra::ETFeeder trace(path);
        std::shared_ptr<Chakra::ETFeederNode> node = trace.getNextIssuableNode();
        const ChakraProtoMsg::NodeType type = node->type();
        ChakraProtoMsg::AttributeProto rf_id = node->get_other_attr("rf_id");
        bool is_ok =
            type == ChakraProtoMsg::COMP_NODE && node->is_cpu_op() && rf_id.int64_val() == 2;
        node = trace.getNextIssuableNode();
        rf_id = node->get_other_attr("rf_id");
        const uint64_t second = node->type();
        is_ok &= second == ChakraProtoMsg::COMM_COLL_NODE && node->is_cpu_op() &&
                 rf_id.int64_val() == 11;
        STATE("nodes know their type, place and attributes", is_ok);
    }
    {
        Chakra::ETFeeder trace(path);
        const std::vector<std::shared_ptr<Chakra::ETFeederNode>> children =
            trace.getNextIssuableNode()->getChildren();
        STATE("a node that was handed out has its children in file order",
              children.size() == 3 && children[0]->id() == 21 && children[1]->id() == 40 &&
                  children[2]->id() == 45);
    }
    {
        Chakra::ETFeeder trace(path);
        const bool was_there = trace.lookupNode(20)->id() == 20;
        trace.removeNode(20);
        STATE("a removed node cannot be looked up: an exception",
              was_there && has(thrown([&] { trace.lookupNode(20); }), "node 20"));
    }
    {
        Chakra::ETFeeder trace(path);
        trace.removeNode(20);
        STATE("a removed node that was ready still comes", trace.getNextIssuableNode()->id() == 20);
    }
    {
        Chakra::ETFeeder trace(path);
        trace.freeChildrenNodes(20);
        const uint64_t first = trace.getNextIssuableNode()->id();
        STATE("children may be freed before their parent is handed out",
              first == 20 && trace.getNextIssuableNode()->id() == 21);
    }
    {
        Chakra::ETFeeder trace(path);
        bool is_ok = trace.getNextIssuableNode()->id() == 20 && trace.hasNodesToIssue();
        trace.removeNode(5);
        STATE("removing what is not there changes nothing", is_ok && trace.hasNodesToIssue());
    }
    {
        Chakra::ETFeeder trace(path);
        trace.pushBackIssuableNode(21);
        const uint64_t first = trace.getNextIssuableNode()->id();
        STATE("a node that is pushed back is ready, whatever it waits for",
              first == 20 && trace.getNextIssuableNode()->id() == 21);
    }
    {
        Chakra::ETFeeder trace(path);
        std::shared_ptr<Chakra::ETFeederNode> node = trace.lookupNode(20);
        trace.removeNode(20);
        trace.addNode(node);
        STATE("a removed node can be added again", trace.lookupNode(20)->id() == 20);
    }
    {
        Chakra::ETFeeder trace(path);
        const std::vector<std::shared_ptr<Chakra::ETFeederNode>> children =
            trace.lookupNode(20)->getChildren();
        STATE("a node that was looked up has its children",
              children[0]->id() == 21 && children[2]->id() == 45);
    }
}

// ---- V2 beyond the suite ----

static void second_generation()
{
    Chakra::ETFeeder feeder("chakra.et");
    std::string order;
    while (std::shared_ptr<Chakra::ETFeederNode> node = feeder.getNextIssuableNode()) {
        order += node->name() + " ";
        feeder.freeChildrenNodes(node->id());
        feeder.removeNode(node->id());
    }
    STATE("missing control parents hold nothing back",
          order == "op20 op21 op40 op42 op43 op45 " && !feeder.hasNodesToIssue());

    Chakra::ETFeeder again("chakra.et");
    std::shared_ptr<Chakra::ETFeederNode> node = again.lookupNode(42);
    std::shared_ptr<ChakraProtoMsg::Node> record = node->getChakraNode();
    STATE("the record of a node has the accessors of its schema",
          record->id() == 42 && record->name() == "op42" && record->duration_micros() == 84 &&
              record->ctrl_deps_size() == 1 && record->ctrl_deps(0) == 3 &&
              record->data_deps().size() == 0 && record->attr_size() == 6 &&
              record->attr(0).value_case() == ChakraProtoMsg::AttributeProto::kBoolVal &&
              record->has_inputs() && !record->has_outputs() &&
              record->inputs().types() == "[\"Int\"]");
    STATE("known attributes of any integer member, and lists",
          node->comm_type() == ChakraProtoMsg::BROADCAST && node->comm_size() == 4096 &&
              node->pg_name() == "7" && !node->has_other_attr("comm_size") &&
              node->get_other_attr("involved_dim").bool_list().values_size() == 3 &&
              node->get_other_attr("involved_dim").bool_list().values(0) &&
              !node->get_other_attr("involved_dim").bool_list().values(1));
    STATE("an attribute that is not there reads as 0, or throws by name",
          node->num_ops() == 0 && node->tensor_size() == 0 && node->comm_tag() == 0 &&
              node->get_outputs_values().empty() && node->get_inputs_values() == "[8]" &&
              has(thrown([&] { node->get_other_attr("shape"); }), "no other attribute \"shape\""));
    again.freeChildrenNodes(20);
    STATE("freeing takes the parent out of the child's record",
          again.lookupNode(21)->getChakraNode()->data_deps_size() == 0 &&
              again.lookupNode(45)->getChakraNode()->data_deps_size() == 1);

    ChakraProtoMsg::Node made;
    made.set_id(9);
    made.set_type(ChakraProtoMsg::COMP_NODE);
    made.add_data_deps(4);
    ChakraProtoMsg::AttributeProto *a = made.add_attr();
    a->set_name("num_ops");
    a->set_int64_val(5);
    again.addNode(
        std::make_shared<Chakra::ETFeederNode>(std::make_shared<ChakraProtoMsg::Node>(made)));
    STATE("a record can be made and added", again.lookupNode(9)->num_ops() == 5 &&
                                                a->has_int64_val() && !a->has_uint64_val() &&
                                                a->uint64_val() == 0);

    write("late.et", {{1, ORR_NODE_COMP, {2}, {}, 0},
                      {2, ORR_NODE_COMP, {}, {}, 0},
                      {3, ORR_NODE_COMP, {99}, {}, 0},
                      {4, ORR_NODE_COMP, {2, 2}, {}, 0}});
    Chakra::ETFeeder late("late.et");
    const uint64_t first = late.getNextIssuableNode()->id();
    late.freeChildrenNodes(2);
    const uint64_t second = late.getNextIssuableNode()->id();
    STATE("parents after children; a missing or repeated data parent blocks",
          first == 2 && second == 1 && !late.getNextIssuableNode() && late.hasNodesToIssue() &&
              late.lookupNode(3)->getDepUnresolvedParentIDs() == std::vector<uint64_t>{99});
    STATE("a file that is not there throws with its name",
          has(thrown([] { Chakra::ETFeeder f("none.et"); }), "none.et"));
    std::FILE *f = std::fopen("cut.et", "wb");
    std::fputs("\x09\x0a\x05", f);
    std::fclose(f);
    STATE("a damaged file throws with the byte",
          has(thrown([] { Chakra::ETFeeder g("cut.et"); }), "cut.et: byte "));
}

// ---- the feeder of ASTRA-sim's fork ----

static void third_generation()
{
    using namespace Chakra::FeederV3;
    STATE("a missing control parent is an error when the trace is read",
          has(thrown([] { Chakra::FeederV3::ETFeeder f("chakra.et"); }),
              "chakra.et: node 3, a control parent, is not in the trace"));
    write("whole.et", {{20, ORR_NODE_COMP, {}, {}, 2},
                       {21, ORR_NODE_COMP, {20}, {}, 3},
                       {40, ORR_NODE_COMP, {20, 20}, {21}, 4},
                       {42, ORR_NODE_COMM_COLL, {}, {}, 11}});
    Chakra::FeederV3::ETFeeder feeder("whole.et");
    DependancyResolver &resolver = feeder.getDependancyResolver();
    std::unordered_set<NodeId> ready = resolver.get_dependancy_free_nodes();
    STATE("ready nodes, and the version of the file",
          ready == std::unordered_set<NodeId>{20, 42} &&
              feeder.global_metadata.version() == "1.0.0");
    const std::unordered_set<NodeId> &children = resolver.get_enabled_dependancy().get_children(20);
    STATE("children by layer", children.find(21) != children.end() && children.count(40) &&
                                   resolver.get_ctrl_dependancy().get_children(20).empty() &&
                                   resolver.get_ctrl_dependancy().get_children(21).count(40));
    std::shared_ptr<Chakra::FeederV3::ETFeederNode> node = feeder.getNextIssuableNode();
    STATE("the smallest id is taken first",
          node->id() == 20 && node->runtime() == 40 && resolver.get_ongoing_nodes().count(20));
    feeder.pushBackIssuableNode(20);
    STATE("a node that is pushed back is ready again",
          resolver.get_dependancy_free_nodes().count(20));
    resolver.take_node(20);
    feeder.freeChildrenNodes(20);
    STATE("data and control dependencies both count",
          resolver.get_dependancy_free_nodes().count(21) &&
              !resolver.get_dependancy_free_nodes().count(40));
    STATE("taking what is not ready, finishing what is not taken: exceptions",
          has(thrown([&] { resolver.take_node(40); }), "node 40 is not ready") &&
              has(thrown([&] { resolver.finish_node(21); }), "node 21 is not taken"));
    node = feeder.lookupNode(42);
    STATE("attributes are converted, with and without a default",
          node->is_cpu_op() && node->get_attr<int64_t>("rf_id") == 11 &&
              node->comm_size<uint32_t>() == 4096 && node->comm_size<double>() == 4096.0 &&
              node->comm_tag<uint32_t>(6) == 6 && node->pg_name<std::string>("") == "7" &&
              node->comm_type() == ChakraProtoMsg::BROADCAST && node->comm_priority() == 0);
    const ChakraProtoMsg::AttributeProto &dims = node->get_attr_msg("involved_dim");
    STATE("lists are read from the record",
          node->has_attr("involved_dim") && dims.has_bool_list() && dims.bool_list().values(2) &&
              node->get_attr<ChakraAttr>("rf_id").int64_val() == 11);
    STATE("what cannot be converted or is not there throws",
          !thrown([&] { node->get_attr<uint64_t>("pg_name"); }).empty() &&
              has(thrown([&] { node->num_ops(); }), "node 42 has no attribute \"num_ops\"") &&
              has(thrown([&] { feeder.addNode(node); }), "cannot be added") &&
              has(thrown([&] { feeder.lookupNode(8)->id(); }), "node 8 is not in the trace"));
    feeder.removeNode(42);
    std::string order;
    for (; feeder.hasNodesToIssue(); resolver.finish_node(node->id())) {
        node = feeder.getNextIssuableNode();
        order += node->name() + " ";
    }
    STATE("the rest, to the end",
          order == "op21 op40 op42 " && resolver.get_ongoing_nodes().empty());
    write("cycle.et", {{1, ORR_NODE_COMP, {2}, {}, 0}, {2, ORR_NODE_COMP, {1}, {}, 0}});
    STATE("a trace in which nothing is ready is an error",
          has(thrown([] { Chakra::FeederV3::ETFeeder f("cycle.et"); }), "no node is ready"));
}

int main()
try {
    write("chakra.et", {{20, ORR_NODE_COMP, {}, {3}, 2},
                        {21, ORR_NODE_COMP, {20}, {3}, 3},
                        {40, ORR_NODE_COMP, {20}, {}, 9},
                        {42, ORR_NODE_COMM_COLL, {}, {3}, 11},
                        {43, ORR_NODE_COMP, {42}, {}, 12},
                        {45, ORR_NODE_COMP, {20, 43}, {}, 13}});
    chakra_suite();
    second_generation();
    third_generation();
    std::printf("1..%u\n", tests);
    return failures != 0;
} catch (const std::exception &e) {
    std::printf("Bail out! %s\n", e.what());
    return 1;
}
