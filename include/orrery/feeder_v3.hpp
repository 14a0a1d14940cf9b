/* SPDX-License-Identifier: Apache-2.0 */
/* feeder_v3.hpp - the newer C++ feeder of ASTRA-sim's fork of Chakra: Chakra::FeederV3.
 *
 *     Chakra::FeederV3::ETFeeder feeder("rank0.et");
 *     auto &resolver = feeder.getDependancyResolver();
 *     while (feeder.hasNodesToIssue()) {
 *         auto node = feeder.getNextIssuableNode();             // take_node
 *         simulate(node->name(), node->num_ops<uint64_t>(0));
 *         resolver.finish_node(node->id());                     // or feeder.freeChildrenNodes
 *     }
 *
 * A simulator changes `#include ".../feeder_v3/et_feeder.h"` to `#include <orrery/feeder_v3.hpp>`;
 * Chakra::ETFeeder and Chakra::ETFeederNode then mean these classes, as in ASTRA-sim, unless
 * feeder.hpp was included before and defines them.
 *
 * As there: data and control dependencies block a node; a parent that is not in the trace, data or
 * control, is an error when the trace is read, and so is a trace in which no node is ready;
 * hasNodesToIssue() says whether a node is ready now; attributes are converted between integers and
 * to floating point, and any other mismatch throws std::bad_cast.
 * Better than there: the order is fixed (smallest id first); older schemas, JSON, gzip and zstd are
 * read; damage throws orrery::Error with file and byte. */
#ifndef ORRERY_FEEDER_V3_HPP
#define ORRERY_FEEDER_V3_HPP

#include <orrery/feeder_messages.hpp>

#include <memory>
#include <set>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

namespace Chakra
{
namespace FeederV3
{

using NodeId = uint64_t;
using ChakraNode = ChakraProtoMsg::Node;
using ChakraGlobalMetadata = ChakraProtoMsg::GlobalMetadata;
using ChakraAttr = ChakraProtoMsg::AttributeProto;

constexpr bool DEFAULT_STRICT_TYPING = false;
constexpr bool RESOLVE_DATA_DEPS = true;
constexpr bool RESOLVE_CTRL_DEPS = true;

/* Nodes and their dependencies of one kind.  A node is waiting, ready, taken or finished; finished
 * ones are removed. */
class DependancyLayer
{
  public:
    void add_node(NodeId node, const std::unordered_set<NodeId> &parents)
    {
        for (NodeId parent : parents) {
            parents_[node].insert(parent);
            children_[parent].insert(node);
            parents_.try_emplace(parent);
        }
        parents_.try_emplace(node);
        children_.try_emplace(node);
    }
    void add_node_children(NodeId node, const std::unordered_set<NodeId> &children)
    {
        add_node(node, {});
        for (NodeId child : children)
            add_node(child, {node});
    }
    /* Call once, after the last node has been added. */
    void resolve_dependancy_free_nodes()
    {
        if (!free_.empty() || !taken_.empty())
            throw std::runtime_error("the ready nodes are known already");
        for (const auto &entry : parents_)
            if (entry.second.empty())
                set_free(entry.first);
        if (free_.empty())
            throw std::runtime_error("no node is ready: the trace is empty or a cycle");
    }
    void take_node(NodeId node)
    {
        if (!free_.erase(node))
            throw std::runtime_error("node " + std::to_string(node) + " is not ready");
        order_.erase(node);
        taken_.insert(node);
    }
    void push_back_node(NodeId node)
    {
        untake(node);
        set_free(node);
    }
    void finish_node(NodeId node)
    {
        untake(node);
        for (NodeId child : children_[node]) {
            std::unordered_set<NodeId> &left = parents_[child];
            left.erase(node);
            if (left.empty())
                set_free(child);
        }
        children_.erase(node);
        parents_.erase(node);
    }

    const std::unordered_set<NodeId> &get_dependancy_free_nodes() const
    {
        return free_;
    }
    const std::unordered_set<NodeId> &get_ongoing_nodes() const
    {
        return taken_;
    }
    const std::unordered_set<NodeId> &get_children(NodeId node) const
    {
        return children_.at(node);
    }
    const std::unordered_set<NodeId> &get_parents(NodeId node) const
    {
        return parents_.at(node);
    }
    /* The ready node with the smallest id; at least one must be ready. */
    NodeId first() const
    {
        if (order_.empty())
            throw std::runtime_error("no node is ready");
        return *order_.begin();
    }

  private:
    void set_free(NodeId node)
    {
        free_.insert(node);
        order_.insert(node);
    }
    void untake(NodeId node)
    {
        if (!taken_.erase(node))
            throw std::runtime_error("node " + std::to_string(node) + " is not taken");
    }

    std::unordered_map<NodeId, std::unordered_set<NodeId>> parents_, children_;
    std::unordered_set<NodeId> free_, taken_;
    std::set<NodeId> order_; /* of free_ */
};
using _DependancyLayer = DependancyLayer;

/* Three layers: data, control, and the enabled ones of the two.  The last is queried first: what is
 * ready there is ready in the others, so a step that throws has changed nothing. */
class DependancyResolver
{
  public:
    DependancyResolver(bool uses_data, bool uses_ctrl)
        : uses_data_(uses_data), uses_ctrl_(uses_ctrl)
    {
        if (!uses_data && !uses_ctrl)
            throw std::runtime_error("a resolver needs data or control dependencies");
    }
    void add_node(const ChakraNode &node)
    {
        const std::unordered_set<NodeId> data(node.data_deps().begin(), node.data_deps().end());
        const std::unordered_set<NodeId> ctrl(node.ctrl_deps().begin(), node.ctrl_deps().end());
        std::unordered_set<NodeId> enabled;
        if (uses_data_)
            enabled.insert(data.begin(), data.end());
        if (uses_ctrl_)
            enabled.insert(ctrl.begin(), ctrl.end());
        data_.add_node(node.id(), data);
        ctrl_.add_node(node.id(), ctrl);
        enabled_.add_node(node.id(), enabled);
    }
    void take_node(NodeId node)
    {
        for (DependancyLayer *layer : {&enabled_, &data_, &ctrl_})
            layer->take_node(node);
    }
    void push_back_node(NodeId node)
    {
        for (DependancyLayer *layer : {&enabled_, &data_, &ctrl_})
            layer->push_back_node(node);
    }
    void finish_node(NodeId node)
    {
        for (DependancyLayer *layer : {&enabled_, &data_, &ctrl_})
            layer->finish_node(node);
    }
    void resolve_dependancy_free_nodes()
    {
        for (DependancyLayer *layer : {&enabled_, &data_, &ctrl_})
            layer->resolve_dependancy_free_nodes();
    }
    const std::unordered_set<NodeId> &get_dependancy_free_nodes() const
    {
        return enabled_.get_dependancy_free_nodes();
    }
    const std::unordered_set<NodeId> &get_ongoing_nodes() const
    {
        return enabled_.get_ongoing_nodes();
    }
    const DependancyLayer &get_data_dependancy() const
    {
        return data_;
    }
    const DependancyLayer &get_ctrl_dependancy() const
    {
        return ctrl_;
    }
    const DependancyLayer &get_enabled_dependancy() const
    {
        return enabled_;
    }
    /* For programs that change one layer and keep the layers consistent themselves. */
    DependancyLayer &get_data_dependancy_mut()
    {
        return data_;
    }
    DependancyLayer &get_ctrl_dependancy_mut()
    {
        return ctrl_;
    }
    DependancyLayer &get_enabled_dependancy_mut()
    {
        return enabled_;
    }

  private:
    bool uses_data_, uses_ctrl_;
    DependancyLayer data_, ctrl_, enabled_;
};

class ETFeeder;

/* A node by id; its record is decoded on first access.  Must not outlive its feeder. */
class ETFeederNode
{
  public:
    ETFeederNode(ETFeeder &feeder, NodeId id) : feeder_(feeder), id_(id) {}

    NodeId id() const
    {
        return record().id();
    }
    std::string name() const
    {
        return record().name();
    }
    ChakraProtoMsg::NodeType type() const
    {
        return record().type();
    }
    /* Microseconds. */
    uint64_t runtime() const
    {
        return record().duration_micros();
    }

    bool has_attr(const std::string &name) const
    {
        const ChakraAttr *a;
        return get_attr_msg(name, &a);
    }
    ChakraAttr get_attr_msg(const std::string &name) const
    {
        return needed(name);
    }
    /* Points into this node. */
    bool get_attr_msg(const std::string &name, const ChakraAttr **out) const
    {
        for (const ChakraAttr &a : record().attr())
            if (a.name() == name) {
                *out = &a;
                return true;
            }
        return false;
    }
    ChakraAttr::ValueCase get_attr_type(const ChakraAttr &a) const
    {
        return a.value_case();
    }
    template <typename T>
    T get_attr(const ChakraAttr &a, bool is_strict = DEFAULT_STRICT_TYPING) const;
    template <typename T> T get_attr(const std::string &name, const T &otherwise) const
    {
        const ChakraAttr *a;
        return get_attr_msg(name, &a) ? get_attr<T>(*a) : otherwise;
    }
    template <typename T> T get_attr(const std::string &name) const
    {
        return get_attr<T>(needed(name));
    }

    /* name<T>() throws if the attribute is missing; name<T>(d) returns d instead. */
#define ORRERY_ATTRIBUTE(name)                             \
    template <typename T> T name() const                   \
    {                                                      \
        return get_attr<T>(#name);                         \
    }                                                      \
    template <typename T> T name(const T &otherwise) const \
    {                                                      \
        return get_attr<T>(#name, otherwise);              \
    }
#define ORRERY_ATTRIBUTE_OR(name, value)                   \
    template <typename T> T name() const                   \
    {                                                      \
        return get_attr<T>(#name, T(value));               \
    }                                                      \
    template <typename T> T name(const T &otherwise) const \
    {                                                      \
        return get_attr<T>(#name, otherwise);              \
    }
    ORRERY_ATTRIBUTE_OR(is_cpu_op, false)
    ORRERY_ATTRIBUTE_OR(tensor_loc, 0)
    ORRERY_ATTRIBUTE_OR(comm_priority, 0)
    ORRERY_ATTRIBUTE(num_ops)
    ORRERY_ATTRIBUTE(tensor_size)
    ORRERY_ATTRIBUTE(comm_type)
    ORRERY_ATTRIBUTE(comm_size)
    ORRERY_ATTRIBUTE(comm_src)
    ORRERY_ATTRIBUTE(comm_dst)
    ORRERY_ATTRIBUTE(comm_tag)
    ORRERY_ATTRIBUTE(pg_name)
#undef ORRERY_ATTRIBUTE
#undef ORRERY_ATTRIBUTE_OR

    bool is_cpu_op() const
    {
        return is_cpu_op<bool>();
    }
    uint64_t num_ops() const
    {
        return num_ops<uint64_t>();
    }
    uint32_t tensor_loc() const
    {
        return tensor_loc<uint32_t>();
    }
    uint64_t tensor_size() const
    {
        return tensor_size<uint64_t>();
    }
    ChakraProtoMsg::CollectiveCommType comm_type() const
    {
        return static_cast<ChakraProtoMsg::CollectiveCommType>(comm_type<uint64_t>());
    }
    uint32_t comm_priority() const
    {
        return comm_priority<uint32_t>();
    }
    uint64_t comm_size() const
    {
        return comm_size<uint64_t>();
    }
    uint32_t comm_src() const
    {
        return comm_src<uint32_t>();
    }
    uint32_t comm_dst() const
    {
        return comm_dst<uint32_t>();
    }
    uint32_t comm_tag() const
    {
        return comm_tag<uint32_t>();
    }

    std::string get_inputs_values(const std::string &otherwise = "") const
    {
        return record().has_inputs() ? record().inputs().values() : otherwise;
    }
    std::string get_inputs_shapes(const std::string &otherwise = "") const
    {
        return record().has_inputs() ? record().inputs().shapes() : otherwise;
    }
    std::string get_inputs_types(const std::string &otherwise = "") const
    {
        return record().has_inputs() ? record().inputs().types() : otherwise;
    }
    std::string get_outputs_values(const std::string &otherwise = "") const
    {
        return record().has_outputs() ? record().outputs().values() : otherwise;
    }
    std::string get_outputs_shapes(const std::string &otherwise = "") const
    {
        return record().has_outputs() ? record().outputs().shapes() : otherwise;
    }
    std::string get_outputs_types(const std::string &otherwise = "") const
    {
        return record().has_outputs() ? record().outputs().types() : otherwise;
    }

  private:
    inline const ChakraNode &record() const;
    const ChakraAttr &needed(const std::string &name) const
    {
        const ChakraAttr *a;
        if (!get_attr_msg(name, &a))
            throw std::runtime_error("node " + std::to_string(id_) + " has no attribute \"" + name +
                                     "\"");
        return *a;
    }
    template <typename T, typename F> static T convert(const F &value, bool is_strict)
    {
        if constexpr (std::is_same_v<T, F>) {
            return value;
        } else {
            if constexpr (std::is_arithmetic_v<T> && std::is_arithmetic_v<F>)
                if (!is_strict && (std::is_floating_point_v<T> || std::is_integral_v<F>))
                    return static_cast<T>(value);
            throw std::bad_cast();
        }
    }

    ETFeeder &feeder_;
    NodeId id_;
    mutable std::shared_ptr<const ChakraNode> record_;
};

template <typename T> T ETFeederNode::get_attr(const ChakraAttr &a, bool is_strict) const
{
    if constexpr (std::is_same_v<T, ChakraAttr>) {
        return a;
    } else {
        switch (a.value_case()) {
        case ChakraAttr::kDoubleVal:
            return convert<T>(a.double_val(), is_strict);
        case ChakraAttr::kFloatVal:
            return convert<T>(a.float_val(), is_strict);
        case ChakraAttr::kInt32Val:
            return convert<T>(a.int32_val(), is_strict);
        case ChakraAttr::kInt64Val:
            return convert<T>(a.int64_val(), is_strict);
        case ChakraAttr::kUint32Val:
            return convert<T>(a.uint32_val(), is_strict);
        case ChakraAttr::kUint64Val:
            return convert<T>(a.uint64_val(), is_strict);
        case ChakraAttr::kSint32Val:
            return convert<T>(a.sint32_val(), is_strict);
        case ChakraAttr::kSint64Val:
            return convert<T>(a.sint64_val(), is_strict);
        case ChakraAttr::kFixed32Val:
            return convert<T>(a.fixed32_val(), is_strict);
        case ChakraAttr::kFixed64Val:
            return convert<T>(a.fixed64_val(), is_strict);
        case ChakraAttr::kSfixed32Val:
            return convert<T>(a.sfixed32_val(), is_strict);
        case ChakraAttr::kSfixed64Val:
            return convert<T>(a.sfixed64_val(), is_strict);
        case ChakraAttr::kBoolVal:
            return convert<T>(a.bool_val(), is_strict);
        case ChakraAttr::kStringVal:
            return convert<T>(a.string_val(), is_strict);
        case ChakraAttr::kBytesVal:
            return convert<T>(a.bytes_val(), is_strict);
        default:
            throw std::invalid_argument("attribute \"" + a.name() +
                                        "\" is a list or has no value: read it with get_attr_msg");
        }
    }
}

class ETFeeder
{
  public:
    explicit ETFeeder(const std::string &path)
    {
        orr_read_options options = orr_read_options();
        orr_trace *trace;
        orr_error err;
        options.size = sizeof options;
        options.leniency = ORR_KEEP_UNKNOWN;
        if (orr_trace_read(path.c_str(), &options, &trace, &err))
            throw orrery::Error(err);
        trace_.reset(trace);
        global_metadata = ChakraGlobalMetadata(trace);
        enter_nodes();
        resolver_.resolve_dependancy_free_nodes();
        check_parents();
    }
    ETFeeder(const ETFeeder &) = delete;
    ETFeeder &operator=(const ETFeeder &) = delete;

    ChakraGlobalMetadata global_metadata;

    DependancyResolver &getDependancyResolver()
    {
        return resolver_;
    }
    std::shared_ptr<ETFeederNode> lookupNode(NodeId id)
    {
        return std::make_shared<ETFeederNode>(*this, id);
    }
    bool hasNodesToIssue() const
    {
        return !resolver_.get_dependancy_free_nodes().empty();
    }
    std::shared_ptr<ETFeederNode> getNextIssuableNode()
    {
        const NodeId id = resolver_.get_enabled_dependancy().first();
        resolver_.take_node(id);
        return lookupNode(id);
    }
    void pushBackIssuableNode(NodeId id)
    {
        resolver_.push_back_node(id);
    }
    void freeChildrenNodes(NodeId id)
    {
        resolver_.finish_node(id);
    }
    /* The graph is fixed: finished nodes are removed automatically, and none can be added. */
    void removeNode(NodeId) {}
    void addNode(std::shared_ptr<ETFeederNode>)
    {
        throw std::runtime_error("a node cannot be added to this feeder");
    }

  private:
    friend class ETFeederNode;

    void enter_nodes()
    {
        const uint32_t count = orr_trace_columns(trace_.get())->count;
        orr_node n;
        for (uint32_t i = 0; i < count; i++) {
            orr_trace_node(trace_.get(), i, &n);
            resolver_.add_node(ChakraNode(n));
        }
    }
    void check_parents() const
    {
        const struct {
            const DependancyLayer &layer;
            const char *kind;
        } layers[] = {{resolver_.get_data_dependancy(), "data"},
                      {resolver_.get_ctrl_dependancy(), "control"}};
        for (const auto &l : layers)
            for (NodeId id : l.layer.get_dependancy_free_nodes())
                if (orr_trace_find(trace_.get(), id) == ORR_NO_NODE)
                    throw std::runtime_error(std::string(orr_trace_path(trace_.get())) + ": node " +
                                             std::to_string(id) + ", a " + l.kind +
                                             " parent, is not in the trace (orrery check --fix "
                                             "writes one without it)");
    }
    std::shared_ptr<const ChakraNode> read(NodeId id) const
    {
        const uint32_t index = orr_trace_find(trace_.get(), id);
        orr_node n;
        if (index == ORR_NO_NODE)
            throw std::runtime_error(std::string(orr_trace_path(trace_.get())) + ": node " +
                                     std::to_string(id) + " is not in the trace");
        orr_trace_node(trace_.get(), index, &n);
        return std::make_shared<const ChakraNode>(n);
    }

    std::unique_ptr<orr_trace, void (*)(orr_trace *)> trace_{nullptr, orr_trace_destroy};
    DependancyResolver resolver_{RESOLVE_DATA_DEPS, RESOLVE_CTRL_DEPS};
};

inline const ChakraNode &ETFeederNode::record() const
{
    if (!record_)
        record_ = feeder_.read(id_);
    return *record_;
}

} // namespace FeederV3

#ifndef ORRERY_FEEDER_HPP
using ETFeeder = FeederV3::ETFeeder;
using ETFeederNode = FeederV3::ETFeederNode;
#endif

} // namespace Chakra

#endif
