/* SPDX-License-Identifier: Apache-2.0 */
/* scalesim_report.c - the cost of a network on an array: a table in 80 columns, JSON, CSV
 * (docs/format/scalesim.md). */
#include "models/compute/systolic/scalesim_impl.h"

#include "base/formats/csv.h"
#include "base/formats/json.h"
#include "base/io/output.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <orrery/lab/units.h>

#include <inttypes.h>
#include <stdio.h>

enum { NAME = 15 };

static const char *const dataflow_words[] = {"os", "ws", "is"};
static const char *const dataflow_names[] = {"output", "weight", "input"};
static const char *const operand_keys[ORR_OPERANDS] = {"ifmap", "filter", "ofmap"};

/* Sums may exceed 64 bits: doubles, for the table and the totals of JSON. */
typedef struct totals {
    double cycles, stalls, macs;
    double dram[ORR_OPERANDS];
    double partial; /* partial sums read again from memory */
} totals;

static totals sum_up(const orr_scalesim *r)
{
    totals t = {0};
    for (size_t i = 0; i < r->network->count; i++) {
        const orr_systolic_result *x = &r->results[i];
        t.cycles += (double)x->cycles;
        t.stalls += (double)x->stalls;
        t.macs += (double)x->macs;
        t.partial += (double)x->dram_partial_reads;
        for (int k = 0; k < ORR_OPERANDS; k++)
            t.dram[k] += (double)x->dram[k].words;
    }
    return t;
}

static double elements(const orr_scalesim *r)
{
    return (double)r->config.array.rows * (double)r->config.array.columns;
}

static uint64_t whole(double v)
{
    return v < 0 ? 0 : v < 9e18 ? (uint64_t)(v + 0.5) : 9000000000000000000u;
}

/* With a bandwidth stalls matter; without, the bandwidth that would be needed. */
static bool shows_stalls(const orr_scalesim *r)
{
    return r->config.array.bandwidth > 0 && !r->opt.rules->has_no_bandwidth;
}

/* ---- table ---- */

static void print_head(const orr_scalesim *r, orr_buf *b)
{
    const orr_systolic_array *a = &r->config.array;
    char sizes[ORR_OPERANDS][ORR_UNIT_ROOM];
    orr_buf_print(b, "%.40s: %zu layer%s\n", r->network->path, r->network->count,
                  r->network->count == 1 ? "" : "s");
    orr_buf_print(b, "%" PRIu64 " x %" PRIu64 " array, %s stationary", a->rows, a->columns,
                  dataflow_names[a->dataflow]);
    if (r->opt.rules != orr__systolic_rules(NULL))
        orr_buf_print(b, ", as SCALE-Sim %s counts", r->opt.rules->name);
    orr_buf_print(
        b, "\nbuffers: ifmap %s, filter %s, ofmap %s", orr_bytes_text(a->ifmap_words, sizes[0]),
        orr_bytes_text(a->filter_words, sizes[1]), orr_bytes_text(a->ofmap_words, sizes[2]));
    if (shows_stalls(r))
        orr_buf_print(b, "; %g B/cycle to memory each", a->bandwidth);
    orr_buf_byte(b, '\n');
}

/* A name in one column, without terminal control characters. */
static void print_name(orr_buf *b, orr_str name)
{
    const size_t shown = name.len > NAME ? NAME - 1 : name.len;
    for (size_t i = 0; i < shown; i++)
        orr_buf_byte(b, orr_is_control(name, i) ? '?' : (uint8_t)name.ptr[i]);
    if (name.len > NAME)
        orr_buf_byte(b, '+');
    for (size_t i = name.len; i < NAME; i++)
        orr_buf_byte(b, ' ');
}

static void print_cells(orr_buf *b, orr_str name, const char *const cells[6])
{
    print_name(b, name);
    orr_buf_print(b, " %13s %6s %9s %9s %9s %12s\n", cells[0], cells[1], cells[2], cells[3],
                  cells[4], cells[5]);
}

static void print_figures(
    const orr_scalesim *r, orr_buf *b, orr_str name, const totals *t, double used, const char *last)
{
    char cells[5][ORR_UNIT_ROOM], stalls[ORR_UNIT_ROOM];
    orr_count_text(whole(t->cycles), cells[0]);
    orr_percent_text(whole(used * 1e4), used < 0 ? 0 : 1000000, cells[1]); /* below 0: a dash */
    for (int k = 0; k < ORR_OPERANDS; k++)
        orr_bytes_text(whole(t->dram[k]), cells[2 + k]);
    if (shows_stalls(r))
        last = orr_count_text(whole(t->stalls), stalls);
    print_cells(b, name,
                (const char *const[]){cells[0], cells[1], cells[2], cells[3], cells[4], last});
}

static void print_layer(const orr_scalesim *r, orr_buf *b, size_t i)
{
    const orr_systolic_result *x = &r->results[i];
    totals t = {.cycles = (double)x->cycles, .stalls = (double)x->stalls};
    char need[ORR_UNIT_ROOM] = "-";
    double peak = 0;
    for (int k = 0; k < ORR_OPERANDS; k++) {
        t.dram[k] = (double)x->dram[k].words;
        peak = x->dram[k].peak > peak ? x->dram[k].peak : peak;
    }
    if (peak > 0)
        snprintf(need, sizeof need, "%.3g", peak);
    print_figures(r, b, r->network->layers[i].name, &t, x->utilisation, need);
}

static orr_code give(orr_scalesim *r, orr_str *out, orr_error *err)
{
    if (r->text.failed)
        return orr_no_memory(err);
    *out = (orr_str){(const char *)r->text.ptr, r->text.len};
    return ORR_OK;
}

orr_code orr_scalesim_text(orr_scalesim *r, orr_str *out, orr_error *err)
{
    const char *const heads[] = {"cycles", "used",  "ifmap",
                                 "filter", "ofmap", shows_stalls(r) ? "stalls" : "B/cycle"};
    const totals t = sum_up(r);
    char text[ORR_UNIT_ROOM];
    orr_buf *b = &r->text;
    b->len = 0;
    print_head(r, b);
    orr_buf_print(b, "\n%*s%s\n", NAME + 28, "", "from and to memory");
    print_cells(b, orr_str_of("layer"), heads);
    for (size_t i = 0; i < r->network->count; i++)
        print_layer(r, b, i);
    /* The old programs define utilisation differently, and not for all layers together. */
    const double used =
        r->opt.rules == orr__systolic_rules(NULL) ? 100 * t.macs / (t.cycles * elements(r)) : -1;
    if (r->network->count > 1)
        print_figures(r, b, orr_str_of("all"), &t, used, "-");
    if (t.partial > 0)
        orr_buf_print(b, "and %s of sums read back from memory\n",
                      orr_bytes_text(whole(t.partial), text));
    return give(r, out, err);
}

/* ---- JSON ---- */

static void put_input(orr_json_writer *w, const char *role, const char *path, const char *hash)
{
    orr_json_begin_object(w);
    orr_json_put_text(w, "role", role);
    orr_json_put_text(w, "path", path);
    orr_json_put_text(w, "content_hash_murmur3_128", hash);
    orr_json_end_object(w);
}

static void put_array(const orr_scalesim *r, orr_json_writer *w)
{
    const orr_systolic_array *a = &r->config.array;
    orr_json_key(w, "array");
    orr_json_begin_object(w);
    orr_json_put_u64(w, "rows", a->rows);
    orr_json_put_u64(w, "columns", a->columns);
    orr_json_put_text(w, "dataflow", dataflow_words[a->dataflow]);
    orr_json_put_u64(w, "ifmap_buffer_words", a->ifmap_words);
    orr_json_put_u64(w, "filter_buffer_words", a->filter_words);
    orr_json_put_u64(w, "ofmap_buffer_words", a->ofmap_words);
    orr_json_key(w, "bandwidth_words_per_cycle");
    if (shows_stalls(r))
        orr_json_double(w, a->bandwidth);
    else
        orr_json_null(w);
    orr_json_end_object(w);
}

static void put_traffic(orr_json_writer *w, const char *key, const orr_systolic_traffic *t)
{
    orr_json_key(w, key);
    orr_json_begin_object(w);
    orr_json_put_u64(w, "words", t->words);
    orr_json_key(w, "first_cycle");
    orr_json_i64(w, t->first);
    orr_json_key(w, "last_cycle");
    orr_json_i64(w, t->last);
    orr_json_put_double(w, "average_words_per_cycle", t->average);
    orr_json_put_double(w, "peak_words_per_cycle", t->peak);
    orr_json_end_object(w);
}

static void put_sides(orr_json_writer *w, const char *key, const orr_systolic_traffic *sides)
{
    orr_json_key(w, key);
    orr_json_begin_object(w);
    for (int k = 0; k < ORR_OPERANDS; k++)
        put_traffic(w, operand_keys[k], &sides[k]);
    orr_json_end_object(w);
}

static void put_layer(const orr_scalesim *r, orr_json_writer *w, size_t i)
{
    const orr_systolic_result *x = &r->results[i];
    const orr_scalesim_layer *l = &r->network->layers[i];
    orr_json_begin_object(w);
    orr_json_key(w, "name");
    orr_json_str(w, l->name);
    orr_json_put_u64(w, "line", l->line);
    orr_json_put_u64(w, "cycles", x->cycles);
    orr_json_put_u64(w, "stall_cycles", x->stalls);
    orr_json_put_u64(w, "macs", x->macs);
    orr_json_put_u64(w, "folds", x->folds);
    orr_json_put_double(w, "utilisation_percent", x->utilisation);
    orr_json_put_double(w, "mapping_percent", x->mapping);
    orr_json_put_double(w, "busy_percent", x->busy);
    put_sides(w, "sram", x->sram);
    put_traffic(w, "sram_read", &x->sram_read);
    put_sides(w, "dram", x->dram);
    orr_json_put_u64(w, "sram_partial_reads_words", x->sram_partial_reads);
    orr_json_put_u64(w, "dram_partial_reads_words", x->dram_partial_reads);
    orr_json_end_object(w);
}

orr_code orr_scalesim_json(orr_scalesim *r, orr_str *out, orr_error *err)
{
    orr_json_writer w;
    char hash[ORR_CONTENT_HASH_ROOM];
    const totals t = sum_up(r);
    r->text.len = 0;
    orr_json_writer_init(&w, &r->text, &(orr_json_style){.indent = 2});
    orr_json_begin_object(&w);
    orr_json_put_text(&w, "format", "orrery-scalesim");
    orr_json_put_u64(&w, "version", 1);
    orr_json_put_text(&w, "program", r->opt.program);
    orr_json_put_text(&w, "rules", r->opt.rules->name);
    orr_json_key(&w, "inputs");
    orr_json_begin_array(&w);
    put_input(&w, "config", r->config.path, r->config.hash);
    put_input(&w, "network", r->network->path, orr_content_hash_text(r->network->hash, hash));
    orr_json_end_array(&w);
    put_array(r, &w);
    orr_json_key(&w, "layers");
    orr_json_begin_array(&w);
    for (size_t i = 0; i < r->network->count; i++)
        put_layer(r, &w, i);
    orr_json_end_array(&w);
    orr_json_key(&w, "total");
    orr_json_begin_object(&w);
    orr_json_put_double(&w, "cycles", t.cycles);
    orr_json_put_double(&w, "stall_cycles", t.stalls);
    orr_json_put_double(&w, "macs", t.macs);
    orr_json_put_double(&w, "utilisation_percent", 100 * t.macs / (t.cycles * elements(r)));
    orr_json_end_object(&w);
    orr_json_end_object(&w);
    orr_buf_byte(&r->text, '\n');
    return give(r, out, err);
}

/* ---- CSV ---- */

static void add_double(orr_buf *b, double v)
{
    char text[ORR_NUMBER_ROOM];
    orr_buf_byte(b, ',');
    orr_buf_add(b, text, orr_double_text(v, text));
}

static void add_u64(orr_buf *b, uint64_t v)
{
    orr_buf_byte(b, ',');
    orr_buf_u64(b, v);
}

static void add_sides(orr_buf *b, const orr_systolic_traffic *sides)
{
    for (int k = 0; k < ORR_OPERANDS; k++) {
        add_u64(b, sides[k].words);
        orr_buf_byte(b, ',');
        orr_buf_i64(b, sides[k].first);
        orr_buf_byte(b, ',');
        orr_buf_i64(b, sides[k].last);
        add_double(b, sides[k].average);
        add_double(b, sides[k].peak);
    }
}

static void add_heads(orr_buf *b)
{
    static const char *const columns[] = {"words", "first_cycle", "last_cycle",
                                          "average_words_per_cycle", "peak_words_per_cycle"};
    static const char *const levels[] = {"sram", "dram"};
    orr_buf_text(b, "layer,cycles,stall_cycles,macs,folds,utilisation_percent,mapping_percent,"
                    "busy_percent");
    for (int level = 0; level < 2; level++)
        for (int k = 0; k < ORR_OPERANDS; k++)
            for (int c = 0; c < 5; c++)
                orr_buf_print(b, ",%s_%s_%s", levels[level], operand_keys[k], columns[c]);
    orr_buf_text(b, ",sram_partial_reads_words,dram_partial_reads_words\n");
}

orr_code orr_scalesim_csv(orr_scalesim *r, orr_str *out, orr_error *err)
{
    orr_buf *b = &r->text;
    char hash[ORR_CONTENT_HASH_ROOM];
    b->len = 0;
    orr_buf_print(b, "# %s, rules %s\n# config %s %s\n# network %s %s\n",
                  r->opt.program ? r->opt.program : "orrery", r->opt.rules->name, r->config.hash,
                  r->config.path, orr_content_hash_text(r->network->hash, hash), r->network->path);
    add_heads(b);
    for (size_t i = 0; i < r->network->count; i++) {
        const orr_systolic_result *x = &r->results[i];
        orr_csv_put(b, r->network->layers[i].name);
        add_u64(b, x->cycles);
        add_u64(b, x->stalls);
        add_u64(b, x->macs);
        add_u64(b, x->folds);
        add_double(b, x->utilisation);
        add_double(b, x->mapping);
        add_double(b, x->busy);
        add_sides(b, x->sram);
        add_sides(b, x->dram);
        add_u64(b, x->sram_partial_reads);
        add_u64(b, x->dram_partial_reads);
        orr_buf_byte(b, '\n');
    }
    return give(r, out, err);
}

/* ---- files ---- */

orr_code orr__scalesim_save(orr_buf *b, const char *folder, const char *name, orr_error *err)
{
    orr_buf path = {0};
    orr_buf_print(&path, "%s/%s", folder, name);
    orr_buf_byte(&path, '\0');
    const orr_code code =
        path.failed ? orr_no_memory(err) : orr_output_save(b, (const char *)path.ptr, err);
    orr_buf_fini(&path);
    return code;
}

static orr_code save_text(orr_scalesim *r,
                          orr_code (*make)(orr_scalesim *r, orr_str *out, orr_error *err),
                          const char *folder,
                          const char *name,
                          orr_error *err)
{
    orr_str text;
    const orr_code code = make(r, &text, err);
    return code ? code : orr__scalesim_save(&r->text, folder, name, err);
}

orr_code orr_scalesim_write(orr_scalesim *r, const char *folder, orr_error *err)
{
    if (r->opt.rules->write)
        return r->opt.rules->write(r, folder, err);
    const orr_code code = save_text(r, orr_scalesim_csv, folder, "layers.csv", err);
    return code ? code : save_text(r, orr_scalesim_json, folder, "layers.json", err);
}

orr_code orr_scalesim_write_traces(const orr_scalesim *r, const char *folder, orr_error *err)
{
    if (!r->opt.rules->write_traces || !r->opt.wants_traces)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "traces are those of SCALE-Sim v1, and were not asked for");
    return r->opt.rules->write_traces(r, folder, err);
}
