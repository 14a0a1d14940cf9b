/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_check.c - the doctor on any job of a few ranks, and on any file that it is asked to repair.
 *
 * The same bytes are used twice: as a list of nodes, six bytes each, dealt out to four ranks; and
 * as a file. Whatever comes, a report can be printed; a repaired trace can be read, has none of the
 * faults that can be repaired, and a second repair finds nothing to do. */
#include "fuzz_trace.h"

#include "base/formats/wire.h"

enum { RANKS = 4, BYTES_A_NODE = 6 };

static const orr_set_options one_thread = {.size = sizeof one_thread, .threads = 1};
static const orr_check_options few_findings = {
    .size = sizeof few_findings, .limit = 3, .threads = 1};
static const orr_check_options all_findings = {.size = sizeof all_findings, .threads = 1};

static orr_attr whole(const char *name, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value.i = v};
}

static size_t collective_attrs(const uint8_t *p, orr_attr *out)
{
    static const char *const groups[] = {"", "a", "b", "0"};
    out[0] = whole("comm_type", p[3] % 11);
    out[1] = whole("comm_size", p[4] % 4 - 1);
    out[2] = (orr_attr){.name = orr_str_of("pg_name"),
                        .kind = ORR_VALUE_STRING,
                        .value.s = orr_str_of(groups[p[5] & 3])};
    return p[5] >> 2 & 1 ? 2 : 3;
}

static size_t message_attrs(const uint8_t *p, bool is_send, orr_attr *out)
{
    out[0] = whole("comm_size", p[3] % 4);
    out[1] = whole(is_send ? "comm_dst" : "comm_src", p[4] % (RANKS + 1));
    out[2] = whole("comm_tag", p[5] % 3);
    return p[5] >> 6 ? 3 : 1; /* one in four has no peer and no tag */
}

/* rank 2 bits, what 2 bits, 4 bits unused | dependency, as so many nodes back or ahead | more of it
 * | ... */
static void add_node(orr_trace *t, uint32_t id, const uint8_t *p)
{
    static const uint32_t types[] = {ORR_NODE_COMP, ORR_NODE_COMM_COLL, ORR_NODE_COMM_SEND,
                                     ORR_NODE_COMM_RECV};
    const uint64_t deps[2] = {id - (uint64_t)(int64_t)((int)(p[1] % 16) - 2),
                              id - (uint64_t)(int64_t)((int)(p[2] % 16) - 2)};
    orr_attr attrs[3];
    orr_error err;
    orr_draft d = {.id = p[0] >> 4 == 15 ? id / 2 : id,
                   .name = orr_str_of("n"),
                   .type = types[p[0] >> 2 & 3],
                   .attrs = attrs};
    d.data_deps = deps;
    d.data_count = (p[1] >> 4) % 3;
    d.ctrl_deps = deps;
    d.ctrl_count = (p[2] >> 4) % 3;
    if (d.type == ORR_NODE_COMM_COLL)
        d.attr_count = collective_attrs(p, attrs);
    else if (d.type != ORR_NODE_COMP)
        d.attr_count = message_attrs(p, d.type == ORR_NODE_COMM_SEND, attrs);
    REQUIRE(orr_trace_append(t, &d, &err) == ORR_OK);
}

static void check_job(const uint8_t *data, size_t size)
{
    orr_trace *ranks[RANKS];
    orr_error err;
    orr_set *s;
    orr_check_report *r;
    orr_str text;
    for (int i = 0; i < RANKS; i++)
        REQUIRE(orr_trace_create(&(orr_meta){.version = orr_str_of("1")}, &ranks[i], &err) ==
                ORR_OK);
    for (size_t i = 0; i + BYTES_A_NODE <= size; i += BYTES_A_NODE)
        add_node(ranks[data[i] & 3], (uint32_t)(i / BYTES_A_NODE) + 100, data + i);
    REQUIRE(orr_set_create(&s, &err) == ORR_OK);
    for (int i = 0; i < RANKS; i++)
        REQUIRE(orr_trace_seal(ranks[i], &err) == ORR_OK &&
                orr_set_add(s, ranks[i], &err) == ORR_OK);
    REQUIRE(orr_set_add_rank(s, 0, 7, &err) == ORR_OK);
    REQUIRE(orr_check_set(s, &few_findings, &r, &err) == ORR_OK);
    REQUIRE(orr_check_text(r, &(orr_check_style){.size = sizeof(orr_check_style), .input = "job"},
                           &text, &err) == ORR_OK &&
            text.len);
    REQUIRE(orr_check_json(r, &(orr_check_style){.size = sizeof(orr_check_style), .input = "job"},
                           &text, &err) == ORR_OK &&
            text.len);
    orr_check_report_destroy(r);
    orr_set_close(s);
}

static void check_repaired(orr_span bytes)
{
    static const orr_check_kind repaired[] = {
        ORR_CHECK_DUPLICATE_ID,    ORR_CHECK_MISSING_PARENT,       ORR_CHECK_MISSING_CTRL_PARENT,
        ORR_CHECK_SELF_DEPENDENCY, ORR_CHECK_DUPLICATE_DEPENDENCY, ORR_CHECK_DAMAGED};
    fuzz_sink *sink = fuzz_writable();
    orr_error err;
    orr_set *s;
    orr_check_report *r;
    const char *path = fuzz_file(1, bytes.ptr, bytes.len);
    REQUIRE(orr_set_open(path, &one_thread, &s, &err) == ORR_OK &&
            orr_check_set(s, &all_findings, &r, &err) == ORR_OK);
    for (size_t i = 0; i < sizeof repaired / sizeof *repaired; i++)
        REQUIRE(r->count[repaired[i]] == 0);
    orr_check_report_destroy(r);
    orr_set_close(s);
    REQUIRE(orr_check_fix(path, sink->path, &one_thread, NULL, &r, &err) == ORR_OK);
    REQUIRE(r->finding_count == 0);
    orr_check_report_destroy(r);
    fuzz_take(sink);
}

static void repair_file(const uint8_t *data, size_t size)
{
    fuzz_sink *sink = fuzz_writable();
    orr_error err;
    orr_check_report *r;
    const orr_code code =
        orr_check_fix(fuzz_file(0, data, size), sink->path, &one_thread, NULL, &r, &err);
    const orr_span out = fuzz_take(sink);
    if (code) {
        /* A generation of old that cannot hold what was made of it is refused as a wish, not as
         * input. */
        REQUIRE((code == ORR_EINPUT || code == ORR_EUSAGE) && !r && err.message[0]);
        return;
    }
    orr_check_report_destroy(r);
    if (out.len == 0)
        return; /* a file that had nothing but JSON around no nodes */
    uint8_t *copy = malloc(out.len);
    REQUIRE(copy != NULL);
    memcpy(copy, out.ptr, out.len);
    check_repaired((orr_span){copy, out.len});
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 300)
        return 0;
    FUZZ_WAYS(way, 2, data, size)
    {
        if (way == 0)
            check_job(data, size);
        else
            repair_file(data, size);
    }
    return 0;
}
