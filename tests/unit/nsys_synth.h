/* SPDX-License-Identifier: Apache-2.0 */
/* nsys_synth.h - exports as Nsight Systems writes them, made up: for tests and benchmarks that must
 * not need any.
 *
 *     synth s = {.folder = "traces", .nodes = 2, .gpus = 4, .channels = 2, .rounds = 10};
 *     synth_write(&s);                        // traces/trace_nid000000.sqlite, ...001.sqlite
 *
 * All GPUs are in one communicator; each round is a collective, whose kind, algorithm and protocol
 * go round, and an exchange of messages with the neighbours inside a group every fourth.  A file
 * for each node.  Includers define synth_require, which ends the program when something is not as
 * it must be. */
#ifndef ORR_TESTS_NSYS_SYNTH_H
#define ORR_TESTS_NSYS_SYNTH_H

#include "base/formats/sqlite_file.h"
#include "base/memory/buffer.h"

#include <stdio.h>

typedef struct synth {
    const char *folder;
    uint32_t nodes, gpus; /* on each node */
    uint32_t channels, rounds;
    uint32_t algorithm; /* 0: ring and tree in turn; else this number of NCCL's */
    bool is_silent;     /* communicators are not announced */
    bool has_payloads;  /* NCCL's own words, and no markers */
    bool has_text_ids;  /* texts by their numbers, as newer exports have them */
    bool has_no_kernels;
    uint32_t lost_calls; /* the last rank was captured from this call on */
    uint32_t only;       /* 1 to 4: this kind of collective alone, of those of synth_names */
} synth;

typedef struct synth_gpu {
    const synth *s;
    uint32_t rank, ranks;
    int64_t clock, busy;
    uint64_t global;
    orr_sqlite_rows *nvtx, *kernel, *text;
    int64_t *texts;
} synth_gpu;

static inline void synth_ok(orr_code code, const orr_error *err)
{
    synth_require(code == ORR_OK, err->message);
}

static inline uint32_t synth_pid(const synth_gpu *g)
{
    return 1000 + g->rank;
}

static inline orr_sqlite_value synth_int(int64_t v)
{
    return (orr_sqlite_value){.is_int = true, .number = v};
}

/* A range of so many ns from now on; 0: a marker. */
static inline void synth_mark(synth_gpu *g, int64_t length, const char *text, orr_span blob)
{
    orr_error err;
    orr_sqlite_value v[6] = {
        synth_int(g->clock), {0}, {0}, {0}, synth_int((int64_t)(g->global | 7)), {0}};
    if (length)
        v[1] = synth_int(g->clock + length);
    if (g->s->has_text_ids) {
        const orr_sqlite_value row[2] = {synth_int(++*g->texts), {.text = orr_str_of(text)}};
        synth_ok(orr_sqlite_insert(g->text, row, 2, &err), &err);
        v[3] = row[0];
    } else {
        v[2].text = orr_str_of(text);
    }
    v[5].blob = blob;
    synth_ok(orr_sqlite_insert(g->nvtx, v, 6, &err), &err);
    g->clock += 10;
}

static inline void synth_kernel(synth_gpu *g, int64_t name, int64_t stream)
{
    orr_error err;
    const int64_t start = (g->clock > g->busy ? g->clock : g->busy) + 500;
    g->busy = start + 10000;
    const orr_sqlite_value v[7] = {synth_int(start),
                                   synth_int(g->busy),
                                   synth_int(g->rank),
                                   synth_int(stream),
                                   synth_int((int64_t)g->global),
                                   synth_int(name),
                                   synth_int(g->s->channels)};
    if (!g->s->has_no_kernels)
        synth_ok(orr_sqlite_insert(g->kernel, v, 7, &err), &err);
    g->clock += 1000;
}

static inline void synth_announce(synth_gpu *g)
{
    char line[200];
    const uint32_t n = g->ranks, r = g->rank;
    snprintf(line, sizeof line, "commHash 0xabc commId 0xfeed rank %u nranks %u pid %u", r, n,
             synth_pid(g));
    synth_mark(g, 0, line, (orr_span){0});
    for (uint32_t k = 0; k < g->s->channels; k++) {
        const uint32_t turn = k % 2 ? n - 1 : 1; /* every other ring the other way round */
        snprintf(line, sizeof line, "commHash 0xabc Rings [%u] %u->%u->%u pid %u", k,
                 (r + n - turn) % n, r, (r + turn) % n, synth_pid(g));
        synth_mark(g, 0, line, (orr_span){0});
        const int left = 2 * r + 1 < n ? (int)(2 * r + 1) : -1,
                  right = 2 * r + 2 < n ? (int)(2 * r + 2) : -1;
        snprintf(line, sizeof line, "commHash 0xabc Trees [%u] %d/%d/-1->%u->%d pid %u", k, left,
                 right, r, r ? (int)(r - 1) / 2 : -1, synth_pid(g));
        synth_mark(g, 0, line, (orr_span){0});
    }
}

static const char *const synth_names[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast"};

/* comm u64 at 0, bytes u64 at 8, root or peer i32 at 16; behind the header. */
static inline void synth_payload(
    synth_gpu *g, const char *name, uint32_t schema, uint64_t bytes, uint32_t other)
{
    uint8_t blob[56] = {
        [0] = 1, [8] = (uint8_t)schema, [16] = 24, [24] = 56, [32] = 0xef, [33] = 0xbe};
    char text[40];
    for (int i = 0; i < 8; i++)
        blob[40 + i] = (uint8_t)(bytes >> (8 * i));
    for (int i = 0; i < 4; i++)
        blob[48 + i] = (uint8_t)(other >> (8 * i));
    snprintf(text, sizeof text, "nccl%s", name);
    synth_mark(g, 9, text, (orr_span){.ptr = blob, .len = sizeof blob});
}

static inline void synth_collective(synth_gpu *g, uint32_t round)
{
    char line[400];
    const uint32_t kind = g->s->only ? g->s->only - 1 : round % 4, protocol = round / 4 % 3,
                   pid = synth_pid(g);
    const uint64_t bytes = 4096 + 1000 * (round % 7), count = bytes / 4 / g->s->channels;
    const uint32_t algorithm = g->s->algorithm               ? g->s->algorithm
                               : kind == 0 && round % 8 == 0 ? 0
                                                             : 1;
    if (g->s->has_payloads) {
        synth_payload(g, synth_names[kind], kind == 3 ? 2 : 1, bytes, 0);
        synth_kernel(g, 1 + kind, 20);
        return;
    }
    snprintf(line, sizeof line,
             "nccl%s(): commHash 0xabc, stream 0x550, data_size %llu, type_size 4, pid %u",
             synth_names[kind], (unsigned long long)bytes, pid);
    synth_mark(g, 9, line, (orr_span){0});
    snprintf(
        line, sizeof line,
        "collType %u root 0 redOp 0 algo %u proto %u commHash 0xabc stream 0x550 data_size %llu type_size 4 "
        "chunkSize 0 chunkCount 0 chunkSteps %u sliceSteps %u stepSize 131072 pid %u",
        kind, algorithm, protocol, (unsigned long long)bytes, protocol == 2 ? 4 : 1,
        protocol == 2 ? 2 : 1, pid);
    synth_mark(g, 0, line, (orr_span){0});
    for (uint32_t k = 0; k < g->s->channels; k++) {
        snprintf(
            line, sizeof line,
            "nWarps 16 count %llu chunkCount 4096 workCount %llu lastChunkCount %llu workOffset 0 sendbuff 77 "
            "recvbuff 5000000 pid %u",
            (unsigned long long)count, (unsigned long long)count,
            (unsigned long long)(count / g->ranks + 1), pid);
        synth_mark(g, 0, line, (orr_span){0});
    }
    synth_kernel(g, 1 + kind, 20);
}

static inline void synth_exchange(synth_gpu *g, uint32_t round)
{
    char line[200];
    const uint32_t pid = synth_pid(g), next = (g->rank + 1) % g->ranks,
                   before = (g->rank + g->ranks - 1) % g->ranks;
    const uint32_t bytes = 100000 + 100 * round;
    snprintf(line, sizeof line, g->s->has_payloads ? "ncclGroupStart" : "ncclGroupStart(): pid %u",
             pid);
    synth_mark(g, g->s->has_payloads ? 5 : 0, line, (orr_span){0});
    for (int way = 1; way <= 2; way++) {
        const char *name = way == 1 ? "Send" : "Recv";
        if (g->s->has_payloads) {
            synth_payload(g, name, 3, bytes, way == 1 ? next : before);
            continue;
        }
        snprintf(line, sizeof line,
                 "nccl%s(): commHash 0xabc, stream 0x550, data_size %u, type_size 1, pid %u", name,
                 bytes, pid);
        synth_mark(g, 9, line, (orr_span){0});
    }
    for (int way = 1; way <= 2 && !g->s->has_payloads; way++) {
        snprintf(
            line, sizeof line,
            "Bytes %u nWarps 16 p2pType %d peer %u proto 2 countHi32 0 countLo32 %u chunkSize 65536 pid %u",
            bytes, way, way == 1 ? next : before, bytes, pid);
        synth_mark(g, 0, line, (orr_span){0});
    }
    snprintf(line, sizeof line, g->s->has_payloads ? "ncclGroupEnd" : "ncclGroupEnd(): pid %u",
             pid);
    synth_mark(g, g->s->has_payloads ? 5 : 0, line, (orr_span){0});
    synth_kernel(g, 5, 20);
}

static inline void synth_fill_gpu(synth_gpu *g)
{
    const bool is_last = g->rank + 1 == g->ranks;
    char line[80];
    if (!g->s->is_silent && !g->s->has_payloads)
        synth_announce(g);
    if (!g->s->has_payloads) {
        snprintf(line, sizeof line, "ncclGroupStart(): pid %u", synth_pid(g));
        synth_mark(g, 0, line, (orr_span){0});
        snprintf(line, sizeof line, "ncclGroupEnd(): pid %u", synth_pid(g));
        synth_mark(g, 0, line, (orr_span){0});
    }
    const uint32_t lost = is_last ? g->s->lost_calls : 0;
    int64_t from = INT64_MIN;
    for (uint32_t round = 0; round < g->s->rounds; round++) {
        if (lost && round == lost)
            from = g->clock - 1;
        if (round % 4 == 3)
            synth_exchange(g, round);
        synth_collective(g, round);
    }
    if (from == INT64_MIN)
        return;
    const int64_t end = g->clock;
    g->clock = from;
    snprintf(line, sizeof line, "nsys profiling start, pid: %u", synth_pid(g));
    synth_mark(g, 0, line, (orr_span){0});
    g->clock = end + 100000000;
    snprintf(line, sizeof line, "nsys profiling stopped, pid: %u", synth_pid(g));
    synth_mark(g, 0, line, (orr_span){0});
}

static inline void synth_schemas(orr_sqlite *db, orr_error *err)
{
    synth_ok(
        orr_sqlite_run(
            db,
            "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER, schemaId INTEGER, idx INTEGER, flags "
            "INTEGER, type INTEGER, name TEXT, description TEXT, arrayOrUnionDetail INTEGER, offset INTEGER);"
            "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES "
            "(1, 1, 0, 0, 18, 'NCCL communicator ID', NULL, 0, 0), (1, 1, 1, 0, 22, 'Message size [bytes]', NULL, 0, 8),"
            "(1, 2, 0, 0, 18, 'NCCL communicator ID', NULL, 0, 0), (1, 2, 1, 0, 22, 'Bytes', NULL, 0, 8),"
            "(1, 2, 2, 0, 5, 'Root', NULL, 0, 16),"
            "(1, 3, 0, 0, 18, 'NCCL communicator ID', NULL, 0, 0), (1, 3, 1, 0, 22, 'Bytes', NULL, 0, 8),"
            "(1, 3, 2, 0, 5, 'Peer rank', NULL, 0, 16)",
            err),
        err);
}

static inline void synth_names_of(orr_sqlite_rows *text, int64_t *number)
{
    orr_error err;
    static const char *const names[] = {"AllReduce_Sum_f32_RING_LL", "AllGather_RING_LL",
                                        "ReduceScatter_Sum_f32_RING_LL", "Broadcast_RING_LL",
                                        "SendRecv"};
    char line[100];
    for (int i = 0; i < 5; i++) {
        snprintf(line, sizeof line, "ncclDevKernel_%s(ncclDevComm*, unsigned long, ncclWork*)",
                 names[i]);
        const orr_sqlite_value row[2] = {synth_int(++*number), {.text = orr_str_of(line)}};
        synth_ok(orr_sqlite_insert(text, row, 2, &err), &err);
    }
}

static inline void synth_write_node(const synth *s, uint32_t node)
{
    char path[500];
    orr_error err;
    orr_sqlite *db;
    orr_sqlite_rows *nvtx, *kernel, *text;
    int64_t texts = 0;
    snprintf(path, sizeof path, "%s/trace_nid%06u.sqlite", s->folder, node);
    synth_ok(orr_sqlite_create(path, &db, &err), &err);
    synth_ok(
        orr_sqlite_run(
            db,
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
            "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER, text TEXT, textId "
            "INTEGER, globalTid INTEGER, binaryData BLOB);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId "
            "INTEGER, streamId INTEGER, globalPid INTEGER, demangledName INTEGER, gridX INTEGER); BEGIN",
            &err),
        &err);
    if (s->has_payloads)
        synth_schemas(db, &err);
    synth_ok(orr_sqlite_select(db, "INSERT INTO StringIds VALUES (?, ?)", &text, &err), &err);
    synth_ok(
        orr_sqlite_select(
            db,
            "INSERT INTO NVTX_EVENTS (start, end, text, textId, globalTid, binaryData) VALUES (?, ?, ?, ?, ?, ?)",
            &nvtx, &err),
        &err);
    synth_ok(
        orr_sqlite_select(db, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?)",
                          &kernel, &err),
        &err);
    synth_names_of(text, &texts);
    for (uint32_t i = 0; i < s->gpus; i++) {
        const uint32_t rank = node * s->gpus + i;
        synth_gpu g = {.s = s,
                       .rank = rank,
                       .ranks = s->nodes * s->gpus,
                       .clock = 1000000 + 137 * (int64_t)rank,
                       .global = UINT64_C(1) << 48 | (uint64_t)(1000 + rank) << 24,
                       .nvtx = nvtx,
                       .kernel = kernel,
                       .text = text,
                       .texts = &texts};
        synth_fill_gpu(&g);
    }
    orr_sqlite_end(text);
    orr_sqlite_end(nvtx);
    orr_sqlite_end(kernel);
    synth_ok(orr_sqlite_run(db, "COMMIT", &err), &err);
    orr_sqlite_close(db);
}

static inline void synth_write(const synth *s)
{
    for (uint32_t node = 0; node < s->nodes; node++)
        synth_write_node(s, node);
}

/* Timings on a line: 100 ns, and 1 ns for each 50 bytes of a reduction or 100 of a copy. */
static inline void synth_write_table(const char *path)
{
    static const char *const keys[] = {"NPKIT_EVENT_GPU_RECV_REDUCE_SEND",
                                       "NPKIT_EVENT_GPU_DIRECT_RECV_COPY_SEND"};
    FILE *f = fopen(path, "w");
    synth_require(f != NULL, path);
    for (int k = 0; k < 2; k++) {
        fprintf(f, "%s\"%s\": {", k ? ", " : "{", keys[k]);
        for (uint32_t size = 64; size <= 1u << 22; size *= 4)
            fprintf(f, "%s\"%u\": [%u]", size == 64 ? "" : ", ", size, 100 + size / (k ? 100 : 50));
        fprintf(f, "}");
    }
    fprintf(f, "}\n");
    fclose(f);
}

#endif
