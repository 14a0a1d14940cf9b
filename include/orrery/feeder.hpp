/* SPDX-License-Identifier: Apache-2.0 */
/* feeder.hpp - the feeder for C++, with the names that users of the C++ feeder of Chakra know.
 *
 *     orrery::ETFeeder feeder("rank0.et");
 *     while (feeder.hasNodesToIssue()) {
 *         std::shared_ptr<orrery::ETFeederNode> node = feeder.getNextIssuableNode();
 *         if (!node) break;                          // nothing is ready just now
 *         simulate(node->name(), node->runtime());
 *         feeder.freeChildrenNodes(node->id());      // it is done
 *         feeder.removeNode(node->id());
 *     }
 *
 * With ORRERY_CHAKRA_NAMES defined before the include, the namespace Chakra means this one, so that
 * a simulator changes an #include and nothing else.  Errors are orrery::Error exceptions with file
 * and byte.
 *
 * Differences that matter: an attribute that is not there reads as its default or throws, never as
 * uninitialised memory; cycles, missing parents and duplicate ids throw instead of standing still;
 * both data and control dependencies count unless the constructor is told otherwise; removeNode may
 * be left out. */
#ifndef ORRERY_FEEDER_HPP
#define ORRERY_FEEDER_HPP

#include <orrery/feeder.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace orrery
{

class Error : public std::runtime_error
{
  public:
    explicit Error(const orr_error &e) : std::runtime_error(text_of(e)), code(e.code) {}
    orr_code code;

  private:
    static std::string text_of(const orr_error &e)
    {
        char text[600];
        return orr_error_text(&e, text, sizeof text);
    }
};

/* A copy of one node: valid as long as you hold it. */
class ETFeederNode
{
  public:
    explicit ETFeederNode(const orr_node &n)
        : body_(n.body.ptr, n.body.ptr + n.body.len), id_(n.id), type_(n.type),
          runtime_(n.duration_us), start_(n.start_us),
          name_(n.name.ptr, n.name.len), inputs_{text(n.inputs.values), text(n.inputs.shapes),
                                                 text(n.inputs.types)},
          outputs_{text(n.outputs.values), text(n.outputs.shapes), text(n.outputs.types)}
    {
    }

    uint64_t id() const
    {
        return id_;
    }
    const std::string &name() const
    {
        return name_;
    }
    orr_node_type type() const
    {
        return static_cast<orr_node_type>(type_);
    }
    uint64_t runtime() const
    {
        return runtime_;
    }
    uint64_t start_time_micros() const
    {
        return start_;
    }
    bool is_cpu_op() const
    {
        return integer("is_cpu_op", 0) != 0;
    }
    uint64_t num_ops() const
    {
        return static_cast<uint64_t>(integer("num_ops", 0));
    }
    uint32_t tensor_loc() const
    {
        return static_cast<uint32_t>(integer("tensor_loc", 0));
    }
    uint64_t tensor_size() const
    {
        return static_cast<uint64_t>(needed("tensor_size"));
    }
    orr_collective comm_type() const
    {
        return static_cast<orr_collective>(needed("comm_type"));
    }
    uint32_t comm_priority() const
    {
        return static_cast<uint32_t>(integer("comm_priority", 0));
    }
    uint64_t comm_size() const
    {
        return static_cast<uint64_t>(needed("comm_size"));
    }
    uint32_t comm_src() const
    {
        return static_cast<uint32_t>(needed("comm_src"));
    }
    uint32_t comm_dst() const
    {
        return static_cast<uint32_t>(needed("comm_dst"));
    }
    uint32_t comm_tag() const
    {
        return static_cast<uint32_t>(needed("comm_tag"));
    }
    std::string pg_name() const
    {
        orr_attr a;
        return find("pg_name", a) && a.kind == ORR_VALUE_STRING && !a.is_list ? text(a.value.s)
                                                                              : std::string();
    }
    const std::string &get_inputs_values() const
    {
        return inputs_[0];
    }
    const std::string &get_inputs_shapes() const
    {
        return inputs_[1];
    }
    const std::string &get_inputs_types() const
    {
        return inputs_[2];
    }
    const std::string &get_outputs_values() const
    {
        return outputs_[0];
    }
    const std::string &get_outputs_shapes() const
    {
        return outputs_[1];
    }
    const std::string &get_outputs_types() const
    {
        return outputs_[2];
    }

    bool has_other_attr(const std::string &name) const
    {
        orr_attr a;
        return find(name.c_str(), a);
    }
    /* Valid as long as this node. */
    orr_attr get_other_attr(const std::string &name) const
    {
        orr_attr a;
        if (!find(name.c_str(), a))
            throw std::runtime_error("node " + std::to_string(id_) + " has no attribute \"" + name +
                                     "\"");
        return a;
    }
    std::vector<uint64_t> data_deps() const
    {
        return ids(true);
    }
    std::vector<uint64_t> ctrl_deps() const
    {
        return ids(false);
    }

  private:
    static std::string text(orr_str s)
    {
        return std::string(s.ptr, s.len);
    }
    orr_node view() const
    {
        orr_node n = orr_node();
        n.id = id_;
        n.body.ptr = body_.data();
        n.body.len = body_.size();
        return n;
    }
    bool find(const char *name, orr_attr &out) const
    {
        const orr_node n = view();
        return orr_node_attr(&n, name, &out);
    }
    int64_t integer(const char *name, int64_t otherwise) const
    {
        orr_attr a;
        int64_t v;
        return find(name, a) && orr_attr_int(&a, &v) ? v : otherwise;
    }
    int64_t needed(const char *name) const
    {
        int64_t v;
        const orr_attr a = get_other_attr(name);
        if (!orr_attr_int(&a, &v))
            throw std::runtime_error("node " + std::to_string(id_) + ": attribute \"" + name +
                                     "\" is not an integer");
        return v;
    }
    std::vector<uint64_t> ids(bool is_data) const
    {
        const orr_node n = view();
        orr_list it = is_data ? orr_node_data_deps(&n) : orr_node_ctrl_deps(&n);
        orr_value v;
        std::vector<uint64_t> out;
        while (orr_list_next(&it, &v))
            out.push_back(v.u);
        return out;
    }

    std::vector<uint8_t> body_;
    uint64_t id_;
    uint32_t type_;
    uint64_t runtime_, start_;
    std::string name_;
    std::string inputs_[3], outputs_[3];
};

class ETFeeder
{
  public:
    explicit ETFeeder(const std::string &path, orr_feeder_options options = orr_feeder_options())
    {
        orr_error err;
        options.size = sizeof options;
        if (orr_feeder_open(path.c_str(), &options, &feeder_, &err))
            throw Error(err);
    }
    ~ETFeeder()
    {
        orr_feeder_close(feeder_);
    }
    ETFeeder(const ETFeeder &) = delete;
    ETFeeder &operator=(const ETFeeder &) = delete;

    /* True while a node is ready, in flight or waiting. */
    bool hasNodesToIssue() const
    {
        return orr_feeder_left(feeder_) != 0;
    }
    /* The next ready node; null when none is ready. */
    std::shared_ptr<ETFeederNode> getNextIssuableNode()
    {
        orr_node n;
        orr_error err;
        const orr_code code = orr_feeder_next(feeder_, &n, &err);
        if (code == ORR_END)
            return nullptr;
        if (code)
            throw Error(err);
        return std::make_shared<ETFeederNode>(n);
    }
    /* The node is done: its children may become ready. */
    void freeChildrenNodes(uint64_t id)
    {
        check(orr_feeder_finish, id);
    }
    /* The node cannot start now: it is ready again. */
    void pushBackIssuableNode(uint64_t id)
    {
        check(orr_feeder_put_back, id);
    }
    /* Finished nodes go by themselves. */
    void removeNode(uint64_t) {}
    std::shared_ptr<ETFeederNode> lookupNode(uint64_t id) const
    {
        orr_node n;
        if (!orr_feeder_find(feeder_, id, &n))
            throw std::runtime_error("node " + std::to_string(id) +
                                     " is finished or not in the trace");
        return std::make_shared<ETFeederNode>(n);
    }
    orr_feeder *handle() const
    {
        return feeder_;
    }

  private:
    void check(orr_code (*step)(orr_feeder *, uint64_t, orr_error *), uint64_t id)
    {
        orr_error err;
        if (step(feeder_, id, &err))
            throw Error(err);
    }
    orr_feeder *feeder_ = nullptr;
};

} // namespace orrery

#ifdef ORRERY_CHAKRA_NAMES
namespace Chakra = orrery;
#endif

#endif
