/* SPDX-License-Identifier: Apache-2.0 */
/* topology_smi.c - the output of `nvidia-smi topo -m`: a matrix of connections between GPUs.
 *
 * NV#: that many NVLinks.  If a GPU would need more of them than exist, they lead to an NVSwitch.
 * PIX, PXB, PHB, NODE and SYS give the level of the PCI tree where two devices meet: each is a tier
 * of switches here, and devices that meet there share one.  The text has no rates; they come from
 * data sheets (docs/format/topology.md). */
#include "topology_kinds.h"

#include "base/text/number.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>

enum { MOST_GPUS = 64, MOST_NVLINKS = 18, TIERS = 4, COST_NVLINK = 1, COST_PCI = 64, SHOWN = 40 };
static const double NVLINK_GBPS = 25, NVLINK_NS = 25, PCI_GBPS = 31.5, PCI_NS = 150,
                    SOCKET_GBPS = 16;

/* Relations from the nearest: what is below TIERS is the tier of their common switch. */
enum { MEET_PIX, MEET_PXB, MEET_NODE, MEET_SYS, SELF = 100, UNKNOWN = 101, NVLINKS = 200 };

typedef struct reader {
    const char *path;
    const char *at, *end;
    uint32_t line;
    orr_error *err;
    uint32_t gpus;
    uint16_t relation[MOST_GPUS][MOST_GPUS];
} reader;

static orr_code fail_line(const reader *r, const char *what)
{
    const orr_where w = orr_where_line(r->path, r->line, 1);
    return orr_fail(r->err, ORR_EINPUT, &w, "%s", what);
}

/* The next line; escape sequences (the header is underlined) count as blanks. */
static bool next_line(reader *r, orr_str *out)
{
    if (r->at == r->end)
        return false;
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    *out = (orr_str){r->at, (size_t)((stop ? stop : r->end) - r->at)};
    r->at = stop ? stop + 1 : r->end;
    r->line++;
    return true;
}

static bool next_word(orr_str *line, orr_str *out)
{
    const char *p = line->ptr, *end = p + line->len;
    for (;;) {
        while (p < end && orr_is_space(*p))
            p++;
        if (p == end || *p != '\x1b')
            break;
        while (p < end && !orr_is_letter(*p))
            p++;
        p += p < end;
    }
    const char *from = p;
    while (p < end && !orr_is_space(*p) && *p != '\x1b')
        p++;
    *out = (orr_str){from, (size_t)(p - from)};
    *line = (orr_str){p, (size_t)(end - p)};
    return out->len > 0;
}

static bool gpu_number(orr_str word, uint64_t *out)
{
    return orr_str_begins(word, "GPU") && orr_text_u64((orr_str){word.ptr + 3, word.len - 3}, out);
}

static orr_code take_head(reader *r)
{
    orr_str line = {"", 0}, word;
    uint64_t n;
    do {
        if (!next_line(r, &line))
            return fail_line(r, "no line with GPU0 GPU1 ...");
        word = (orr_str){"", 0};
    } while (!next_word(&line, &word));
    do {
        if (!gpu_number(word, &n))
            break;
        if (n != r->gpus)
            return fail_line(r, "the GPUs are not numbered from 0");
        if (++r->gpus > MOST_GPUS)
            return fail_line(r, "more than 64 GPUs");
    } while (next_word(&line, &word));
    return r->gpus < 2 ? fail_line(r, "expected at least GPU0 and GPU1") : ORR_OK;
}

static bool find_relation(orr_str w, uint16_t *out)
{
    static const struct {
        const char *word;
        uint16_t is;
    } known[] = {{"X", SELF},         {"PIX", MEET_PIX}, {"PXB", MEET_PXB}, {"PHB", MEET_NODE},
                 {"NODE", MEET_NODE}, {"SYS", MEET_SYS}, {"SOC", MEET_SYS}};
    uint64_t n;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (orr_str_is(w, known[i].word)) {
            *out = known[i].is;
            return true;
        }
    if (!orr_str_begins(w, "NV") || !orr_text_u64((orr_str){w.ptr + 2, w.len - 2}, &n) || n == 0 ||
        n > 1000)
        return false;
    *out = (uint16_t)(NVLINKS + n);
    return true;
}

static orr_code take_rows(reader *r)
{
    orr_str line, word;
    uint32_t rows = 0;
    uint64_t n;
    char text[120];
    while (rows < r->gpus && next_line(r, &line)) {
        if (!next_word(&line, &word))
            continue;
        if (!gpu_number(word, &n) || n != rows)
            return fail_line(r, "expected the row of the next GPU");
        for (uint32_t k = 0; k < r->gpus; k++) {
            uint16_t v = UNKNOWN;
            const bool is_there = next_word(&line, &word);
            if (!is_there || !find_relation(word, &v) || (v == SELF) != (k == rows)) {
                snprintf(text, sizeof text,
                         "found \"%.*s\", expected X, NV#, PIX, PXB, PHB, NODE or SYS",
                         is_there ? (int)(word.len < SHOWN ? word.len : SHOWN) : 0,
                         is_there ? word.ptr : "");
                return fail_line(r, text);
            }
            r->relation[rows][k] = v;
        }
        rows++;
    }
    if (rows < r->gpus)
        return fail_line(r, "rows are missing");
    for (uint32_t i = 0; i < r->gpus; i++)
        for (uint32_t k = 0; k < i; k++)
            if (r->relation[i][k] != r->relation[k][i]) {
                snprintf(text, sizeof text, "the rows of GPU%u and GPU%u contradict each other", k,
                         i);
                return fail_line(r, text);
            }
    return ORR_OK;
}

/* ---- links ---- */

static orr_code add_cable(orr__topology *t,
                          uint32_t a,
                          uint32_t b,
                          double speed,
                          double ns,
                          uint32_t cost,
                          orr_error *err)
{
    const orr__wire l = {.from = a, .to = b, .speed = speed, .latency = ns, .cost = cost};
    return orr__topology_add_cable(t, &l, err);
}

static uint32_t links_of(const reader *r, uint32_t i, bool sums)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < r->gpus; k++) {
        const uint32_t v = r->relation[i][k] > NVLINKS ? r->relation[i][k] - NVLINKS : 0;
        n = sums ? n + v : n > v ? n : v;
    }
    return n;
}

static orr_code add_nvlinks(const reader *r, orr__topology *t)
{
    bool has_switch = false;
    uint32_t nvswitch = 0;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < r->gpus; i++)
        has_switch = has_switch || links_of(r, i, true) > MOST_NVLINKS;
    if (has_switch &&
        !(code = orr__topology_add_switch(t, orr_str_of("nvswitch"), &nvswitch, r->err)))
        code = orr__topology_mark_nvswitch(t, nvswitch, r->err);
    for (uint32_t i = 0; i < r->gpus && !code; i++) {
        const uint32_t most = links_of(r, i, false);
        if (has_switch && most)
            code = add_cable(t, i, nvswitch, most * NVLINK_GBPS, NVLINK_NS, COST_NVLINK, r->err);
        for (uint32_t k = i + 1; k < r->gpus && !has_switch && !code; k++)
            if (r->relation[i][k] > NVLINKS)
                code = add_cable(t, i, k, (r->relation[i][k] - NVLINKS) * NVLINK_GBPS, NVLINK_NS,
                                 COST_NVLINK, r->err);
    }
    return code;
}

/* The first GPU that meets this one at that tier or below. */
static uint32_t head_of(const reader *r, uint32_t gpu, unsigned tier)
{
    for (uint32_t k = 0; k < gpu; k++)
        if (r->relation[gpu][k] <= tier)
            return head_of(r, k, tier);
    return gpu;
}

/* A tree of switches; a tier's switch is named after its first GPU. */
static orr_code add_tree(const reader *r, orr__topology *t)
{
    static const char *const names[TIERS] = {"pci", "bridge", "socket", "system"};
    uint32_t device[TIERS][MOST_GPUS] = {0};
    orr_code code = ORR_OK;
    for (unsigned tier = TIERS; tier-- > 0 && !code;)
        for (uint32_t i = 0; i < r->gpus && !code; i++) {
            const uint32_t head = tier == MEET_SYS ? 0 : head_of(r, i, tier);
            char name[40];
            if (head != i) {
                device[tier][i] = device[tier][head];
                continue;
            }
            snprintf(name, sizeof name, "%s%" PRIu32, names[tier], i);
            code = orr__topology_add_switch(t, orr_str_of(name), &device[tier][i], r->err);
            if (!code && tier < MEET_SYS)
                code =
                    add_cable(t, device[tier][i], device[tier + 1][i],
                              tier == MEET_NODE ? SOCKET_GBPS : PCI_GBPS, PCI_NS, COST_PCI, r->err);
        }
    for (uint32_t i = 0; i < r->gpus && !code; i++)
        code = add_cable(t, i, device[MEET_PIX][i], PCI_GBPS, PCI_NS, COST_PCI, r->err);
    return code;
}

orr_code orr__topology_parse_smi(
    orr_span bytes, const char *path, size_t most_links, orr__topology **out, orr_error *err)
{
    reader *r = orr_alloc(1, sizeof *r);
    orr__topology *t = NULL;
    *out = NULL;
    if (!r)
        return orr_no_memory(err);
    *r = (reader){.path = path,
                  .at = (const char *)bytes.ptr,
                  .end = (const char *)bytes.ptr + bytes.len,
                  .err = err};
    orr_code code = take_head(r);
    if (!code)
        code = take_rows(r);
    if (!code && !(code = orr__topology_create(&t, err))) {
        t->most_links = most_links;
        t->ranks_forward = false;
        t->ranks = t->npus[0] = r->gpus;
        t->dims = 1;
        code = add_nvlinks(r, t);
        if (!code)
            code = add_tree(r, t);
    }
    orr_free(r);
    if (code)
        orr__topology_destroy(t);
    else
        *out = t;
    return code;
}

bool orr__topology_is_smi(orr_span bytes)
{
    orr_str line = {(const char *)bytes.ptr, bytes.len < 200 ? bytes.len : 200}, word;
    return next_word(&line, &word) && orr_str_is(word, "GPU0");
}
