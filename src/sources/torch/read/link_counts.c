/* SPDX-License-Identifier: Apache-2.0 */
/* link_counts.c - names of the counters of linking; which of them are errors in strict mode. */
#include "kineto.h"

#include "base/short_forms.h"

#include <inttypes.h>

static const struct counter {
    const char *name, *help;
} counters[ORR_LINK_COUNTERS] = {
    [ORR_LINK_HOST_NODES] = {"host_nodes", "nodes of the host trace"},
    [ORR_LINK_DEVICE_EVENTS] = {"device_events", "events of the device trace"},
    [ORR_LINK_LINKED] = {"linked", "host nodes found in the device trace"},
    [ORR_LINK_PLACED] = {"placed", "device operations with a host node"},
    [ORR_LINK_SYNCS] = {"syncs", "times the host waits for the device"},
    [ORR_LINK_UNLINKED] = {"unlinked", "host nodes that are not in the device trace"},
    [ORR_LINK_UNTRACED] = {"untraced", "operators that are not in the host trace"},
    [ORR_LINK_REPLAYED] = {"replayed", "device operations of CUDA graphs"},
    [ORR_LINK_OTHER_KINDS] = {"other_kinds", "events of unknown categories, left out"},
    [ORR_LINK_BAD_EVENTS] =
        {"bad_events",
         "events that lack a field, have one of a wrong type, or a time of 2^62 ns or more"},
    [ORR_LINK_NEGATIVE_TIMES] = {"negative_times", "negative durations, set to 0"},
    [ORR_LINK_DUPLICATE_NODES] = {"duplicate_nodes", "host nodes with the id of a later one"},
    [ORR_LINK_DUPLICATE_LAUNCHES] = {"duplicate_launches",
                                     "launches with the correlation id of an earlier one"},
    [ORR_LINK_NO_LAUNCH] = {"no_launch", "device operations whose launch is not in the trace"},
    [ORR_LINK_NO_PARENT] = {"no_parent", "device operations launched outside of any operator"},
    [ORR_LINK_NO_ROOT] = {"no_root", "host nodes that do not descend from the process node"},
    [ORR_LINK_LATER_PARENTS] = {"later_parents",
                                "host nodes whose parent does not come before them"},
    [ORR_LINK_OTHER_NAMES] = {"other_names", "operators with another name in the host trace"},
    [ORR_LINK_NEW_SCHEMA] = {"new_schema", "host traces of an unknown version"},
};

const char *orr_link_counter_name(orr_link_counter c)
{
    return counters[c].name;
}

const char *orr_link_counter_help(orr_link_counter c)
{
    return counters[c].help;
}

bool orr_link_counter_is_trouble(orr_link_counter c)
{
    return c >= ORR_LINK_BAD_EVENTS;
}

orr_code link_count(link_tally *t, orr_link_counter c, const orr_where *where, orr_error *err)
{
    t->counts.of[c]++;
    if (!t->is_strict || !orr_link_counter_is_trouble(c))
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, where, "%s (with --strict an error)", counters[c].help);
}

orr_code link_count_later(
    link_tally *t, const orr_where *where, uint64_t id, uint64_t parent, orr_error *err)
{
    const uint64_t known = t->counts.of[ORR_LINK_LATER_PARENTS]++;
    if (known < ORR_PYTORCH_SHOWN)
        t->counts.later_nodes[known] = (orr_pytorch_later){id, parent};
    if (!t->is_strict)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, where,
                    "node %" PRIu64 " has node %" PRIu64
                    " for a parent, which does not come before it (with --strict an error)",
                    id, parent);
}

orr_code link_count_event(link_tally *t,
                          orr_link_counter c,
                          const char *path,
                          orr_str name,
                          uint32_t index,
                          orr_error *err)
{
    t->counts.of[c]++;
    if (!t->is_strict || !orr_link_counter_is_trouble(c))
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(path, ORR_NO_BYTE)),
                    "event %" PRIu32 ", '%.*s': %s (with --strict an error)", index,
                    ORR_SHOWN(name, 60), counters[c].help);
}
