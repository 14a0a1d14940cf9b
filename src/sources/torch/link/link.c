/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - the way of a link: both files are read, matched, and what waits for what is found out.
 *
 * Memory: the files are mapped, or unpacked when compressed; beside them a record for each event
 * and node. */
#include "link_impl.h"

/* A trace that is read, from its file or from memory. */
typedef struct source {
    const char *path; /* or what messages call it */
    const orr_span *bytes;
    orr_input *input; /* of a file */
    orr_json *json;
} source;

static orr_code open_source(source *f, orr_error *err)
{
    if (f->bytes)
        return orr_json_open(*f->bytes, f->path, &f->json, err);
    const orr_code code = orr_input_open(f->path, &f->input, err);
    return code ? code : orr_json_open(orr_input_bytes(f->input), f->path, &f->json, err);
}

orr_code link_read_device(orr_link *l, orr_error *err)
{
    const kin_options opt = {.rules = &l->rules->read, .tally = &l->tally};
    source f = {.path = l->device_path, .bytes = l->device_bytes};
    orr_code code = open_source(&f, err);
    if (!code)
        code = kin_read(f.json, &opt, &l->device, err);
    orr_json_close(f.json);
    orr_input_close(f.input); /* all that counts is in the records */
    return code;
}

bool link_knows_schema(orr_str s)
{
    static const char *const known[] = {
        "1.0.1",
        "1.0.2-chakra.0.0.4",
        "1.0.3-chakra.0.0.4",
        "1.0.4-chakra.0.0.4",
        "1.1.0-chakra.0.0.4",
        "1.1.1-chakra.0.0.4",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (orr_str_is(s, known[i]))
            return true;
    }
    return false;
}

static orr_code read_linked_host(orr_link *l, orr_error *err)
{
    if (!l->host_path) {
        l->linked = linked_create(l->device_path);
        return l->linked ? ORR_OK : orr_no_memory(err);
    }
    const orr_code code =
        l->host_bytes ? orr_linked_parse(*l->host_bytes, l->host_path, NULL, &l->linked, err)
                      : orr_linked_read(l->host_path, NULL, &l->linked, err);
    if (code)
        return code;
    l->tally.counts.of[ORR_LINK_HOST_NODES] = l->linked->node_count;
    const orr_where at = orr_where_line(l->host_path, 1, 1);
    if (!link_knows_schema(l->linked->schema))
        return link_count(&l->tally, ORR_LINK_NEW_SCHEMA, &at, err);
    return ORR_OK;
}

static orr_code link_ours(orr_link *l, orr_error *err)
{
    if (!l->host_path && !l->device_path)
        return orr_fail(err, ORR_EUSAGE, NULL, "neither a host trace nor a device trace");
    orr_code code = read_linked_host(l, err);
    if (code || !l->device_path)
        return code;
    if ((code = link_read_device(l, err)) || (code = link_sort(l, err)) ||
        (code = link_pick_step(l, err)) || (code = link_time(l, err)) ||
        (code = link_find_waits(l, err)) || (code = link_guess_streams(l, err)))
        return code;
    return link_merge(l, err);
}

static const orr_rules_link ours = {.link = link_ours, .write = link_write_json};

static orr_code open_link(const source *host,
                          const source *device,
                          const orr_link_options *opt,
                          orr_link **out,
                          orr_error *err)
{
    *out = NULL;
    orr_link *l = orr_alloc(1, sizeof *l);
    if (!l)
        return orr_no_memory(err);
    if (opt)
        l->opt = *opt;
    l->rules = l->opt.rules ? l->opt.rules : &ours;
    l->tally.is_strict = l->opt.is_strict;
    l->arena = orr_arena_create();
    l->host_bytes = host->bytes;
    l->device_bytes = device->bytes;
    l->host_path = l->arena && host->path ? orr_arena_text(l->arena, orr_str_of(host->path)) : NULL;
    l->device_path =
        l->arena && device->path ? orr_arena_text(l->arena, orr_str_of(device->path)) : NULL;
    const bool has_room =
        l->arena && (!host->path || l->host_path) && (!device->path || l->device_path);
    const orr_code code = has_room ? l->rules->link(l, err) : orr_no_memory(err);
    if (code)
        orr_link_close(l);
    else
        *out = l;
    return code;
}

orr_code orr_link_open(const char *host,
                       const char *device,
                       const orr_link_options *opt,
                       orr_link **out,
                       orr_error *err)
{
    return open_link(&(source){.path = host}, &(source){.path = device}, opt, out, err);
}

orr_code orr_link_parse(const orr_span *host,
                        const orr_span *device,
                        const orr_link_options *opt,
                        orr_link **out,
                        orr_error *err)
{
    return open_link(&(source){.path = host ? "host" : NULL, .bytes = host},
                     &(source){.path = device ? "device" : NULL, .bytes = device}, opt, out, err);
}

void orr_link_close(orr_link *l)
{
    if (!l)
        return;
    orr_linked_free(l->linked);
    if (l->rules->close)
        l->rules->close(l);
    kin_fini(&l->device);
    orr_free(l->waits);
    orr_arena_destroy(l->arena);
    orr_free(l);
}

const orr_link_counts *orr_link_counts_of(const orr_link *l)
{
    return &l->tally.counts;
}

orr_code orr_link_write(const orr_link *l, const char *path, orr_error *err)
{
    return l->rules->write(l, path, err);
}
