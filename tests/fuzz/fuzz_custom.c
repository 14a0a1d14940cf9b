/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_custom.c - a custom collective of any shape, on the packet network and on the analytical
 * ones.
 *
 * The first byte says how it is run, every four bytes after it are a node of one rank's program:
 * computations, sends and receives that wait for each other in any way, receives whose bytes were
 * there before them among them.  Whatever the programs say, the run ends or says why it stands
 * still. */
#include "fuzz_trace.h"

#include <orrery/lab/compat.h>

#include "run/run_state.h"
#include "trace/trace_impl.h"

#include <string.h>

enum { RANKS = 3, NODE_BYTES = 4, MOST_NODES = 24, MOST_EVENTS = 3000 };
/* Setting a packet network up takes ten times as long as the others: when fuzzing it is one input in 32 that has it. */
#ifdef FUZZ_ONE_WAY
#define TAKES_PACKETS(data, size) (fuzz_pick(data, size, 16) == 0)
#else
#define TAKES_PACKETS(data, size) true
#endif
enum { IS_PACKET = 1, IS_OLD = 2, RENDEZVOUS = 4, TWICE = 8 };

static char folder[64];

static void remove_folder(void)
{
    static const char *const names[] = {"coll.0.et",   "coll.1.et", "coll.2.et",
                                        "system.json", "topo.txt",  "config.txt"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static const char *in_folder(char path[128], const char *name)
{
    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    char path[128];
    FILE *f = fopen(in_folder(path, name), "w");
    REQUIRE(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Programs stay open: what is in them changes without a file being made. */
static int program_files[RANKS];

static void make_programs(void)
{
    char path[128], name[24];
    for (int r = 0; r < RANKS; r++) {
        snprintf(name, sizeof name, "coll.%d.et", r);
        program_files[r] = open(in_folder(path, name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        REQUIRE(program_files[r] >= 0);
    }
}

static void make_folder(void)
{
    char text[512];
    if (folder[0])
        return;
    snprintf(folder, sizeof folder, "/dev/shm/fuzz_customXXXXXX"); /* memory */
    REQUIRE(mkdtemp(folder) != NULL);
    atexit(remove_folder);
    snprintf(text, sizeof text,
             "{\"scheduling-policy\": \"LIFO\", \"preferred-dataset-splits\": 1, "
             "\"local-mem-bw\": 50, \"all-reduce-implementation-custom\": [\"%s/coll\"]}",
             folder);
    write_text("system.json", text);
    write_text("topo.txt", "4 1 3\n3\n3 0 100Gbps 0.0005ms 0\n3 1 100Gbps 0.0005ms 0\n"
                           "3 2 100Gbps 0.0005ms 0\n");
    snprintf(text, sizeof text,
             "TOPOLOGY_FILE %s/topo.txt\nCC_MODE 12\nL2_CHUNK_SIZE 4000\nL2_ACK_INTERVAL 1\n"
             "RATE_AI 50Mb/s\nRATE_HAI 100Mb/s\nENABLE_TRACE 0\nBUFFER_SIZE 32\n"
             "KMAX_MAP 1 100000000000 1600\nKMIN_MAP 1 100000000000 400\n"
             "PMAX_MAP 1 100000000000 0.2\n",
             folder);
    write_text("config.txt", text);
    make_programs();
}

/* ---- programs ---- */

static orr_attr integer(const char *name, int64_t value)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value = {.i = value}};
}

static void append(orr_trace *t, orr_draft d)
{
    orr_error err;
    d.name = orr_str_of("node");
    REQUIRE(orr_trace_append(t, &d, &err) == ORR_OK);
}

/* Bits of the third byte: this node waits for the first, second, ... one before it. */
static void add_node(orr_trace *t, const uint8_t *b, uint64_t id)
{
    const unsigned kind = b[0] >> 2 & 3;
    const orr_attr attrs[] = {
        integer("comm_src", b[1] & 3),
        integer("comm_dst", b[1] & 3),
        integer("comm_tag", b[1] >> 2 & 7),
        integer("comm_size", 1 + 500 * (int64_t)(b[3] & 15)),
    };
    uint64_t deps[8];
    size_t count = 0;
    for (uint64_t k = 0; k < 8 && k < id; k++)
        if (b[2] >> k & 1)
            deps[count++] = id - 1 - k;
    append(t, (orr_draft){.id = id,
                          .type = kind == 0   ? ORR_NODE_COMP
                                  : kind == 1 ? ORR_NODE_COMM_SEND
                                              : ORR_NODE_COMM_RECV,
                          .duration_us = b[3] >> 4,
                          .data_deps = deps,
                          .data_count = count,
                          .attrs = attrs,
                          .attr_count = 4});
}

static size_t put_record(uint8_t *out, size_t room, orr_span body)
{
    size_t n = 0, len = body.len;
    for (; len > 127; len >>= 7)
        out[n++] = (uint8_t)(len | 128);
    out[n++] = (uint8_t)len;
    REQUIRE(n + body.len <= room);
    memcpy(out + n, body.ptr, body.len);
    return n + body.len;
}

/* Records behind their lengths, as in an .et file. */
static void write_program(int fd, const orr_trace *t)
{
    static uint8_t bytes[1 << 14];
    size_t n = 0;
    if (orr_trace_has_metadata(t))
        n += put_record(bytes, sizeof bytes - 8, orr__trace_meta_body(t));
    for (uint32_t i = 0; i < orr_trace_columns(t)->count; i++)
        n += put_record(bytes + n, sizeof bytes - 8 - n, orr__trace_body(t, i));
    REQUIRE(ftruncate(fd, (off_t)n) == 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n);
}

static void write_programs(const uint8_t *data, size_t size)
{
    orr_error err;
    for (unsigned r = 0; r < RANKS; r++) {
        orr_trace *t;
        uint64_t id = 0;
        REQUIRE(orr_trace_create(NULL, &t, &err) == ORR_OK);
        for (size_t at = 0; at + NODE_BYTES <= size && at < MOST_NODES * NODE_BYTES;
             at += NODE_BYTES)
            if ((data[at] & 3) == r)
                add_node(t, data + at, id++);
        if (id == 0)
            append(t, (orr_draft){.id = 0, .type = ORR_NODE_COMP});
        REQUIRE(orr_trace_seal(t, &err) == ORR_OK);
        write_program(program_files[r], t);
        orr_trace_destroy(t);
    }
}

/* One collective, or two that nothing keeps apart; some work before it, so that ranks come late. */
static orr_trace *make_trace(unsigned rank, uint8_t flags)
{
    const orr_attr attrs[] = {
        integer("comm_type", ORR_COLL_ALL_REDUCE),
        integer("comm_size", 3000),
    };
    const uint64_t first = 1;
    orr_trace *t;
    orr_error err;
    REQUIRE(orr_trace_create(NULL, &t, &err) == ORR_OK);
    append(t, (orr_draft){.id = 1, .type = ORR_NODE_COMP, .duration_us = rank * (flags >> 4)});
    for (uint64_t k = 0; k < 1 + ((flags & TWICE) != 0); k++)
        append(t, (orr_draft){.id = 2 + k,
                              .type = ORR_NODE_COMM_COLL,
                              .data_deps = &first,
                              .data_count = 1,
                              .attrs = attrs,
                              .attr_count = 2});
    REQUIRE(orr_trace_seal(t, &err) == ORR_OK);
    return t;
}

/* The traces that use the programs are the same for all inputs with the same bits: made once. */
static const orr_set *set_of(uint8_t flags)
{
    static orr_set *sets[2][16];
    orr_set **s = &sets[(flags & TWICE) != 0][flags >> 4];
    orr_error err;
    if (*s)
        return *s;
    REQUIRE(orr_set_create(s, &err) == ORR_OK);
    for (unsigned r = 0; r < RANKS; r++)
        REQUIRE(orr_set_add(*s, make_trace(r, flags), &err) == ORR_OK);
    return *s;
}

/* ---- running them ---- */

static void run(const orr_sim_options *opt)
{
    orr_sim *s;
    orr_error err;
    orr_code code = orr_sim_create(opt, &s, &err);
    REQUIRE(code == ORR_OK);
    for (int i = 0; i < MOST_EVENTS && !code; i++)
        code = orr_sim_step(s, &err);
    if (code == ORR_END && orr_sim_finished(s) < orr_sim_ranks(s))
        code = orr_sim_run(s, &err); /* stands still: this explains why */
    REQUIRE(!code || code == ORR_END || (code == ORR_EINPUT && err.message[0]));
    orr_sim_destroy(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char system[128], network[128];
    const orr_net_config dims = {.size = sizeof dims,
                                 .dims = 1,
                                 .shape = {ORR_NET_SWITCH},
                                 .npus = {RANKS},
                                 .bandwidth = {50},
                                 .latency_ns = {500}};
    orr_error err;
    if (size == 0)
        return 0;
    make_folder();
    write_programs(data + 1, size - 1);
    const bool is_packet = (data[0] & IS_PACKET) && TAKES_PACKETS(data, size);
    const orr_compat *old = NULL;
    if (data[0] & IS_OLD)
        (void)!orr_compat_find(ORR_RULES_RUN, is_packet ? "ns3" : "astra-sim", &old, &err);
    const orr_compat *old_packets = old && is_packet ? orr_compat_at(ORR_RULES_PACKET, 0) : NULL;
    const orr_sim_options opt = {
        .system = in_folder(system, "system.json"),
        .network = is_packet ? in_folder(network, "config.txt") : NULL,
        .dims = is_packet ? NULL : &dims,
        .fidelity = is_packet ? "packet" : "aware",
        .set = set_of(data[0]),
        .queues_per_dim = 1,
        .rendezvous = data[0] & RENDEZVOUS,
        .rules = old ? old->run : NULL,
        .packet_rules = old_packets ? old_packets->packet : NULL,
    };
    run(&opt);
    return 0;
}
