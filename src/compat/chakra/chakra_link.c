/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_link.c - chakra_trace_link's rules for our linker: its steps, and what it refuses
 * (chakra.md 3). */
#include "chakra_link.h"
#include "chakra.h"

static orr_code read_host(orr_link *l, orr_error *err)
{
    chakra_link *c = chakra_of(l);
    orr_json *j = NULL;
    orr_code code = l->host_bytes ? ORR_OK : orr_input_open(l->host_path, &c->input, err);
    if (code)
        return code;
    const orr_span bytes = l->host_bytes ? *l->host_bytes : orr_input_bytes(c->input);
    if (!(code = orr_json_open(bytes, l->host_path, &j, err)))
        code = chakra_host_read(j, bytes, &l->tally, &c->host, err);
    orr_json_close(j);
    return code;
}

/* The critical path begins at a step (chakra.md 3.6). */
static orr_code check_step(const orr_link *l, orr_error *err)
{
    if (l->device.has_step)
        return ORR_OK;
    return orr_fail(
        err, ORR_EINPUT, NULL,
        "%s: no annotation ProfilerStep, which chakra_trace_link needs; 'orrery link' without --compat does not",
        l->device_path);
}

static orr_code link_traces(orr_link *l, orr_error *err)
{
    orr_code code;
    if (!l->host_path || !l->device_path)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "chakra_trace_link needs a host trace and a device trace");
    l->other = orr_alloc(1, sizeof(chakra_link));
    if (!l->other)
        return orr_no_memory(err);
    if ((code = read_host(l, err)) || (code = link_read_device(l, err)) ||
        (code = check_step(l, err)) || (code = link_sort(l, err)) || (code = link_time(l, err)) ||
        (code = chakra_wake(l, err)) || (code = chakra_match(l, err)) ||
        (code = chakra_place(l, err)) || (code = link_find_waits(l, err)))
        return code;
    return chakra_find_syncs(l, err);
}

static void close_link(orr_link *l)
{
    chakra_link *c = chakra_of(l);
    if (!c)
        return;
    chakra_host_fini(&c->host);
    orr_input_close(c->input);
    orr_free(c->syncs);
    orr_free(c);
}

/* Flow arrows that make it break off (chakra.md 3.3). */
static orr_code refuse(const kin_look *event, orr_error *err)
{
    if (!orr_str_is(event->cat, "ac2g"))
        return ORR_OK;
    const bool is_end = orr_str_is(event->ph, "s") || orr_str_is(event->ph, "f");
    if (is_end && event->has_id)
        return ORR_OK;
    const orr_where at = orr_json_where(event->place);
    return orr_fail(err, ORR_EINPUT, &at, "%s",
                    is_end ? "an ac2g event without an id"
                           : "an ac2g event whose ph is neither \"s\" nor \"f\"");
}

const orr_rules_link chakra_link_rules = {
    .read = {.keeps_micros = true, .refuse = refuse},
    .shorter_first = true,
    .only_recorded_waits = true,
    .link = link_traces,
    .write = chakra_write,
    .close = close_link,
};
