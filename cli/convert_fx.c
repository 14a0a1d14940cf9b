/* SPDX-License-Identifier: Apache-2.0 */
/* convert_fx.c - orrery convert fx: a step captured from PyTorch to the traces of all ranks, and what is said about it:
 * work, communication and memory of each captured rank, operators without a cost. */
#include "convert.h"
#include "json_out.h"

#include <orrery/lab/fx.h>
#include <orrery/lab/hardware.h>
#include <orrery/lab/units.h>

#include <inttypes.h>
#include <string.h>

/* ---- words ---- */

static void note_bytes(const cli_context *c, const char *what, uint64_t bytes)
{
    char text[ORR_UNIT_ROOM];
    if (bytes)
        cli_note(c, ", %s %s", what, orr_bytes_text(bytes, text));
}

static void note_memory(const cli_context *c, const orr_fx_memory *m)
{
    char text[ORR_UNIT_ROOM];
    cli_note(c, "  memory: %s at most", orr_bytes_text(m->peak, text));
    note_bytes(c, "parameters", m->parameters);
    note_bytes(c, "buffers", m->buffers);
    note_bytes(c, "gradients", m->gradients);
    note_bytes(c, "optimizer", m->optimizer);
    note_bytes(c, "activations and the like", m->activations);
    cli_note(c, "\n");
}

/* 270 MFLOP, 16 FLOP */
static void note_flops(const cli_context *c, uint64_t flops)
{
    char text[ORR_UNIT_ROOM];
    orr_short_text(flops, text);
    cli_note(c, strchr(text, ' ') ? "%sFLOP" : "%s FLOP", text);
}

static void note_rank(const cli_context *c, const orr_fx_rank_report *r)
{
    char a[ORR_UNIT_ROOM], b[ORR_UNIT_ROOM];
    cli_note(c,
             "rank %" PRIu32 ", for %" PRIu32 " rank%s: %" PRIu64 " call%s, %" PRIu64
             " of them views; ",
             r->rank, r->ranks_like_it, r->ranks_like_it == 1 ? "" : "s", r->calls,
             r->calls == 1 ? "" : "s", r->views);
    note_flops(c, r->flops);
    cli_note(c, ", %s read, %s written\n", orr_bytes_text(r->bytes_read, a),
             orr_bytes_text(r->bytes_written, b));
    if (r->collectives)
        cli_note(c, "  collectives: %" PRIu64 ", %s\n", r->collectives,
                 orr_bytes_text(r->collective_bytes, a));
    if (r->sends || r->receives)
        cli_note(c, "  messages: %" PRIu64 " sent, %" PRIu64 " received, %s sent\n", r->sends,
                 r->receives, orr_bytes_text(r->send_bytes, a));
    if (r->setup)
        cli_note(c, "  before the step, left out: %" PRIu64 " call%s\n", r->setup,
                 r->setup == 1 ? "" : "s");
    note_memory(c, &r->memory);
}

static void note_report(const cli_context *c, const orr_fx_report *r)
{
    for (size_t i = 0; i < r->rank_count; i++)
        if (r->ranks[i].like == r->ranks[i].rank)
            note_rank(c, &r->ranks[i]);
    for (size_t i = 0; i < r->note_count; i++)
        cli_note(c, "note: %.*s%s\n", (int)r->notes[i].text.len, r->notes[i].text.ptr,
                 r->notes[i].count == 1 ? "" : ", several times");
    if (r->unknown_count)
        cli_note(c, "operators without a cost: their bytes count, their arithmetic does not\n");
    for (size_t i = 0; i < r->unknown_count; i++)
        cli_note(c, "  %.*s: %" PRIu64 " call%s\n", (int)r->unknown[i].name.len,
                 r->unknown[i].name.ptr, r->unknown[i].count, r->unknown[i].count == 1 ? "" : "s");
}

/* ---- JSON ---- */

static void put_rank(orr_json_writer *w, const orr_fx_rank_report *r)
{
    const orr_fx_memory *m = &r->memory;
    orr_json_begin_object(w);
    orr_json_put_u64(w, "rank", r->rank);
    orr_json_put_u64(w, "like_rank", r->like);
    orr_json_put_u64(w, "ranks_like_it", r->ranks_like_it);
    orr_json_put_u64(w, "calls", r->calls);
    orr_json_put_u64(w, "nodes", r->nodes);
    orr_json_put_u64(w, "views", r->views);
    orr_json_put_u64(w, "setup_calls", r->setup);
    orr_json_put_u64(w, "flops", r->flops);
    orr_json_put_u64(w, "read_bytes", r->bytes_read);
    orr_json_put_u64(w, "written_bytes", r->bytes_written);
    orr_json_put_u64(w, "collectives", r->collectives);
    orr_json_put_u64(w, "collective_bytes", r->collective_bytes);
    orr_json_put_u64(w, "sends", r->sends);
    orr_json_put_u64(w, "receives", r->receives);
    orr_json_put_u64(w, "send_bytes", r->send_bytes);
    cli_json_object(w, "memory");
    orr_json_put_u64(w, "peak_bytes", m->peak);
    orr_json_put_u64(w, "parameter_bytes", m->parameters);
    orr_json_put_u64(w, "buffer_bytes", m->buffers);
    orr_json_put_u64(w, "gradient_bytes", m->gradients);
    orr_json_put_u64(w, "optimizer_bytes", m->optimizer);
    orr_json_put_u64(w, "activation_bytes", m->activations);
    orr_json_end_object(w);
    orr_json_end_object(w);
}

typedef struct printed {
    const orr_fx_report *report;
    const cli_fx_source *from;
} printed;

static void put_counted(
    orr_json_writer *w, const char *key, orr_str what, const char *of, uint64_t n)
{
    orr_json_begin_object(w);
    orr_json_key(w, key);
    orr_json_str(w, what);
    orr_json_put_u64(w, of, n);
    orr_json_end_object(w);
}

static void put_report(orr_json_writer *w, const void *data)
{
    const printed *p = data;
    const orr_fx_report *r = p->report;
    if (p->from->put)
        p->from->put(w, p->from->data);
    cli_json_array(w, "captured");
    for (size_t i = 0; i < r->rank_count; i++)
        put_rank(w, &r->ranks[i]);
    orr_json_end_array(w);
    cli_json_array(w, "unknown_operators");
    for (size_t i = 0; i < r->unknown_count; i++)
        put_counted(w, "name", r->unknown[i].name, "calls", r->unknown[i].count);
    orr_json_end_array(w);
    cli_json_array(w, "notes");
    for (size_t i = 0; i < r->note_count; i++)
        put_counted(w, "text", r->notes[i].text, "count", r->notes[i].count);
    orr_json_end_array(w);
}

/* ---- the command ---- */

static orr_code read_hardware(const cli_context *c, orr_fx_options *o, orr_error *err)
{
    const char *name = cli_text(c, "hardware");
    orr_hardware hw;
    if (!name)
        return ORR_OK;
    const orr_hardware *known = orr_hardware_find(name);
    const orr_code code = known ? ORR_OK : orr_hardware_read(name, &hw, err);
    if (code)
        return code;
    hw = known ? *known : hw;
    *o = (orr_fx_options){.peak_flops = orr_hardware_peak(&hw),
                          .vector_flops = (double)hw.vector_width * (double)hw.clock_hz,
                          .memory_rate = hw.memory_bandwidth,
                          .overhead = hw.overhead};
    return ORR_OK;
}

/* Files have no place for groups: they go beside them. */
static orr_code write_groups(const orr_set *s, const cli_target *to, orr_error *err)
{
    char path[4096];
    if (orr_set_group_count(s) == 0 || (to->form != CLI_FORM_PREFIX && to->form != CLI_FORM_ET) ||
        strcmp(to->path, "-") == 0)
        return ORR_OK;
    const int n = snprintf(path, sizeof path, "%.*s.json", (int)to->stem, to->path);
    if (n < 0 || (size_t)n >= sizeof path)
        return orr_fail(err, ORR_EUSAGE, NULL, "the output name is longer than 4,000 bytes");
    return orr_set_write_groups(s, path, err);
}

static orr_code write_set(const cli_context *c,
                          orr_set *s,
                          const orr_fx_report *r,
                          const cli_fx_source *from,
                          orr_error *err)
{
    const cli_target to = cli_target_of(cli_text(c, "output"));
    orr_code code = cli_keep_ranks(c, s, err);
    if (code || (code = cli_target_write(c, s, &to, err)) || (code = write_groups(s, &to, err)))
        return code;
    if (!cli_flag(c, "json"))
        note_report(c, r);
    const printed what = {r, from};
    cli_target_report_with(c, s, &to, put_report, &what);
    return ORR_OK;
}

orr_code cli_fx_run(cli_context *c, const cli_fx_source *from, orr_error *err)
{
    const cli_target to = cli_target_of(cli_text(c, "output"));
    orr_fx_options opt = {0};
    orr_fx_report report;
    orr_fx *capture = NULL;
    orr_set *s = NULL;
    orr_code code = cli_target_check(c, &to, err);
    if (code || (code = read_hardware(c, &opt, err)) ||
        (code = from->read(c, from->data, &capture, err)))
        return code;
    code = orr_fx_convert(capture, &opt, &s, &report, err);
    orr_fx_close(capture);
    if (code)
        return code;
    code = write_set(c, s, &report, from, err);
    orr_fx_report_fini(&report);
    orr_set_close(s);
    return code;
}

static orr_code read_capture(const cli_context *c, void *data, orr_fx **out, orr_error *err)
{
    (void)data;
    return orr_fx_read(c->args[1], (uint32_t)cli_count(c, "world-size"), out, err);
}

static orr_code fx_run(cli_context *c, orr_error *err)
{
    static const cli_fx_source from = {read_capture, NULL, NULL};
    return cli_fx_run(c, &from, err);
}

static const char *const fx_options[] = {"world-size", "hardware", NULL};

const cli_converter cli_convert_fx = {"fx", fx_options, NULL, fx_run};
