/* SPDX-License-Identifier: Apache-2.0 */
/* feeder_messages.hpp - the records of a trace as C++ objects, with the accessors that protobuf
 * would generate for Chakra's schema: node.id(), node.data_deps(i), attr.int64_val(), set_...,
 * mutable_...
 *
 * Programs written for Chakra's C++ feeder use these accessors; here they come without protobuf.
 * An accessor of a member that is not set returns its default (0, empty), as protobuf does. */
#ifndef ORRERY_FEEDER_MESSAGES_HPP
#define ORRERY_FEEDER_MESSAGES_HPP

#include <orrery/trace.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace orrery
{

/* An error of the library; its text has file and location. */
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

} // namespace orrery

namespace ChakraProtoMsg
{

enum NodeType {
    INVALID_NODE = ORR_NODE_INVALID,
    METADATA_NODE = ORR_NODE_METADATA,
    MEM_LOAD_NODE = ORR_NODE_MEM_LOAD,
    MEM_STORE_NODE = ORR_NODE_MEM_STORE,
    COMP_NODE = ORR_NODE_COMP,
    COMM_SEND_NODE = ORR_NODE_COMM_SEND,
    COMM_RECV_NODE = ORR_NODE_COMM_RECV,
    COMM_COLL_NODE = ORR_NODE_COMM_COLL
};

enum CollectiveCommType {
    ALL_REDUCE = ORR_COLL_ALL_REDUCE,
    REDUCE = ORR_COLL_REDUCE,
    ALL_GATHER = ORR_COLL_ALL_GATHER,
    GATHER = ORR_COLL_GATHER,
    SCATTER = ORR_COLL_SCATTER,
    BROADCAST = ORR_COLL_BROADCAST,
    ALL_TO_ALL = ORR_COLL_ALL_TO_ALL,
    REDUCE_SCATTER = ORR_COLL_REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK = ORR_COLL_REDUCE_SCATTER_BLOCK,
    BARRIER = ORR_COLL_BARRIER
};

/* A repeated field: a vector with protobuf's names and its signed size. */
template <typename T> class Repeated
{
    /* std::vector<bool> has no addressable elements. */
    using Stored = std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>;
    using Given = std::conditional_t<std::is_arithmetic_v<T>, T, const T &>;

  public:
    using value_type = T;
    using iterator = typename std::vector<Stored>::iterator;
    using const_iterator = typename std::vector<Stored>::const_iterator;

    int size() const
    {
        return static_cast<int>(items_.size());
    }
    bool empty() const
    {
        return items_.empty();
    }
    Given Get(int i) const
    {
        if constexpr (std::is_same_v<T, bool>)
            return items_.at(static_cast<size_t>(i)) != 0;
        else
            return items_.at(static_cast<size_t>(i));
    }
    Given operator[](int i) const
    {
        return Get(i);
    }
    Stored *Mutable(int i)
    {
        return &items_.at(static_cast<size_t>(i));
    }
    Stored *Add()
    {
        items_.emplace_back();
        return &items_.back();
    }
    void Add(T value)
    {
        items_.push_back(std::move(value));
    }
    void Clear()
    {
        items_.clear();
    }
    iterator begin()
    {
        return items_.begin();
    }
    iterator end()
    {
        return items_.end();
    }
    const_iterator begin() const
    {
        return items_.begin();
    }
    const_iterator end() const
    {
        return items_.end();
    }
    iterator erase(const_iterator at)
    {
        return items_.erase(at);
    }

  private:
    std::vector<Stored> items_;
};

/* The message behind a list member of an attribute. */
template <typename T> class ListMessage
{
  public:
    const Repeated<T> &values() const
    {
        return values_;
    }
    decltype(auto) values(int i) const
    {
        return values_.Get(i);
    }
    int values_size() const
    {
        return values_.size();
    }
    Repeated<T> *mutable_values()
    {
        return &values_;
    }
    void add_values(T value)
    {
        values_.Add(std::move(value));
    }

  private:
    Repeated<T> values_;
};

/* member, Type, C++ type, number of its field; its list is the next field. */
#define ORRERY_MEMBERS(X)              \
    X(double, Double, double, 3)       \
    X(float, Float, float, 5)          \
    X(int32, Int32, int32_t, 7)        \
    X(int64, Int64, int64_t, 9)        \
    X(uint32, Uint32, uint32_t, 11)    \
    X(uint64, Uint64, uint64_t, 13)    \
    X(sint32, Sint32, int32_t, 15)     \
    X(sint64, Sint64, int64_t, 17)     \
    X(fixed32, Fixed32, uint32_t, 19)  \
    X(fixed64, Fixed64, uint64_t, 21)  \
    X(sfixed32, Sfixed32, int32_t, 23) \
    X(sfixed64, Sfixed64, int64_t, 25) \
    X(bool, Bool, bool, 27)            \
    X(string, String, std::string, 29) \
    X(bytes, Bytes, std::string, 31)

#define ORRERY_LIST(member, Type, type, number) \
    class Type##List : public ListMessage<type> \
    {                                           \
    };
ORRERY_MEMBERS(ORRERY_LIST)
#undef ORRERY_LIST

class AttributeProto
{
  public:
    /* The number of the member's field; its list has the next one. */
    enum ValueCase {
        VALUE_NOT_SET = 0,
#define ORRERY_CASE(member, Type, type, number) k##Type##Val = number, k##Type##List = number + 1,
        ORRERY_MEMBERS(ORRERY_CASE)
#undef ORRERY_CASE
    };

    const std::string &name() const
    {
        return name_;
    }
    void set_name(std::string name)
    {
        name_ = std::move(name);
    }
    const std::string &doc_string() const
    {
        return doc_;
    }
    void set_doc_string(std::string doc)
    {
        doc_ = std::move(doc);
    }
    ValueCase value_case() const
    {
        return value_.index() == 0 ? VALUE_NOT_SET : static_cast<ValueCase>(value_.index() + 2);
    }
    void clear_value()
    {
        value_ = {};
    }

#define ORRERY_ACCESSORS(member, Type, type, number)            \
    bool has_##member##_val() const                             \
    {                                                           \
        return value_.index() == number - 2;                    \
    }                                                           \
    const type &member##_val() const                            \
    {                                                           \
        static const type none{};                               \
        const type *v = std::get_if<number - 2>(&value_);       \
        return v ? *v : none;                                   \
    }                                                           \
    void set_##member##_val(type v)                             \
    {                                                           \
        value_.emplace<number - 2>(std::move(v));               \
    }                                                           \
    bool has_##member##_list() const                            \
    {                                                           \
        return value_.index() == number - 1;                    \
    }                                                           \
    const Type##List &member##_list() const                     \
    {                                                           \
        static const Type##List none{};                         \
        const Type##List *v = std::get_if<number - 1>(&value_); \
        return v ? *v : none;                                   \
    }                                                           \
    Type##List *mutable_##member##_list()                       \
    {                                                           \
        if (!has_##member##_list())                             \
            value_.emplace<number - 1>();                       \
        return &std::get<number - 1>(value_);                   \
    }
    ORRERY_MEMBERS(ORRERY_ACCESSORS)
#undef ORRERY_ACCESSORS

    AttributeProto() = default;
    explicit AttributeProto(const orr_attr &a)
        : name_(a.name.ptr, a.name.len), doc_(a.doc.ptr, a.doc.len)
    {
        switch (a.kind) {
#define ORRERY_READ(member, Type, type, number)                  \
    case static_cast<orr_value_kind>((number - 1) / 2):          \
        if (a.is_list) {                                         \
            orr_list it = orr_attr_items(&a);                    \
            orr_value v;                                         \
            Type##List *list = mutable_##member##_list();        \
            while (orr_list_next(&it, &v))                       \
                list->add_values(value_of<type>(a.kind, v));     \
        } else {                                                 \
            set_##member##_val(value_of<type>(a.kind, a.value)); \
        }                                                        \
        break;
            ORRERY_MEMBERS(ORRERY_READ)
#undef ORRERY_READ
        default:
            break;
        }
    }

    /* Any integer or bool member as a number; 0 for others.  For readers that do not care which
     * member a writer chose. */
    uint64_t integer() const
    {
        return std::visit(
            [](const auto &v) -> uint64_t {
                using V = std::decay_t<decltype(v)>;
                if constexpr (std::is_integral_v<V>)
                    return static_cast<uint64_t>(v);
                else
                    return 0;
            },
            value_);
    }

  private:
    template <typename T> static T value_of(orr_value_kind kind, const orr_value &v)
    {
        if constexpr (std::is_same_v<T, std::string>)
            return std::string(v.s.ptr, v.s.len);
        else if constexpr (std::is_floating_point_v<T>)
            return static_cast<T>(v.d);
        else if constexpr (std::is_same_v<T, bool>)
            return v.u != 0;
        else
            return kind == ORR_VALUE_UINT32 || kind == ORR_VALUE_UINT64 ||
                           kind == ORR_VALUE_FIXED32 || kind == ORR_VALUE_FIXED64
                       ? static_cast<T>(v.u)
                       : static_cast<T>(v.i);
    }

    std::string name_, doc_;
    /* In the order of the fields, so that index + 2 is the number of the field. */
    std::variant<std::monostate,
                 double,
                 DoubleList,
                 float,
                 FloatList,
                 int32_t,
                 Int32List,
                 int64_t,
                 Int64List,
                 uint32_t,
                 Uint32List,
                 uint64_t,
                 Uint64List,
                 int32_t,
                 Sint32List,
                 int64_t,
                 Sint64List,
                 uint32_t,
                 Fixed32List,
                 uint64_t,
                 Fixed64List,
                 int32_t,
                 Sfixed32List,
                 int64_t,
                 Sfixed64List,
                 bool,
                 BoolList,
                 std::string,
                 StringList,
                 std::string,
                 BytesList>
        value_;
};
#undef ORRERY_MEMBERS

/* The accessors of a plain member and of a repeated one. */
#define ORRERY_PLAIN(type, member) \
    const type &member() const     \
    {                              \
        return member##_;          \
    }                              \
    void set_##member(type v)      \
    {                              \
        member##_ = std::move(v);  \
    }
#define ORRERY_REPEATED(type, member)    \
    const Repeated<type> &member() const \
    {                                    \
        return member##_;                \
    }                                    \
    decltype(auto) member(int i) const   \
    {                                    \
        return member##_.Get(i);         \
    }                                    \
    int member##_size() const            \
    {                                    \
        return member##_.size();         \
    }                                    \
    Repeated<type> *mutable_##member()   \
    {                                    \
        return &member##_;               \
    }

class GlobalMetadata
{
  public:
    GlobalMetadata() = default;
    explicit GlobalMetadata(const orr_trace *t)
    {
        const orr_str version = orr_trace_version(t);
        version_.assign(version.ptr, version.len);
        orr_attrs it = orr_trace_attrs(t);
        orr_attr a;
        while (orr_attrs_next(&it, &a))
            attr_.Add(AttributeProto(a));
    }
    ORRERY_PLAIN(std::string, version)
    ORRERY_REPEATED(AttributeProto, attr)

  private:
    std::string version_;
    Repeated<AttributeProto> attr_;
};

class IOInfo
{
  public:
    IOInfo() = default;
    explicit IOInfo(const orr_io &io)
        : values_(io.values.ptr, io.values.len), shapes_(io.shapes.ptr, io.shapes.len),
          types_(io.types.ptr, io.types.len)
    {
    }
    ORRERY_PLAIN(std::string, values)
    ORRERY_PLAIN(std::string, shapes)
    ORRERY_PLAIN(std::string, types)

  private:
    std::string values_, shapes_, types_;
};

class Node
{
  public:
    Node() = default;
    explicit Node(const orr_node &n)
        : id_(n.id), name_(n.name.ptr, n.name.len), type_(static_cast<NodeType>(n.type)),
          start_time_micros_(n.start_us), duration_micros_(n.duration_us),
          has_inputs_(n.has_inputs), has_outputs_(n.has_outputs), inputs_(n.inputs),
          outputs_(n.outputs)
    {
        orr_list ctrl = orr_node_ctrl_deps(&n), data = orr_node_data_deps(&n);
        orr_attrs it = orr_node_attrs(&n);
        orr_value v;
        orr_attr a;
        while (orr_list_next(&ctrl, &v))
            ctrl_deps_.Add(v.u);
        while (orr_list_next(&data, &v))
            data_deps_.Add(v.u);
        while (orr_attrs_next(&it, &a))
            attr_.Add(AttributeProto(a));
    }

    ORRERY_PLAIN(uint64_t, id)
    ORRERY_PLAIN(std::string, name)
    ORRERY_PLAIN(NodeType, type)
    ORRERY_PLAIN(uint64_t, start_time_micros)
    ORRERY_PLAIN(uint64_t, duration_micros)
    ORRERY_REPEATED(uint64_t, ctrl_deps)
    ORRERY_REPEATED(uint64_t, data_deps)
    ORRERY_REPEATED(AttributeProto, attr)
    void add_ctrl_deps(uint64_t id)
    {
        ctrl_deps_.Add(id);
    }
    void add_data_deps(uint64_t id)
    {
        data_deps_.Add(id);
    }
    AttributeProto *add_attr()
    {
        return attr_.Add();
    }
    bool has_inputs() const
    {
        return has_inputs_;
    }
    const IOInfo &inputs() const
    {
        return inputs_;
    }
    IOInfo *mutable_inputs()
    {
        has_inputs_ = true;
        return &inputs_;
    }
    bool has_outputs() const
    {
        return has_outputs_;
    }
    const IOInfo &outputs() const
    {
        return outputs_;
    }
    IOInfo *mutable_outputs()
    {
        has_outputs_ = true;
        return &outputs_;
    }

  private:
    uint64_t id_ = 0;
    std::string name_;
    NodeType type_ = INVALID_NODE;
    uint64_t start_time_micros_ = 0, duration_micros_ = 0;
    bool has_inputs_ = false, has_outputs_ = false;
    IOInfo inputs_, outputs_;
    Repeated<uint64_t> ctrl_deps_, data_deps_;
    Repeated<AttributeProto> attr_;
};
#undef ORRERY_PLAIN
#undef ORRERY_REPEATED

} // namespace ChakraProtoMsg

#endif
