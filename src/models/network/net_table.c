/* SPDX-License-Identifier: Apache-2.0 */
/* net_table.c - the list of networks: a new one is a row here, its file and a line of meson.build.
 * Errors and `orrery help networks` are derived from it. */
#include "net_table.h"

#include "base/text/text.h"
#include "models/network/packet/packet_run.h"

#include <string.h>

static const orr_net_ops *const networks[] = {
    &orr__net_fluid,   /* the default: dimensions or links */
    &orr__net_unaware, /* dimensions */
    &orr__net_aware,   /* dimensions */
    &orr__net_graph,   /* links */
    &orr__net_packet,  /* links */
};

const orr_net_ops *orr_net_at(size_t index)
{
    return index < sizeof networks / sizeof *networks ? networks[index] : NULL;
}

const orr_net_ops *orr_net_find(const char *name)
{
    for (size_t i = 0; orr_net_at(i); i++)
        if (strcmp(orr_net_at(i)->name, name) == 0)
            return orr_net_at(i);
    return NULL;
}

const orr_event_source *orr__net_events(const orr_net_ops *ops,
                                        void *net,
                                        orr_net *n,
                                        orr_event_line *line)
{
    return ops == &orr__net_packet ? orr__net_packet_events(net, n, line) : NULL;
}

orr_code orr__net_fail_unknown(const char *name, orr_error *err)
{
    const char *names[sizeof networks / sizeof *networks + 1] = {0};
    char list[160];
    for (size_t i = 0; orr_net_at(i); i++)
        names[i] = orr_net_at(i)->name;
    const char *near = orr_nearest(orr_str_of(name), names);
    orr_list_words(names, list, sizeof list);
    return orr_fail(err, ORR_EUSAGE, NULL,
                    near ? "unknown network model \"%s\"; did you mean \"%s\"?"
                         : "unknown network model \"%s\" (%s)",
                    name, near ? near : list);
}
