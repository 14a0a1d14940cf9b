/* SPDX-License-Identifier: Apache-2.0 */
/* fabrics.h - packet networks for tests, made of words: a star of hosts, two leaves with spines;
 * who was told what. */
#ifndef ORR_TESTS_FABRICS_H
#define ORR_TESTS_FABRICS_H

#include "check.h"

#include "models/network/packet/engine/fabric.h"
#include "models/network/packet/watch/watchers.h"

#define FABRIC_CONFIG                                                                 \
    "CC_MODE 0 RATE_AI 50Mb/s RATE_HAI 100Mb/s L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1 " \
    "ENABLE_QCN 0 "

enum { FABRIC_TOKENS = 1024, FABRIC_WORDS = 1 << 16 };

/* By token: when the sender and the receiver were told, in ticks; 0: not yet. */
typedef struct fabric_told {
    fab *fabric;
    uint64_t sent_at[FABRIC_TOKENS], arrived_at[FABRIC_TOKENS];
    unsigned sent, arrived;
} fabric_told;

static inline void fabric_note_sent(void *context, uint64_t token)
{
    fabric_told *t = context;
    t->sent_at[token] = fab_now(t->fabric);
    t->sent++;
}

static inline void fabric_note_arrived(void *context, uint64_t token)
{
    fabric_told *t = context;
    t->arrived_at[token] = fab_now(t->fabric);
    t->arrived++;
}

/* What a fabric says of itself, line by line. */
typedef struct fabric_words {
    char text[1 << 14];
} fabric_words;

static inline void fabric_keep_line(void *words, const char *line)
{
    fabric_words *w = words;
    const size_t at = strlen(w->text);
    snprintf(w->text + at, sizeof w->text - at, "%s\n", line);
}

static inline orr_span fabric_span(const char *text)
{
    return (orr_span){(const uint8_t *)text, strlen(text)};
}

static inline fab *fabric_make_as(
    const char *config, const char *topology, bool has_history, unsigned threads, fabric_told *t)
{
    static orr__packet_config c;
    orr__cabling cabling = {0};
    orr_error err;
    const fab_listener watcher = {t, fabric_note_sent, fabric_note_arrived};
    orr__packet_config_defaults(&c, NULL);
    CHECK_OK(orr__packet_config_parse(&c, fabric_span(config), "c.txt", &err), &err);
    CHECK_OK(orr__cabling_parse(&cabling, fabric_span(topology), "t.txt", &err), &err);
    memset(t, 0, sizeof *t);
    c.has_history = has_history;
    c.threads = threads;
    CHECK_OK(fab_create_watched(&c, &cabling, NULL, &t->fabric, &err), &err);
    fab_listen(t->fabric, &watcher);
    orr__cabling_fini(&cabling);
    return t->fabric;
}

static inline fab *fabric_make(const char *config, const char *topology, fabric_told *t)
{
    return fabric_make_as(config, topology, false, 0, t);
}

/* Hosts 0 .. n - 1 at switch n, each by `link`, as "100Gbps 1us 0". */
static inline const char *fabric_star(unsigned hosts, const char *link)
{
    static char text[FABRIC_WORDS];
    int at = snprintf(text, sizeof text, "%u 1 %u\n%u\n", hosts + 1, hosts, hosts);
    for (unsigned i = 0; i < hosts; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%u %u %s\n", hosts, i, link);
    return text;
}

/* Two leaves of `hosts` each, joined by `spines`: leaves are nodes 2 hosts and 2 hosts + 1, spines
 * come behind. */
static inline const char *fabric_leaves(unsigned hosts, unsigned spines, const char *link)
{
    static char text[FABRIC_WORDS];
    const unsigned leaf = 2 * hosts;
    int at =
        snprintf(text, sizeof text, "%u %u %u\n", leaf + 2 + spines, 2 + spines, leaf + 2 * spines);
    for (unsigned i = 0; i < 2 + spines; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%u ", leaf + i);
    for (unsigned i = 0; i < leaf; i++)
        at +=
            snprintf(text + at, sizeof text - (size_t)at, "\n%u %u %s", i, leaf + i / hosts, link);
    for (unsigned i = 0; i < 2 * spines; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "\n%u %u %s", leaf + i % 2,
                       leaf + 2 + i / 2, link);
    return text;
}

static inline void fabric_send(
    fabric_told *t, uint32_t src, uint32_t dst, uint64_t size, uint64_t token)
{
    orr_error err;
    const fab_send_request r = {.src = src, .dst = dst, .size = size, .token = token};
    CHECK_OK(fab_send(t->fabric, &r, &err), &err);
}

static inline void fabric_run_all(fabric_told *t)
{
    orr_error err;
    while (fab_run(t->fabric, 1000))
        ;
    CHECK_OK(fab_status(t->fabric, &err), &err);
}

#endif
