/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_feed.c - orrery feed: the order in which a simulator would receive the nodes of a trace. */
#include "command.h"

#include <orrery/feeder.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {"order", 0, "id|v2", "smallest id first, or as the C++ feeder V2", .fallback = "id"},
    {"deps", 0, "all|data|ctrl", "dependencies that count", .fallback = "all"},
    {"waves", 'w', NULL, "issue everything that is ready, then finish it; one line per wave"},
    {"window", 0, "N", "hold at most N unfinished nodes in memory", CLI_COUNT, 1, 4294967294u},
    {"names", 'n', NULL, "print each node's name after its id"},
    {"lenient", 0, NULL, "keep unknown node types"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"TRACE", "a trace file, or - for standard input", CLI_ONCE}, {0}};

static const cli_example examples[] = {
    {"The order of a small trace:", "orrery gen layered --nodes 8 --width 2 -o small.et", 0},
    {"", "orrery feed small.et --names", 0},
    {"What could run at the same time, with 4 nodes in memory:",
     "orrery feed small.et --waves --window 4", 0},
    {0},
};

typedef struct wave {
    uint64_t *ids;
    size_t count, room;
} wave;

/* How to print nodes. */
typedef struct feed_style {
    orr_json_writer *json; /* NULL: lines */
    bool has_names;
} feed_style;

static void print_node(const orr_node *node, const feed_style *s)
{
    if (s->json && s->has_names) {
        orr_json_begin_object(s->json);
        orr_json_put_u64(s->json, "id", node->id);
        orr_json_key(s->json, "name");
        orr_json_str(s->json, node->name);
        orr_json_end_object(s->json);
    } else if (s->json)
        orr_json_u64(s->json, node->id);
    else if (s->has_names)
        printf("%" PRIu64 " %.*s\n", node->id, (int)node->name.len, node->name.ptr);
    else
        printf("%" PRIu64 "\n", node->id);
}

/* Take a node and finish it immediately. */
static orr_code print_order(orr_feeder *f, const feed_style *s, uint64_t *done, orr_error *err)
{
    orr_node node;
    orr_code code;
    while ((code = orr_feeder_next(f, &node, err)) == ORR_OK) {
        print_node(&node, s);
        if ((code = orr_feeder_finish(f, node.id, err)))
            return code;
        ++*done;
    }
    return code == ORR_END ? ORR_OK : code;
}

static orr_code take_wave(orr_feeder *f, wave *w, orr_error *err)
{
    orr_node node;
    orr_code code;
    w->count = 0;
    while ((code = orr_feeder_next(f, &node, err)) == ORR_OK) {
        if (w->count == w->room) {
            const size_t room = w->room ? w->room * 2 : 64;
            uint64_t *ids = realloc(w->ids, room * sizeof *ids);
            if (!ids)
                return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
            w->ids = ids;
            w->room = room;
        }
        w->ids[w->count++] = node.id;
    }
    return code == ORR_END ? ORR_OK : code;
}

static void print_wave(const wave *w, uint64_t number, const feed_style *s)
{
    if (s->json)
        orr_json_begin_array(s->json);
    else
        printf("wave %" PRIu64 ":", number);
    for (size_t i = 0; i < w->count; i++) {
        if (s->json)
            orr_json_u64(s->json, w->ids[i]);
        else
            printf(" %" PRIu64, w->ids[i]);
    }
    if (s->json)
        orr_json_end_array(s->json);
    else
        putchar('\n');
}

static orr_code print_waves(orr_feeder *f, const feed_style *s, uint64_t *done, orr_error *err)
{
    wave w = {0};
    orr_code code;
    for (uint64_t number = 0; !(code = take_wave(f, &w, err)) && w.count; number++) {
        print_wave(&w, number, s);
        for (size_t i = 0; i < w.count && !code; i++)
            code = orr_feeder_finish(f, w.ids[i], err);
        *done += w.count;
        if (code)
            break;
    }
    free(w.ids);
    return code;
}

static orr_feed_deps deps_of(const char *word)
{
    return strcmp(word, "data") == 0   ? ORR_FEED_DATA
           : strcmp(word, "ctrl") == 0 ? ORR_FEED_CTRL
                                       : ORR_FEED_ALL;
}

static orr_code feed_all(
    const cli_context *c, orr_feeder *f, const feed_style *s, uint64_t *done, orr_error *err)
{
    return cli_flag(c, "waves") ? print_waves(f, s, done, err) : print_order(f, s, done, err);
}

/* Output is held back until the end, so that an error leaves no partial object. */
static orr_code feed_json(const cli_context *c, orr_feeder *f, orr_error *err)
{
    cli_json j;
    feed_style style = {.json = cli_json_open(&j, "orrery feed"),
                        .has_names = cli_flag(c, "names")};
    uint64_t done = 0;
    orr_json_put_array(style.json, cli_flag(c, "waves") ? "waves" : "nodes");
    const orr_code code = feed_all(c, f, &style, &done, err);
    if (code) {
        orr_buf_fini(&j.text);
        return code;
    }
    orr_json_end_array(style.json);
    orr_json_put_fields(style.json, ORR_U("fed", done), ORR_B("is_stuck", orr_feeder_left(f) != 0));
    cli_json_close(&j);
    return ORR_OK;
}

static orr_code feed_lines(const cli_context *c, orr_feeder *f, orr_error *err)
{
    const feed_style style = {.has_names = cli_flag(c, "names")};
    uint64_t done = 0;
    const orr_code code = feed_all(c, f, &style, &done, err);
    if (!code && orr_feeder_left(f)) { /* only in V2 order; otherwise this is an error */
        if (cli_flag(c, "waves"))
            printf("stuck\n");
        else
            printf("stuck after %" PRIu64 "\n", done);
    }
    return code;
}

static orr_code feed_run(cli_context *c, orr_error *err)
{
    const bool is_v2 = strcmp(cli_text(c, "order"), "v2") == 0;
    const orr_read_options read = {.size = sizeof read,
                                   .leniency = is_v2                    ? ORR_AS_FEEDER_V2
                                               : cli_flag(c, "lenient") ? ORR_KEEP_UNKNOWN
                                                                        : ORR_STRICT};
    const orr_feeder_options opt = {
        .size = sizeof opt,
        .deps = deps_of(cli_text(c, "deps")),
        .order = is_v2 ? ORR_FEED_AS_V2 : ORR_FEED_BY_ID,
        .window = (uint32_t)cli_count(c, "window"),
        .read = &read,
    };
    orr_feeder *f;
    const orr_code code = orr_feeder_open(c->args[0], &opt, &f, err);
    if (code)
        return code;
    const orr_code fed = cli_flag(c, "json") ? feed_json(c, f, err) : feed_lines(c, f, err);
    orr_feeder_close(f);
    return fed;
}

const cli_command cli_cmd_feed = {
    .name = "feed",
    .summary = "print the order in which nodes become ready",
    .description =
        "Issues the nodes of one trace as their dependencies finish and prints their ids, one per line.  This is "
        "the order a simulator gets from the library's feeder, so it shows what a simulator should have "
        "seen.\n\n"
        "Cycles, missing parents and duplicate ids are errors, with file and byte.  With --order v2 they block their "
        "children forever, as in the C++ feeder, and the last line says \"stuck\".",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-gen(1)",
    .run = feed_run,
};
