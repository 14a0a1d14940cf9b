/* SPDX-License-Identifier: Apache-2.0 */
/* provenance.c - where a result comes from: program, inputs with the hashes of their content, options.
 *
 * The hash of the traces is the one that `orrery info` prints (docs/format/info.md); that of a configuration
 * file is of its bytes, read again: it is small, and only asked for when a result is written to be kept. */
#include "run/input_files.h"
#include "run_report.h"

static bool list_inputs(const orr_sim *s, orr__input_file out[ORR__INPUTS], size_t *count)
{
    const orr__input_file all[ORR__INPUTS] = {
        {.role = "traces", .path = s->opt.workload}, {.role = "system", .path = s->opt.system},
        {.role = "network", .path = s->opt.network}, {.role = "memory", .path = s->opt.memory},
        {.role = "groups", .path = s->opt.groups},   {.role = "ranks", .path = s->opt.ranks_file}};
    bool ok = true;
    *count = 0;
    for (size_t i = 0; i < ORR__INPUTS && ok; i++) {
        orr__input_file *f = &out[*count];
        if (i > 0 && !all[i].path)
            continue;
        *f = all[i];
        if (i == 0)
            ok = f->is_known = orr__set_content_hash(s->set, ORR_NO_NODE, &f->hash, NULL) == ORR_OK;
        else
            ok = orr__input_file_hash(f);
        ++*count;
    }
    return ok;
}

static void put_options(const orr_sim *s, orr_json_writer *w)
{
    orr_json_key(w, "options");
    orr_json_begin_object(w);
    orr__put_text(w, "network", s->net_ops->name);
    orr__put_u64(w, "queues_per_dimension", s->opt.queues_per_dim);
    orr_json_key(w, "rendezvous");
    orr_json_bool(w, s->opt.rendezvous);
    orr_json_key(w, "injection_scale");
    orr_json_double(w, s->opt.injection_scale);
    orr_json_end_object(w);
}

void orr__put_provenance(const orr_sim *s, orr_json_writer *w)
{
    orr__input_file inputs[ORR__INPUTS];
    size_t count;
    w->to->failed |= !list_inputs(s, inputs, &count);
    orr_json_key(w, "provenance");
    orr_json_begin_object(w);
    orr__put_text(w, "program", s->opt.program);
    orr_json_key(w, "inputs");
    orr_json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        orr__put_input(w, &inputs[i]);
    orr_json_end_array(w);
    put_options(s, w);
    orr_json_end_object(w);
}

/* The same in words, a line each: for the notes of a timeline and the head of a CSV file. */
bool orr__provenance_lines(const orr_sim *s, orr_arena *a, orr__provenance_line *out, size_t *count)
{
    orr__input_file inputs[ORR__INPUTS];
    char hash[ORR_CONTENT_HASH_ROOM];
    size_t input_count, n = 0;
    if (!list_inputs(s, inputs, &input_count))
        return false;
    out[n++] = (orr__provenance_line){"program", s->opt.program ? s->opt.program : "orrery"};
    out[n++] = (orr__provenance_line){"status", orr__run_status(s)};
    out[n++] = (orr__provenance_line){"network_model", s->net_ops->name};
    out[n++] = (orr__provenance_line){
        "options", orr_arena_print(a, "queues_per_dimension=%u rendezvous=%s injection_scale=%g",
                                   s->opt.queues_per_dim, s->opt.rendezvous ? "true" : "false",
                                   s->opt.injection_scale)};
    for (size_t i = 0; i < input_count; i++)
        out[n++] = (orr__provenance_line){
            inputs[i].role,
            orr_arena_print(a, "%s murmur3_128=%s", inputs[i].path ? inputs[i].path : "(in memory)",
                            inputs[i].is_known ? orr_content_hash_text(inputs[i].hash, hash)
                                               : "unknown")};
    *count = n;
    for (size_t i = 0; i < n; i++)
        if (!out[i].value)
            return false;
    return true;
}

orr_code orr__add_provenance(const orr_sim *s, orr_timeline *t, orr_error *err)
{
    orr__provenance_line lines[ORR__PROVENANCE_LINES];
    orr_arena *a = orr_arena_create();
    size_t count = 0;
    orr_code code = a && orr__provenance_lines(s, a, lines, &count) ? ORR_OK : orr_no_memory(err);
    for (size_t i = 0; i < count && !code; i++)
        code = orr_timeline_add_note(t, orr_str_of(lines[i].key), orr_str_of(lines[i].value), err);
    orr_arena_destroy(a);
    return code;
}
