/* SPDX-License-Identifier: Apache-2.0 */
/* feeder.hpp - Chakra's C++ feeder: the same classes and methods, on our reader.
 *
 *     Chakra::ETFeeder feeder("rank0.et");
 *     while (std::shared_ptr<Chakra::ETFeederNode> node = feeder.getNextIssuableNode()) {
 *         simulate(node->name(), node->runtime());
 *         feeder.freeChildrenNodes(node->id());      // it is done
 *         feeder.removeNode(node->id());
 *     }
 *
 * A simulator changes `#include "et_feeder.h"` to `#include <orrery/feeder.hpp>` and links -lorrery
 * instead of protobuf; nothing else changes.  Both generations are here: Chakra::ETFeeder
 * (src/feeder, "V2") and Chakra::FeederV3::ETFeeder (feeder_v3.hpp, as in ASTRA-sim's fork).
 *
 * As there: only data dependencies block a node, so a control parent that is missing does not
 * matter; a data parent that is missing, or listed twice, blocks its child forever; the last
 * node of an id replaces the earlier ones; the node with the smallest id comes first.  Better
 * than there: any file that orr_trace_read accepts can be read (older schemas, JSON, gzip,
 * zstd); a damaged file throws orrery::Error with file and byte instead of ending early; an
 * attribute that is missing reads as 0, not as uninitialised memory, and any integer member is
 * accepted; an id that is not in the graph throws.  The whole trace is read at once: there is no
 * window. */
#ifndef ORRERY_FEEDER_HPP
#define ORRERY_FEEDER_HPP

#ifdef ORRERY_FEEDER_V3_HPP
#error "include <orrery/feeder.hpp> before <orrery/feeder_v3.hpp>, or only the latter"
#endif

#include <orrery/feeder_messages.hpp>

#include <memory>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace Chakra
{

class ETFeederNode
{
  public:
    explicit ETFeederNode(std::shared_ptr<ChakraProtoMsg::Node> node) : node_(std::move(node)) {}

    std::shared_ptr<ChakraProtoMsg::Node> getChakraNode()
    {
        return node_;
    }
    /* Adding a child twice has no effect. */
    void addChild(std::shared_ptr<ETFeederNode> node)
    {
        if (is_child_.insert(node.get()).second)
            children_.push_back(std::move(node));
    }
    std::vector<std::shared_ptr<ETFeederNode>> getChildren()
    {
        return children_;
    }
    void addDepUnresolvedParentID(uint64_t id)
    {
        unresolved_.push_back(id);
    }
    std::vector<uint64_t> getDepUnresolvedParentIDs()
    {
        return unresolved_;
    }
    void setDepUnresolvedParentIDs(const std::vector<uint64_t> &ids)
    {
        unresolved_ = ids;
    }

    uint64_t id() const
    {
        return node_->id();
    }
    std::string name() const
    {
        return node_->name();
    }
    ChakraProtoMsg::NodeType type() const
    {
        return node_->type();
    }
    /* Microseconds. */
    uint64_t runtime() const
    {
        return node_->duration_micros();
    }
    bool is_cpu_op() const
    {
        return integer("is_cpu_op") != 0;
    }
    uint64_t num_ops() const
    {
        return integer("num_ops");
    }
    uint32_t tensor_loc() const
    {
        return static_cast<uint32_t>(integer("tensor_loc"));
    }
    uint64_t tensor_size() const
    {
        return integer("tensor_size");
    }
    ChakraProtoMsg::CollectiveCommType comm_type() const
    {
        return static_cast<ChakraProtoMsg::CollectiveCommType>(integer("comm_type"));
    }
    uint32_t comm_priority() const
    {
        return static_cast<uint32_t>(integer("comm_priority"));
    }
    uint64_t comm_size() const
    {
        return integer("comm_size");
    }
    uint32_t comm_src() const
    {
        return static_cast<uint32_t>(integer("comm_src"));
    }
    uint32_t comm_dst() const
    {
        return static_cast<uint32_t>(integer("comm_dst"));
    }
    uint32_t comm_tag() const
    {
        return static_cast<uint32_t>(integer("comm_tag"));
    }
    std::string pg_name() const
    {
        const ChakraProtoMsg::AttributeProto *a = find("pg_name");
        return a ? a->string_val() : std::string();
    }
    std::string get_inputs_values() const
    {
        return node_->inputs().values();
    }
    std::string get_inputs_shapes() const
    {
        return node_->inputs().shapes();
    }
    std::string get_inputs_types() const
    {
        return node_->inputs().types();
    }
    std::string get_outputs_values() const
    {
        return node_->outputs().values();
    }
    std::string get_outputs_shapes() const
    {
        return node_->outputs().shapes();
    }
    std::string get_outputs_types() const
    {
        return node_->outputs().types();
    }

    /* Attributes without an accessor above. */
    bool has_other_attr(const std::string &name) const
    {
        return !has_method(name) && find(name) != nullptr;
    }
    const ChakraProtoMsg::AttributeProto &get_other_attr(const std::string &name) const
    {
        if (!has_other_attr(name))
            throw std::runtime_error("node " + std::to_string(id()) + " has no other attribute \"" +
                                     name + "\"");
        return *find(name);
    }

  private:
    static bool has_method(const std::string &name)
    {
        for (const char *known :
             {"is_cpu_op", "num_ops", "tensor_size", "comm_type", "comm_priority", "comm_size",
              "comm_src", "comm_dst", "comm_tag", "pg_name"})
            if (name == known)
                return true;
        return false;
    }
    const ChakraProtoMsg::AttributeProto *find(const std::string &name) const
    {
        for (const ChakraProtoMsg::AttributeProto &a : node_->attr())
            if (a.name() == name)
                return &a;
        return nullptr;
    }
    uint64_t integer(const char *name) const
    {
        const ChakraProtoMsg::AttributeProto *a = find(name);
        return a ? a->integer() : 0;
    }

    std::shared_ptr<ChakraProtoMsg::Node> node_;
    std::vector<std::shared_ptr<ETFeederNode>> children_;
    std::unordered_set<const ETFeederNode *> is_child_;
    std::vector<uint64_t> unresolved_;
};

struct CompareNodes {
    bool operator()(const std::shared_ptr<ETFeederNode> &a,
                    const std::shared_ptr<ETFeederNode> &b) const
    {
        return a->id() > b->id();
    }
};

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
        const std::unique_ptr<orr_trace, void (*)(orr_trace *)> owner(trace, orr_trace_destroy);
        read(trace);
    }
    ETFeeder(const ETFeeder &) = delete;
    ETFeeder &operator=(const ETFeeder &) = delete;
    ~ETFeeder()
    {
        /* Children are owned by their parents: break long chains and cycles here, or destructors
         * would recurse deeply or leak. */
        for (const std::shared_ptr<ETFeederNode> &node : all_)
            *node = ETFeederNode(node->getChakraNode());
    }

    /* Adds the node to the graph; its dependencies are ignored. */
    void addNode(std::shared_ptr<ETFeederNode> node)
    {
        const uint64_t id = node->id();
        all_.push_back(node);
        graph_[id] = std::move(node);
    }
    /* Removes the node from the graph.  If it is ready it is still handed out. */
    void removeNode(uint64_t id)
    {
        graph_.erase(id);
    }
    /* True while a node is in the graph or ready, so also while nodes are in flight. */
    bool hasNodesToIssue() const
    {
        return !graph_.empty() || !ready_.empty();
    }
    /* The ready node with the smallest id; null when none is ready. */
    std::shared_ptr<ETFeederNode> getNextIssuableNode()
    {
        if (ready_.empty())
            return nullptr;
        std::shared_ptr<ETFeederNode> node = ready_.top();
        ready_.pop();
        return node;
    }
    /* Makes the node ready, whatever it depends on. */
    void pushBackIssuableNode(uint64_t id)
    {
        ready_.push(lookupNode(id));
    }
    std::shared_ptr<ETFeederNode> lookupNode(uint64_t id) const
    {
        const auto found = graph_.find(id);
        if (found == graph_.end())
            throw std::out_of_range("node " + std::to_string(id) + " is not in the graph");
        return found->second;
    }
    /* The node is done: one dependency fewer for each of its children. */
    void freeChildrenNodes(uint64_t id)
    {
        const std::shared_ptr<ETFeederNode> node = lookupNode(id);
        for (const std::shared_ptr<ETFeederNode> &child : node->getChildren()) {
            ChakraProtoMsg::Repeated<uint64_t> *left = child->getChakraNode()->mutable_data_deps();
            for (auto at = left->begin(); at != left->end(); ++at)
                if (*at == id) {
                    left->erase(at);
                    break;
                }
            if (left->empty())
                ready_.push(child);
        }
    }

  private:
    /* Parents may follow their children in the file, so children are added in a second pass. */
    void read(const orr_trace *trace)
    {
        const uint32_t count = orr_trace_columns(trace)->count;
        orr_node n;
        for (uint32_t i = 0; i < count; i++) {
            orr_trace_node(trace, i, &n);
            addNode(std::make_shared<ETFeederNode>(std::make_shared<ChakraProtoMsg::Node>(n)));
        }
        for (const std::shared_ptr<ETFeederNode> &node : all_) {
            for (uint64_t parent : node->getChakraNode()->data_deps()) {
                const auto found = graph_.find(parent);
                if (found != graph_.end())
                    found->second->addChild(node);
                else
                    node->addDepUnresolvedParentID(parent);
            }
            if (node->getChakraNode()->data_deps().empty() && graph_.at(node->id()) == node)
                ready_.push(node);
        }
    }

    std::vector<std::shared_ptr<ETFeederNode>> all_; /* in the order of the file */
    std::unordered_map<uint64_t, std::shared_ptr<ETFeederNode>> graph_;
    std::priority_queue<std::shared_ptr<ETFeederNode>,
                        std::vector<std::shared_ptr<ETFeederNode>>,
                        CompareNodes>
        ready_;
};

} // namespace Chakra

#include <orrery/feeder_v3.hpp>

#endif
