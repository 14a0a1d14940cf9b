/* SPDX-License-Identifier: Apache-2.0 */
/* report_links.c - what went over the links: the busiest in the reports, all of them as CSV.
 *
 * A network may have millions of links, so that nothing here keeps them: the busiest are picked while they pass. */
#include "run_report.h"

#include "base/text/number.h"

#include <orrery/units.h>

#include <inttypes.h>

enum { TEXT_LINKS = 5, JSON_LINKS = 100 };

void orr_sim_visit_links(const orr_sim *s, orr_net_link_visit visit, void *context)
{
    if (s->net_ops->report)
        s->net_ops->report(s->net, visit, context);
}

/* ---- the busiest ---- */

typedef struct top {
    orr_net_link links[JSON_LINKS];
    uint32_t count, most;
    uint64_t used; /* links that carried something */
} top;

static bool is_busier(const orr_net_link *a, const orr_net_link *b)
{
    return a->busy_ns != b->busy_ns ? a->busy_ns > b->busy_ns : a->bytes > b->bytes;
}

/* Equals stay in the order in which they come. */
static void keep_busiest(void *context, const orr_net_link *link)
{
    top *t = context;
    t->used++;
    if (t->count == t->most && !is_busier(link, &t->links[t->count - 1]))
        return;
    uint32_t i = t->count < t->most ? t->count++ : t->count - 1;
    for (; i > 0 && is_busier(link, &t->links[i - 1]); i--)
        t->links[i] = t->links[i - 1];
    t->links[i] = *link;
}

/* NULL: out of memory. */
static top *find_top(const orr_sim *s, uint32_t most)
{
    top *t = orr_alloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->most = most;
    orr_sim_visit_links(s, keep_busiest, t);
    return t;
}

bool orr__print_links(const orr_sim *s, orr_buf *b)
{
    char bytes[ORR_UNIT_ROOM], busy[ORR_UNIT_ROOM], share[ORR_UNIT_ROOM], queue[ORR_UNIT_ROOM];
    const uint64_t end = orr__watch_end_of_run(s);
    if (!s->net_ops->report)
        return true;
    top *t = find_top(s, TEXT_LINKS);
    if (t && t->used)
        orr_buf_print(b, "\n%-30s %11s %12s %8s %13s\n", "busiest links", "bytes", "busy", "share",
                      "longest queue");
    for (uint32_t i = 0; t && i < t->count; i++) {
        const orr_net_link *l = &t->links[i];
        orr_buf_print(b, "%-30s %11s %12s %8s %13s\n", l->name, orr_bytes_text(l->bytes, bytes),
                      orr__ns_text(l->busy_ns, busy), orr_percent_text(l->busy_ns, end, share),
                      orr_count_text(l->max_queue, queue));
    }
    if (t && t->used > t->count)
        orr_buf_print(b, "and %s more that carried something\n",
                      orr_count_text(t->used - t->count, queue));
    const bool ok = t != NULL;
    orr_free(t);
    return ok;
}

static double utilisation(const orr_net_link *l, uint64_t end)
{
    return end ? (double)l->busy_ns / (double)end : 0;
}

bool orr__put_links(const orr_sim *s, orr_json_writer *w)
{
    const uint64_t end = orr__watch_end_of_run(s);
    orr_json_key(w, "links");
    if (!s->net_ops->report) {
        orr_json_null(w);
        return true;
    }
    top *t = find_top(s, JSON_LINKS);
    orr_json_begin_object(w);
    orr__put_u64(w, "used", t ? t->used : 0);
    orr_json_key(w, "busiest");
    orr_json_begin_array(w);
    for (uint32_t i = 0; t && i < t->count; i++) {
        const orr_net_link *l = &t->links[i];
        orr_json_begin_object(w);
        orr__put_text(w, "link", l->name);
        orr__put_u64(w, "messages", l->messages);
        orr__put_u64(w, "bytes", l->bytes);
        orr__put_u64(w, "busy_ns", l->busy_ns);
        orr_json_key(w, "utilisation");
        orr_json_double(w, utilisation(l, end));
        orr__put_u64(w, "max_queue", l->max_queue);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_end_object(w);
    const bool ok = t != NULL;
    orr_free(t);
    return ok;
}

/* ---- all of them ---- */

typedef struct csv {
    orr_buf *to;
    uint64_t end;
} csv;

static void print_row(void *context, const orr_net_link *l)
{
    const csv *c = context;
    char text[ORR_NUMBER_ROOM];
    orr_buf_byte(c->to, '"');
    for (const char *p = l->name; *p; p++) {
        if (*p == '"')
            orr_buf_byte(c->to, '"');
        orr_buf_byte(c->to, (uint8_t)*p);
    }
    orr_buf_print(c->to, "\",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", l->messages, l->bytes,
                  l->busy_ns);
    orr_buf_add(c->to, text, orr_double_text(utilisation(l, c->end), text));
    orr_buf_print(c->to, ",%" PRIu64 "\n", l->max_queue);
}

orr_code orr_sim_write_links(const orr_sim *s, const char *path, orr_error *err)
{
    orr_buf b = {0};
    csv c = {&b, orr__watch_end_of_run(s)};
    if (!s->net_ops->report)
        return orr_fail(err, ORR_EUSAGE, NULL, "the network model %s knows no links",
                        s->net_ops->name);
    orr_buf_text(&b, "link,messages,bytes,busy_ns,utilisation,max_queue\n");
    orr_sim_visit_links(s, print_row, &c);
    const orr_code code = orr__save_report(&b, path, err);
    orr_buf_fini(&b);
    return code;
}
