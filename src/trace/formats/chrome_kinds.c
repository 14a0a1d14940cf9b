/* SPDX-License-Identifier: Apache-2.0 */
/* chrome_kinds.c - what a span of a trace file is.
 *
 * Our own files say it: the category is the name of a kind, and the arguments are the fields of a
 * span.  Those of Kineto have categories of their own, and what NCCL does is known by the names of
 * its kernels and by the arguments that PyTorch adds to them (collective name, number of elements,
 * type, group). */
#include "chrome_trace_impl.h"
#include "trace/comm_names.h"
#include "trace/dtypes.h"

/* ---- collectives by name ---- */

/* Lower case, letters and digits alone: "_reduce_scatter_base" and "ReduceScatter" are then
 * alike. */
static size_t plain_letters(orr_str s, char *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len && n + 1 < room; i++) {
        const char c = s.ptr[i];
        if (c >= 'A' && c <= 'Z')
            out[n++] = (char)(c + 32);
        else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            out[n++] = c;
    }
    out[n] = '\0';
    return n;
}

/* In this order: "allreduce" has "reduce" in it. */
static const struct {
    const char *part;
    uint8_t kind; /* orr_span_kind */
    uint8_t collective;
} known[] = {
    {"allreduce", ORR_SPAN_COLLECTIVE, ORR_COLL_ALL_REDUCE + 1},
    {"reducescatter", ORR_SPAN_COLLECTIVE, ORR_COLL_REDUCE_SCATTER + 1},
    {"allgather", ORR_SPAN_COLLECTIVE, ORR_COLL_ALL_GATHER + 1},
    {"alltoall", ORR_SPAN_COLLECTIVE, ORR_COLL_ALL_TO_ALL + 1},
    {"broadcast", ORR_SPAN_COLLECTIVE, ORR_COLL_BROADCAST + 1},
    {"barrier", ORR_SPAN_COLLECTIVE, ORR_COLL_BARRIER + 1},
    {"gather", ORR_SPAN_COLLECTIVE, ORR_COLL_GATHER + 1},
    {"scatter", ORR_SPAN_COLLECTIVE, ORR_COLL_SCATTER + 1},
    {"reduce", ORR_SPAN_COLLECTIVE, ORR_COLL_REDUCE + 1},
    {"sendrecv", ORR_SPAN_RECEIVE, 0},
    {"send", ORR_SPAN_SEND, 0},
    {"recv", ORR_SPAN_RECEIVE, 0},
};

static void set_communication(orr_str name, orr_timespan *span)
{
    char plain[256];
    plain_letters(name, plain, sizeof plain);
    span->kind = ORR_SPAN_COLLECTIVE;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(plain, known[i].part)) {
            span->kind = known[i].kind;
            span->collective = known[i].collective;
            return;
        }
}

/* ---- Kineto ---- */

static orr_code set_group(chrome_file *c, orr_str group, orr_timespan *span)
{
    return group.len ? orr_timeline_add_text(c->t, group, &span->group, c->err) : ORR_OK;
}

static orr_code read_nccl(chrome_file *c, const chrome_event *e, orr_timespan *span)
{
    orr_str name = e->name, type = {0}, group = {0};
    uint64_t elements = 0, members = 0, peer = 0;
    chrome_text(e, "Collective name", &name);
    set_communication(name, span);
    if (chrome_text(e, "dtype", &type) && chrome_u64(e, "In msg nelems", &elements) &&
        elements < UINT64_MAX / 16)
        span->size = elements * orr__dtype_scalar_bytes(type);
    if (chrome_u64(e, "Group size", &members) && members <= ORR_CHROME_TRACE_RANKS &&
        span->kind == ORR_SPAN_COLLECTIVE)
        span->members = (uint32_t)members;
    const bool is_send = span->kind == ORR_SPAN_SEND;
    if (span->kind != ORR_SPAN_COLLECTIVE &&
        chrome_u64(e, is_send ? "Dst Rank" : "Src Rank", &peer) && peer < ORR_CHROME_TRACE_RANKS) {
        span->has |= ORR_SPAN_HAS_PEER;
        span->peer = (uint32_t)peer;
    }
    chrome_text(e, "Process Group Name", &group);
    return set_group(c, group, span);
}

static const struct {
    const char *category;
    uint8_t kind;
} kineto_kinds[] = {
    {"kernel", ORR_SPAN_COMPUTE},        {"gpu_memcpy", ORR_SPAN_MEMORY},
    {"gpu_memset", ORR_SPAN_MEMORY},     {"cpu_op", ORR_SPAN_HOST},
    {"cuda_runtime", ORR_SPAN_HOST},     {"cuda_driver", ORR_SPAN_HOST},
    {"python_function", ORR_SPAN_HOST},  {"privateuse1_runtime", ORR_SPAN_HOST},
    {"user_annotation", ORR_SPAN_OTHER}, {"gpu_user_annotation", ORR_SPAN_OTHER},
    {"overhead", ORR_SPAN_HOST},         {"mtia_ccp_events", ORR_SPAN_COMPUTE},
    {"hpu_op", ORR_SPAN_COMPUTE},        {"mtia_workloadd", ORR_SPAN_COMPUTE},
    {"hip_runtime", ORR_SPAN_HOST},      {"xpu_runtime", ORR_SPAN_HOST},
    {"mtia_runtime", ORR_SPAN_HOST},     {"privateuse1_driver", ORR_SPAN_HOST},
    {"npu_kernel", ORR_SPAN_COMPUTE},    {"privateuse1_kernel", ORR_SPAN_COMPUTE},
    {"xpu_kernel", ORR_SPAN_COMPUTE},    {"collective_comm", ORR_SPAN_COLLECTIVE},
};

static orr_code classify_kineto(chrome_file *c, const chrome_event *e, orr_timespan *span)
{
    uint64_t bytes;
    for (size_t i = 0; i < sizeof kineto_kinds / sizeof *kineto_kinds; i++)
        if (orr_str_is(e->cat, kineto_kinds[i].category))
            span->kind = kineto_kinds[i].kind;
    if (span->kind == ORR_SPAN_MEMORY && chrome_u64(e, "bytes", &bytes))
        span->size = bytes;
    const orr__comm_by by =
        span->kind == ORR_SPAN_COMPUTE ? orr__comm_kernel(e->name) : ORR__COMM_NOT;
    if (by == ORR__COMM_ONE_SIDED) {
        span->kind = ORR_SPAN_COLLECTIVE;
        span->collective = orr__comm_one_sided_kind(e->name);
    }
    /* Libraries that communicate on the host have no kernels; what NCCL does there only starts
     * one. */
    if (by == ORR__COMM_NCCL ||
        (orr_str_is(e->cat, "user_annotation") && orr__comm_on_host(e->name)))
        return read_nccl(c, e, span);
    return ORR_OK;
}

/* ---- our own ---- */

static void set_peer(const chrome_event *e, orr_timespan *span)
{
    uint64_t peer;
    const char *key = span->kind == ORR_SPAN_COLLECTIVE ? "last_rank" : "peer";
    if (!chrome_u64(e, key, &peer) || peer > UINT32_MAX)
        return;
    span->has |= ORR_SPAN_HAS_PEER;
    span->peer = (uint32_t)peer;
}

/* Of a span whose peers are not in the file: it waited for them. */
static void set_flows(const chrome_event *e, orr_timespan *span)
{
    uint64_t waited;
    if (!chrome_u64(e, "waited_ns", &waited) ||
        waited > ((uint64_t)span->end - (uint64_t)span->start) / 1000)
        return;
    span->has |= ORR_SPAN_HAS_FLOWS;
    span->flows = span->start + (orr_ps)waited * 1000;
}

static void set_collective(const chrome_event *e, orr_timespan *span)
{
    orr_str name;
    uint64_t members;
    if (chrome_u64(e, "group_ranks", &members) && members <= UINT32_MAX)
        span->members = (uint32_t)members;
    if (!chrome_text(e, "collective", &name))
        return;
    for (uint32_t k = 0; k < ORR_COLL_COUNT; k++)
        if (orr_str_is(name, orr_collective_name(k)))
            span->collective = (uint8_t)(k + 1);
}

static orr_code classify_ours(chrome_file *c, const chrome_event *e, orr_timespan *span)
{
    orr_str group = {0};
    orr_json_value v;
    bool is_open = false;
    for (unsigned k = 0; k < ORR_SPAN_KINDS; k++)
        if (orr_str_is(e->cat, orr_span_kind_name((orr_span_kind)k)))
            span->kind = (uint8_t)k;
    uint64_t id;
    if (chrome_u64(e, "node", &id)) {
        span->has |= ORR_SPAN_HAS_ID;
        span->id = id;
    }
    uint64_t size;
    if (chrome_u64(e, "bytes", &size))
        span->size = size;
    set_peer(e, span);
    set_flows(e, span);
    if (span->kind == ORR_SPAN_COLLECTIVE)
        set_collective(e, span);
    if (chrome_has(e, CHROME_ARGS) && orr_json_find(e->of[CHROME_ARGS], "unfinished", &v) &&
        orr_json_get_bool(v, &is_open, NULL) == ORR_OK)
        span->is_open = is_open;
    chrome_text(e, "group", &group);
    return set_group(c, group, span);
}

static bool is_kineto_category(orr_str category)
{
    for (size_t i = 0; i < sizeof kineto_kinds / sizeof *kineto_kinds; i++)
        if (orr_str_is(category, kineto_kinds[i].category))
            return true;
    return false;
}

orr_code chrome_classify(chrome_file *c, const chrome_event *e, orr_timespan *span)
{
    if (c->is_ours)
        return classify_ours(c, e, span);
    if (c->is_kineto || is_kineto_category(e->cat)) {
        c->is_kineto = true;
        return classify_kineto(c, e, span);
    }
    return classify_ours(c, e, span); /* anyone may use our words */
}
