/* SPDX-License-Identifier: Apache-2.0 */
/* report_saved.c - a run in a report from what `orrery run --json` printed of it: headline figures,
 * where the time of a rank goes on average, for the comparison with others; there is no timeline. */
#include "base/formats/json.h"
#include "base/io/input.h"
#include "base/memory/memory.h"

#include <orrery/report.h>

#include <string.h>

/* A number in a member of a member; 0: there is none. */
static double number_in(orr_json_value root, const char *object, const char *key)
{
    orr_json_value v = root;
    orr_error why;
    double out = 0;
    if ((object && !orr_json_find(root, object, &v)) || !orr_json_find(v, key, &v) ||
        orr_json_get_double(v, &out, &why))
        return 0;
    return out;
}

static const char *text_in(orr_json_value root, const char *object, const char *key, orr_arena *a)
{
    orr_json_value v;
    orr_error why;
    orr_str s;
    return orr_json_find(root, object, &v) && orr_json_find(v, key, &v) &&
                   !orr_json_get_str(v, &s, &why)
               ? orr_arena_text(a, s)
               : NULL;
}

static bool is_run(orr_json_value root)
{
    orr_json_value v;
    orr_error why;
    orr_str s;
    return orr_json_find(root, "format", &v) && !orr_json_get_str(v, &s, &why) &&
           orr_str_is(s, "orrery-run");
}

/* Told from the first bytes, so that no large file is read in vain. */
static bool begins_as_run(orr_span bytes)
{
    static const char mark[] = "\"orrery-run\"";
    const size_t looked = bytes.len < 128 ? bytes.len : 128;
    for (size_t i = 0; i + sizeof mark - 1 <= looked; i++)
        if (memcmp(bytes.ptr + i, mark, sizeof mark - 1) == 0)
            return true;
    return false;
}

/* The mean of one figure over ranks; 0: it is not split. */
static orr_ps mean_of(orr_json_value root, const char *figure)
{
    orr_json_value over;
    const double ns =
        orr_json_find(root, "over_ranks", &over) ? number_in(over, figure, "mean") : 0;
    return ns > 0 && ns < 9e15 ? (orr_ps)(ns * 1000) : 0;
}

/* [low, high] of the run time; 0: not known. */
static void take_interval(orr_json_value root, double out[2])
{
    orr_json_value list, v;
    orr_error why;
    out[0] = out[1] = 0;
    if (!orr_json_find(root, "interval_ns", &list) || orr_json_type_of(list) != ORR_JSON_ARRAY ||
        orr_json_count(list) != 2)
        return;
    unsigned i = 0;
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &v); i++)
        if (orr_json_get_double(v, &out[i], &why))
            out[i] = 0;
}

static orr_code add_root(
    orr_report *r, const char *name, orr_json_value root, orr_arena *a, orr_error *err)
{
    const double seconds = number_in(root, NULL, "simulated_ns") / 1e9;
    const double ranks = number_in(root, NULL, "ranks");
    const double per_device = number_in(root, "throughput", "tflops_per_device") * 1e12;
    static const char *const no_timeline[] = {
        "Read from the output of orrery run --json: its figures are here, its timeline is not."};
    orr_json_value from, options;
    orr_report_option list[3];
    size_t count = 0;
    if (orr_json_find(root, "provenance", &from) && orr_json_find(from, "options", &options))
        for (unsigned i = 0; i < 3; i++) {
            static const char *const keys[] = {"network", "machine", "compute"};
            const char *value = text_in(from, "options", keys[i], a);
            if (value)
                list[count++] = (orr_report_option){keys[i], value};
        }
    const double requests = number_in(root, "serving", "requests");
    const orr_report_serving serving = {
        .requests = requests >= 1 && requests < 0x1p63 ? (uint64_t)requests : 0,
        .first_token_ns = number_in(root, "serving", "first_token_mean_ns"),
        .first_token_max_ns = number_in(root, "serving", "first_token_max_ns"),
        .next_token_ns = number_in(root, "serving", "next_token_mean_ns"),
        .tokens_per_s = number_in(root, "serving", "tokens_per_s")};
    const orr_ps compute = mean_of(root, "compute_ns"),
                 exposed = mean_of(root, "exposed_communication_ns");
    const orr_ps all = mean_of(root, "communication_ns");
    const orr_report_times times = {.compute = compute,
                                    .exposed = exposed,
                                    .overlapped = all > exposed ? all - exposed : 0,
                                    .memory = mean_of(root, "remote_memory_ns"),
                                    .host = mean_of(root, "host_ns"),
                                    .waiting = mean_of(root, "waiting_ns"),
                                    .bubble = mean_of(root, "bubble_ns"),
                                    .idle = mean_of(root, "idle_ns")};
    const bool is_split =
        compute + exposed + times.memory + times.host + times.waiting + times.bubble + times.idle >
        0;
    double interval[2];
    take_interval(root, interval);
    const orr_report_run run = {.name = name,
                                .length_ps = (orr_ps)(seconds * 1e12),
                                .ranks = ranks >= 1 && ranks < UINT32_MAX ? (uint32_t)ranks : 0,
                                .events = (uint64_t)number_in(root, NULL, "events"),
                                .tokens = number_in(root, "throughput", "tokens_per_s") * seconds,
                                .flops = per_device * ranks * seconds,
                                .peak_flops = number_in(root, "throughput", "peak_tflops") * 1e12,
                                .peak_of = text_in(root, "throughput", "peak_of", a),
                                .options = list,
                                .option_count = count,
                                .notes = no_timeline,
                                .note_count = 1,
                                .low_ns = interval[0],
                                .high_ns = interval[1],
                                .times = is_split ? &times : NULL,
                                .serving = serving.requests ? &serving : NULL};
    return orr_report_add(r, &run, err);
}

orr_code orr_report_add_saved(
    orr_report *r, const char *path, const char *name, bool *is_it, orr_error *err)
{
    orr_input *in;
    orr_json *j = NULL;
    orr_json_value root;
    orr_error why;
    *is_it = false;
    orr_code code = ORR_OK;
    if (orr_input_open(path, &in, &why))
        return ORR_OK; /* whoever reads it as something else says what is wrong */
    orr_arena *a = orr_arena_create();
    if (!a)
        code = orr_no_memory(err);
    else if (begins_as_run(orr_input_bytes(in)) &&
             !orr_json_open(orr_input_bytes(in), path, &j, &why) &&
             !orr_json_only(j, &root, &why) && is_run(root)) {
        *is_it = true;
        code = add_root(r, name, root, a, err);
    }
    orr_json_close(j);
    orr_arena_destroy(a);
    orr_input_close(in);
    return code;
}
