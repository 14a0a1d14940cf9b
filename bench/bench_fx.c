/* SPDX-License-Identifier: Apache-2.0 */
/* bench_fx.c - converts a captured step of a million calls to traces, including reading; work is
 * calls of the file.
 *
 * The step is a chain of layers: a view, a product, an activation, an all-reduce in place, a wait,
 * a sum.  The same for 8 ranks and for 100,000 shows the cost of ranks: the file's list of groups
 * and a table entry each. */
#include "bench.h"
#include "bench_input.h"

#include <orrery/lab/fx.h>

#include <inttypes.h>

enum { CALLS = 1000002, CALLS_A_LAYER = 6, LAYERS = CALLS / CALLS_A_LAYER, GROUP = 8 };

typedef struct job {
    const char *path;
    uint32_t ranks;
} job;

static void write_list(FILE *f, uint32_t first, uint32_t count)
{
    for (uint32_t r = 0; r < count; r++)
        fprintf(f, "%s%" PRIu32, r ? "," : "", first + r);
}

static void write_groups(FILE *f, uint32_t ranks)
{
    fprintf(f, "\"groups\":[{\"family\":0,\"ranks\":[");
    write_list(f, 0, ranks);
    for (uint32_t r = 0; r < ranks; r += GROUP) {
        fprintf(f, "]},{\"family\":1,\"ranks\":[");
        write_list(f, r, GROUP);
    }
    fprintf(f, "]}]");
}

static void write_tensor(
    FILE *f, const char *shape, const char *stride, uint32_t storage, bool is_first)
{
    fprintf(
        f,
        "%s{\"shape\":[%s],\"dtype\":\"bfloat16\",\"stride\":[%s],\"offset\":0,\"storage\":%" PRIu32
        ",\"device\":\"cuda\"}",
        is_first ? "" : ",", shape, stride, storage);
}

/* Storages of layer l: 1 + 4 * l is the weight, then product, activation, sum.  Tensors: one more,
 * the transposed weight. */
static void write_tables(FILE *f)
{
    fprintf(f, "\"storages\":[65536");
    for (uint32_t l = 0; l < LAYERS; l++)
        fprintf(f, ",524288,65536,65536,65536");
    fprintf(f, "],\"kept\":[");
    for (uint32_t l = 0; l < LAYERS; l++)
        fprintf(f, "%s[%" PRIu32 ",\"parameter\"]", l ? "," : "", 1 + 4 * l);
    fprintf(f, "],\"tensors\":[");
    write_tensor(f, "64,512", "512,1", 0, true);
    for (uint32_t l = 0; l < LAYERS; l++) {
        write_tensor(f, "512,512", "512,1", 1 + 4 * l, false);
        write_tensor(f, "512,512", "1,512", 1 + 4 * l, false);
        for (uint32_t i = 1; i < 4; i++)
            write_tensor(f, "64,512", "512,1", 1 + 4 * l + i, false);
    }
    fprintf(f, "],");
}

static void write_layer(FILE *f, uint32_t l)
{
    const uint32_t w = 1 + 5 * l, x = l ? w - 1 : 0, y = w + 2, z = w + 3, sum = w + 4, m = l % 48;
    const char *at = "\"phase\":\"forward\"";
    fprintf(f,
            "%s{\"op\":0,%s,\"in\":[%" PRIu32 "],\"out\":[%" PRIu32
            "],\"view\":1,\"module\":%" PRIu32 ",\"line\":0},",
            l ? "," : "", at, w, w + 1, m);
    fprintf(f,
            "{\"op\":1,%s,\"in\":[%" PRIu32 ",%" PRIu32 "],\"out\":[%" PRIu32
            "],\"module\":%" PRIu32 ",\"line\":0},",
            at, x, w + 1, y, m);
    fprintf(f,
            "{\"op\":2,%s,\"in\":[%" PRIu32 "],\"out\":[%" PRIu32 "],\"module\":%" PRIu32
            ",\"line\":1},",
            at, y, z, m);
    fprintf(f,
            "{\"op\":3,%s,\"in\":[%" PRIu32 "],\"out\":[%" PRIu32 "],\"writes\":[%" PRIu32
            "],\"args\":{\"async_op\":false,\"group\":1},\"module\":%" PRIu32 ",\"line\":2},",
            at, z, z, z, m);
    fprintf(f, "{\"op\":4,%s,\"in\":[%" PRIu32 "],\"out\":[],\"module\":%" PRIu32 ",\"line\":2},",
            at, z, m);
    fprintf(f,
            "{\"op\":5,%s,\"in\":[%" PRIu32 ",%" PRIu32 "],\"out\":[%" PRIu32
            "],\"module\":%" PRIu32 ",\"line\":3}",
            at, x, z, sum, m);
}

static void write_capture(const char *path, uint32_t ranks)
{
    FILE *f = fopen(path, "w");
    bench_require(f != NULL, "cannot write the input");
    fprintf(
        f,
        "{\"format\":\"orrery-capture\",\"version\":1,\"torch\":\"2.11.0\",\"world_size\":%" PRIu32
        ",\"step\":1,",
        ranks);
    write_groups(f, ranks);
    fprintf(
        f,
        ",\"notes\":[],\"graphs\":[{\"ops\":[\"aten.t.default\",\"aten.mm.default\",\"aten.gelu.default\","
        "\"c10d.allreduce_.default\",\"orrery.wait\",\"aten.add.Tensor\"],\"modules\":[");
    for (unsigned m = 0; m < 48; m++)
        fprintf(f, "%s\"Net.layers.%u\"", m ? "," : "", m);
    fprintf(f, "],\"lines\":[\"net.py:1\",\"net.py:2\",\"net.py:3\",\"net.py:4\"],");
    write_tables(f);
    fprintf(f, "\"nodes\":[");
    for (uint32_t l = 0; l < LAYERS; l++)
        write_layer(f, l);
    fprintf(f, "],\"rank\":0}]}\n");
    bench_require(fclose(f) == 0, "cannot write the input");
}

static double run(void *context)
{
    const job *j = context;
    orr_error err;
    orr_fx *c;
    orr_set *s;
    bench_check(orr_fx_read(j->path, 0, &c, &err), &err);
    bench_check(orr_fx_convert(c, NULL, &s, NULL, &err), &err);
    bench_require(orr_set_rank_count(s) == j->ranks && orr_set_class_count(s) == 1, "ranks differ");
    bench_require(orr_trace_columns(orr_set_trace(s, 0))->count == 4 * LAYERS, "nodes differ");
    orr_set_close(s);
    orr_fx_close(c);
    return CALLS / 1e6;
}

int main(void)
{
    char few[512], many[512];
    bench_path(few, sizeof few, "step_8.json");
    bench_path(many, sizeof many, "step_100k.json");
    write_capture(few, 8);
    write_capture(many, 100000);
    job small = {.path = few, .ranks = 8}, large = {.path = many, .ranks = 100000};
    bench_apart(&(bench_job){"convert__fx_1m_calls_8_ranks", "Mcalls", run, NULL, &small, few});
    bench_apart(&(bench_job){"convert__fx_1m_calls_100k_ranks", "Mcalls", run, NULL, &large, many});
    unlink(few);
    unlink(many);
    return 0;
}
