/* SPDX-License-Identifier: Apache-2.0 */
/* config_file.c - config.txt: one table of keys, read word by word (packet-network.md 3).
 *
 * A later value overrides an earlier one.  Keys that the reference accepts and ignores are rows
 * without a member. */
#include "models/network/packet/packet_config.h"

#include "base/io/input.h"
#include "base/text/text.h"
#include "models/network/words.h"

#include <orrery/lab/folders.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

typedef enum kind {
    WHOLE,
    FLAG,
    REAL,
    RATE,
    PATH,
    KMIN,
    KMAX,
    PMAX,
    DOWN,
    WORD,
    BALANCE,
    TRANSPORT,
    TIME, /* with a unit */
    WHAT  /* comma-separated words */
} kind;

typedef struct key {
    const char *name;
    kind kind;
    size_t offset;
    uint64_t min, max;
} key;

#define AT(field) offsetof(orr__packet_config, field)
#define ANY UINT64_MAX

static const key keys[] = {
    {"ENABLE_QCN", FLAG, AT(enable_qcn), 0, 0},
    {"USE_DYNAMIC_PFC_THRESHOLD", WORD, 0, 0, 0},
    {"CLAMP_TARGET_RATE", FLAG, AT(clamp_target_rate), 0, 0},
    {"PAUSE_TIME", WHOLE, AT(pause_time_us), 0, ANY},
    {"DATA_RATE", WORD, 0, 0, 0},
    {"LINK_DELAY", WORD, 0, 0, 0},
    {"PACKET_PAYLOAD_SIZE", WHOLE, AT(payload), 1, 65000},
    {"L2_CHUNK_SIZE", WHOLE, AT(chunk), 0, UINT32_MAX},
    {"L2_ACK_INTERVAL", WHOLE, AT(ack_interval), 0, UINT32_MAX},
    {"L2_BACK_TO_ZERO", FLAG, AT(back_to_zero), 0, 0},
    {"TOPOLOGY_FILE", PATH, AT(topology), 0, 0},
    {"FLOW_FILE", PATH, AT(flows), 0, 0},
    {"TRACE_FILE", PATH, AT(trace_nodes), 0, 0},
    {"TRACE_OUTPUT_FILE", PATH, AT(trace_out), 0, 0},
    {"FCT_OUTPUT_FILE", PATH, AT(fct_out), 0, 0},
    {"PFC_OUTPUT_FILE", PATH, AT(pfc_out), 0, 0},
    {"QLEN_MON_FILE", PATH, AT(qlen_out), 0, 0},
    {"QLEN_MON_START", WHOLE, AT(qlen_start_ns), 0, ANY},
    {"QLEN_MON_END", WHOLE, AT(qlen_end_ns), 0, ANY},
    {"QLEN_MON_INTERVAL", WHOLE, AT(qlen_interval_ns), 1, 1000000000},
    {"SIMULATOR_STOP_TIME", REAL, AT(stop_s), 0, 0},
    {"CC_MODE", WHOLE, AT(control), 0, 1000},
    {"ALPHA_RESUME_INTERVAL", WHOLE, AT(alpha_us), 0, 1000000000},
    {"RATE_DECREASE_INTERVAL", WHOLE, AT(decrease_us), 0, 1000000000},
    {"RP_TIMER", WHOLE, AT(rp_us), 0, 1000000000},
    {"EWMA_GAIN", REAL, AT(gain), 0, 0},
    {"FAST_RECOVERY_TIMES", WHOLE, AT(recovery_times), 0, UINT32_MAX},
    {"RATE_AI", RATE, AT(rate_ai), 0, 0},
    {"RATE_HAI", RATE, AT(rate_hai), 0, 0},
    {"MIN_RATE", RATE, AT(min_rate), 0, 0},
    {"DCTCP_RATE_AI", RATE, AT(dctcp_rate_ai), 0, 0},
    {"ERROR_RATE_PER_LINK", REAL, AT(error_rate), 0, 1},
    {"HAS_WIN", FLAG, AT(has_window), 0, 0},
    {"GLOBAL_T", FLAG, AT(global_t), 0, 0},
    {"VAR_WIN", FLAG, AT(var_window), 0, 0},
    {"FAST_REACT", FLAG, AT(fast_react), 0, 0},
    {"U_TARGET", REAL, AT(target), 0, 0},
    {"MI_THRESH", WHOLE, AT(mi_thresh), 0, INT32_MAX},
    {"INT_MULTI", WHOLE, AT(int_multi), 1, 65536},
    {"MULTI_RATE", FLAG, AT(multi_rate), 0, 0},
    {"SAMPLE_FEEDBACK", FLAG, AT(sample_feedback), 0, 0},
    {"PINT_LOG_BASE", REAL, AT(pint_base), 0, 0},
    {"PINT_PROB", REAL, AT(pint_prob), 0, 1},
    {"RATE_BOUND", FLAG, AT(rate_bound), 0, 0},
    {"NIC_TOTAL_PAUSE_TIME", WHOLE, AT(nic_pauses), 0, UINT32_MAX},
    {"ACK_HIGH_PRIO", FLAG, AT(ack_high_prio), 0, 0},
    {"LINK_DOWN", DOWN, 0, 0, 0},
    {"ENABLE_TRACE", FLAG, AT(enable_trace), 0, 0},
    {"KMAX_MAP", KMAX, 0, 0, 0},
    {"KMIN_MAP", KMIN, 0, 0, 0},
    {"PMAX_MAP", PMAX, 0, 0, 0},
    {"BUFFER_SIZE", WHOLE, AT(buffer_mib), 1, 4095},
    {"HEADROOM_FACTOR", WHOLE, AT(headroom_factor), 0, 1024},
    /* ours (docs/format/packet.md) */
    {"WIRE_OVERHEAD", WHOLE, AT(wire_overhead), 0, 1024},
    {"LOAD_BALANCE", BALANCE, AT(load_balance), 0, 0},
    {"FLOWLET_GAP", WHOLE, AT(flowlet_gap_ns), 1, 1000000000},
    {"TRANSPORT", TRANSPORT, AT(selective), 0, 0},
    {"ENABLE_PFC", FLAG, AT(enable_pfc), 0, 0},
    {"PAUSE_EXPIRES", FLAG, AT(pause_expires), 0, 0},
    {"TRIMMING", FLAG, AT(trimming), 0, 0},
    {"QUEUE_LIMIT", WHOLE, AT(queue_limit), 0, 4000000000},
    {"NSCC_TARGET_DELAY", WHOLE, AT(nscc_delay_ns), 0, 1000000000},
    {"FORWARDING_HOSTS", FLAG, AT(forward_hosts), 0, 0},
    {"LINK_EVENTS_FILE", PATH, AT(link_events), 0, 0},
    {"APPROX", FLAG, AT(approx), 0, 0},
    {"PFC_STORM_SHARE", REAL, AT(storm_share), 0, 1},
    {"SERIES_FILE", PATH, AT(series_out), 0, 0},
    {"SERIES_INTERVAL", TIME, AT(series_every_ps), 1, 0},
    {"SERIES_WHAT", WHAT, AT(series_what), 0, 0},
    {"SERIES_WATCH", PATH, AT(series_watch), 0, 0},
    {"SERIES_SAMPLES", WHOLE, AT(series_samples), 2, 100000},
    {"SERIES_TOP", WHOLE, AT(series_top), 0, 4096},
    /* SimAI's (packet-network.md 13) */
    {"BW_MON_FILE", PATH, AT(bw_out), 0, 0},
    {"RATE_MON_FILE", PATH, AT(rate_out), 0, 0},
    {"CNP_MON_FILE", PATH, AT(cnp_out), 0, 0},
    {"MON_START", WHOLE, AT(mon_start_us), 0, 1000000000000},
    {"MON_END", WHOLE, AT(mon_end_us), 0, 1000000000000},
    {"QP_MON_INTERVAL", WHOLE, AT(qp_mon_us), 1, 1000000000},
    {"BW_MON_INTERVAL", WHOLE, AT(bw_mon_us), 1, 1000000000},
};

_Static_assert(sizeof keys / sizeof *keys <= ORR__KEYS_MOST, "a key has no place");

void orr__packet_config_defaults(orr__packet_config *c, const struct orr_rules_packet *rules)
{
    *c = (orr__packet_config){.rules = orr__packet_rules(rules),
                              .threads = 1,
                              .approx = ORR__APPROX_LONG,
                              .enable_qcn = 1,
                              .enable_pfc = 1,
                              .pause_time_us = 5,
                              .payload = 1000,
                              .control = ORR__CONTROL_DCQCN,
                              .alpha_us = 55,
                              .decrease_us = 4,
                              .recovery_times = 5,
                              .min_rate = 100000000,
                              .dctcp_rate_ai = 1000000000,
                              .has_window = 1,
                              .global_t = 1,
                              .fast_react = 1,
                              .target = 0.95,
                              .mi_thresh = 5,
                              .int_multi = 1,
                              .multi_rate = 1,
                              .pint_base = 1.05,
                              .pint_prob = 1,
                              .rate_bound = 1,
                              .enable_trace = 1,
                              .buffer_mib = 16,
                              .headroom_factor = 3,
                              .flowlet_gap_ns = 1000,
                              .qlen_end_ns = 2100000000,
                              .qlen_interval_ns = 100,
                              .mon_end_us = 2100000000,
                              .qp_mon_us = 100,
                              .bw_mon_us = 10000,
                              .series_every_ps = 10000000,
                              .series_samples = 1000,
                              .series_top = 16,
                              .series_what =
                                  ORR__SERIES_FLOWS | ORR__SERIES_QUEUES | ORR__SERIES_LINKS,
                              .storm_share = 0.5,
                              .stop_s = 3.01};
    if (rules) { /* the old program writes them by default */
        memcpy(c->fct_out, "fct.txt", sizeof "fct.txt");
        memcpy(c->pfc_out, "pfc.txt", sizeof "pfc.txt");
    }
}

/* ---- values ---- */

static orr__marks *marks_of(orr__packet_config *c, uint64_t rate)
{
    for (unsigned i = 0; i < c->mark_count; i++)
        if (c->marks[i].rate == rate)
            return &c->marks[i];
    if (c->mark_count == ORR__MARKS_MOST)
        return NULL;
    c->marks[c->mark_count] = (orr__marks){.rate = rate};
    return &c->marks[c->mark_count++];
}

static void set_mark(orr__marks *m, kind k, double value)
{
    if (k == PMAX) {
        m->pmax = value;
        m->has_pmax = true;
    } else if (k == KMIN) {
        m->kmin = (uint64_t)value * 1000;
        m->has_kmin = true;
    } else {
        m->kmax = (uint64_t)value * 1000;
        m->has_kmax = true;
    }
}

/* "n rate value ...": thresholds in kB, or a probability. */
static orr_code take_map(orr__packet_config *c, kind k, orr__words *w, orr_error *err)
{
    uint64_t count = 0, rate = 0;
    double value = 0;
    orr_code code =
        orr__words_u64(w, "the number of rows of the map", 0, ORR__MARKS_MOST, &count, err);
    for (uint64_t i = 0; i < count && !code; i++) {
        code = orr__words_u64(w, "a link speed in bit/s", 1, (uint64_t)1e15, &rate, err);
        if (!code)
            code = k == PMAX ? orr__words_real(w, "a probability", 0, 1, &value, err)
                             : orr__words_real(w, "a threshold in kB", 0, 1e9, &value, err);
        orr__marks *m = code ? NULL : marks_of(c, rate);
        const orr_where where = orr__words_where(w);
        if (m) {
            set_mark(m, k, value);
            m->line = k == PMAX ? m->line : where.line;
            m->column = k == PMAX ? m->column : where.column;
        } else if (!code) {
            code = orr_fail(err, ORR_EINPUT, &where, "more than %d link speeds", ORR__MARKS_MOST);
        }
    }
    return code;
}

static orr_code take_down(orr__packet_config *c, orr__words *w, orr_error *err)
{
    orr_code code =
        orr__words_u64(w, "the time of a failure in us", 0, (uint64_t)1e12, &c->down_us, err);
    if (!code)
        code = orr__words_u64(w, "a node", 0, UINT32_MAX, &c->down_a, err);
    if (!code)
        code = orr__words_u64(w, "a node", 0, UINT32_MAX, &c->down_b, err);
    c->has_down = !code && c->down_us > 0; /* as in the reference: 0 0 0 means no failure */
    return code;
}

static orr_code take_path(char *out, orr__words *w, orr_error *err)
{
    orr_str s;
    const orr_code code = orr__words_need(w, "a path", &s, err);
    if (code)
        return code;
    if (s.len >= ORR__PATH_ROOM || memchr(s.ptr, 0, s.len)) {
        const orr_where where = orr__words_where(w);
        return orr_fail(err, ORR_EINPUT, &where, "this is not a path");
    }
    memcpy(out, s.ptr, s.len);
    out[s.len] = 0;
    return ORR_OK;
}

static orr_code take_choice(
    orr__words *w, const char *const *words, const char *expected, uint64_t *out, orr_error *err)
{
    orr_str s;
    const orr_code code = orr__words_need(w, expected, &s, err);
    if (code)
        return code;
    for (uint64_t i = 0; words[i]; i++)
        if (orr_str_is(s, words[i])) {
            *out = i;
            return ORR_OK;
        }
    const orr_where where = orr__words_where(w);
    return orr_fail(err, ORR_EINPUT, &where, "\"%.*s\" is not %s", (int)(s.len < 40 ? s.len : 40),
                    s.ptr, expected);
}

static bool is_one_of(orr_str word, const char *const *words, unsigned *out)
{
    for (*out = 0; words[*out]; ++*out)
        if (orr_str_is(word, words[*out]))
            return true;
    return false;
}

/* "flows,links" */
static orr_code take_what(orr__words *w, uint64_t *out, orr_error *err)
{
    static const char *const words[] = {"flows", "queues", "links", NULL};
    orr_str s;
    orr_code code = orr__words_need(w, "flows, queues or links", &s, err);
    *out = 0;
    while (!code && s.len) {
        const char *comma = memchr(s.ptr, ',', s.len);
        const size_t len = comma ? (size_t)(comma - s.ptr) : s.len;
        unsigned which;
        if (!is_one_of((orr_str){s.ptr, len}, words, &which)) {
            const orr_where where = orr__words_where(w);
            return orr_fail(err, ORR_EINPUT, &where, "\"%.*s\" is not flows, queues or links",
                            (int)(len < 40 ? len : 40), s.ptr);
        }
        *out |= (uint64_t)1 << which;
        s = (orr_str){s.ptr + len + (comma != NULL), s.len - len - (comma != NULL)};
    }
    return code;
}

static orr_code take_value(orr__packet_config *c, const key *k, orr__words *w, orr_error *err)
{
    static const char *const balances[] = {"ecmp", "spray", "flowlet", "reps", NULL};
    static const char *const transports[] = {"go-back-n", "selective", NULL};
    void *to = (char *)c + k->offset;
    char number[64];
    orr_str ignored;
    double real = 0;
    orr_code code;
    snprintf(number, sizeof number, "a number for %s", k->name);
    switch (k->kind) {
    case WHOLE: /* like a C++ stream into an integer: the fraction is truncated */
        code = orr__words_real(w, number, (double)k->min, k->max == ANY ? 1e19 : (double)k->max,
                               &real, err);
        if (!code)
            *(uint64_t *)to = (uint64_t)real;
        return code;
    case FLAG:
        code = orr__words_real(w, number, 0, 1e9, &real, err);
        *(uint64_t *)to = real >= 1;
        return code;
    case REAL:
        return orr__words_real(w, number, 0, k->max ? (double)k->max : 1e300, to, err);
    case RATE:
        return orr__words_rate(w, k->name, to, err);
    case PATH:
        return take_path(to, w, err);
    case DOWN:
        return take_down(c, w, err);
    case BALANCE:
        return take_choice(w, balances, "ecmp, spray, flowlet or reps", to, err);
    case TRANSPORT:
        return take_choice(w, transports, "go-back-n or selective", to, err);
    case TIME:
        code = orr__words_delay(w, k->name, to, err);
        if (!code && *(uint64_t *)to == 0) {
            const orr_where where = orr__words_where(w);
            return orr_fail(err, ORR_EINPUT, &where, "%s is 0", k->name);
        }
        return code;
    case WHAT:
        return take_what(w, to, err);
    case WORD:
        return orr__words_need(w, "a value", &ignored, err);
    default:
        return take_map(c, k->kind, w, err);
    }
}

/* ---- the file ---- */

static const key *find_key(orr_str s)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (orr_str_is(s, keys[i].name))
            return &keys[i];
    return NULL;
}

static orr_code unknown_key(orr__packet_config *c, const orr__words *w, orr_str s, orr_error *err)
{
    const orr_where where = orr__words_where(w);
    char shown[ORR__WORD_ROOM];
    const char *names[sizeof keys / sizeof *keys + 1] = {NULL};
    if (!c->rules->counts_unknown_keys) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            names[i] = keys[i].name;
        const char *near = orr_nearest(s, names);
        return orr_fail(err, ORR_EINPUT, &where, "\"%s\" is not a key; %s%s%s",
                        orr__words_shown(s, shown),
                        near ? "did you mean \"" : "docs/format/packet.md lists them",
                        near ? near : "", near ? "\"?" : "");
    }
    if (c->unknown_count++ == 0) {
        (void)orr__words_shown(s, c->unknown);
        c->unknown_at = where;
    }
    return ORR_OK;
}

/* An error caused by the value of the key `name`. */
ORR_PRINTF(4, 5)
static orr_code fail_at(
    const orr__packet_config *c, const char *name, orr_error *err, const char *fmt, ...)
{
    const orr_where w = orr__packet_config_where(c, name);
    char text[240];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return orr_fail(err, ORR_EINPUT, w.path[0] ? &w : NULL, "%s", text);
}

/* The first key that requests what the reference cannot do; NULL: none. */
static const char *key_of_ours(const orr__packet_config *c)
{
    return c->load_balance     ? "LOAD_BALANCE"
           : c->selective      ? "TRANSPORT"
           : !c->enable_pfc    ? "ENABLE_PFC"
           : c->trimming       ? "TRIMMING"
           : c->pause_expires  ? "PAUSE_EXPIRES"
           : c->forward_hosts  ? "FORWARDING_HOSTS"
           : c->wire_overhead  ? "WIRE_OVERHEAD"
           : c->link_events[0] ? "LINK_EVENTS_FILE"
                               : NULL;
}

/* Required, and above 0. */
static orr_code check_needed(const orr__packet_config *c, orr_error *err)
{
    if (c->chunk == 0)
        return fail_at(c, "L2_CHUNK_SIZE", err, "L2_CHUNK_SIZE is missing or 0 (bytes, above 0)");
    if (c->ack_interval == 0 && c->rules->needs_ack_interval)
        return fail_at(c, "L2_ACK_INTERVAL", err,
                       "L2_ACK_INTERVAL is missing or 0: nothing would be acknowledged");
    if (!c->has_rate_ai || !c->has_rate_hai)
        return fail_at(c, c->has_rate_ai ? "RATE_HAI" : "RATE_AI", err,
                       "%s is missing (a rate, as 50Mb/s)",
                       c->has_rate_ai ? "RATE_HAI" : "RATE_AI");
    if (!(c->target > 0))
        return fail_at(c, "U_TARGET", err, "U_TARGET is 0");
    return ORR_OK;
}

/* Incompatible settings. */
static orr_code check_together(const orr__packet_config *c, orr_error *err)
{
    if (c->rules->refuses_new_keys && key_of_ours(c))
        return fail_at(
            c, key_of_ours(c), err,
            "LOAD_BALANCE, TRANSPORT, ENABLE_PFC, TRIMMING, PAUSE_EXPIRES, "
            "FORWARDING_HOSTS, WIRE_OVERHEAD and LINK_EVENTS_FILE are not keys of the old "
            "program: they cannot be used with --compat");
    if (c->selective && c->back_to_zero)
        return fail_at(
            c, "L2_BACK_TO_ZERO", err,
            "L2_BACK_TO_ZERO 1 requires TRANSPORT go-back-n: lost packets are retransmitted one "
            "by one");
    if (c->trimming && (!c->selective || c->enable_pfc))
        return fail_at(c, "TRIMMING", err,
                       "TRIMMING 1 needs TRANSPORT selective and ENABLE_PFC 0: trimmed packets are "
                       "retransmitted one by one, and paused senders cause no trimming");
    if (c->nic_pauses && !c->enable_pfc)
        return fail_at(
            c, "NIC_TOTAL_PAUSE_TIME", err,
            "NIC_TOTAL_PAUSE_TIME %llu needs ENABLE_PFC 1: without PFC nothing is paused",
            (unsigned long long)c->nic_pauses);
    return ORR_OK;
}

static orr_code check_control(const orr__packet_config *c, orr_error *err)
{
    if (c->control == ORR__CONTROL_NSCC && c->rules->engine.has_nscc &&
        !(c->selective && c->has_window && c->enable_qcn))
        return fail_at(c, "CC_MODE", err,
                       "NSCC (CC_MODE 11) needs TRANSPORT selective, HAS_WIN 1 and ENABLE_QCN 1: "
                       "it sets the window by marks");
    if (c->load_balance && c->control == ORR__CONTROL_PINT)
        return fail_at(c, "LOAD_BALANCE", err, "HPCC-PINT (CC_MODE 10) requires LOAD_BALANCE ecmp");
    if (c->control == ORR__CONTROL_HPCC && !c->has_window)
        return fail_at(c, "HAS_WIN", err,
                       "HPCC (CC_MODE 3) needs a window (HAS_WIN 1): it divides by it");
    if (c->control == ORR__CONTROL_PINT && !(c->pint_base >= 1.001 && c->pint_base <= 16))
        return fail_at(c, "PINT_LOG_BASE", err,
                       "PINT_LOG_BASE is not from 1.001 to 16: its powers have 16 bits");
    const bool has_gain = c->control == ORR__CONTROL_DCQCN || c->control == ORR__CONTROL_DCTCP;
    if (has_gain && c->gain > 1 && c->rules->checks_values)
        return fail_at(c, "EWMA_GAIN", err,
                       "EWMA_GAIN is above 1: it is the weight of the newest sample");
    if (c->control == ORR__CONTROL_DCQCN && c->rules->checks_values && c->rp_us == 0)
        return fail_at(c, "RP_TIMER", err,
                       "DCQCN (CC_MODE 1) needs RP_TIMER (us, above 0): the rate would never grow");
    return ORR_OK;
}

/* With swapped thresholds nothing is marked at random; the reference marks everything above the
 * lower one. */
static orr_code check_marks(const orr__packet_config *c, const char *path, orr_error *err)
{
    for (unsigned i = 0; i < c->mark_count && c->rules->checks_values; i++) {
        const orr__marks *m = &c->marks[i];
        const orr_where w = orr_where_line(path, m->line, m->column);
        if (m->has_kmin && m->has_kmax && m->kmin > m->kmax)
            return orr_fail(err, ORR_EINPUT, &w,
                            "links of %llu bit/s: KMIN_MAP has %llu kB, which is above %llu kB of "
                            "KMAX_MAP",
                            (unsigned long long)m->rate, (unsigned long long)m->kmin / 1000,
                            (unsigned long long)m->kmax / 1000);
    }
    return ORR_OK;
}

/* No output may be another file of the run, except devices. */
static orr_code check_paths(const orr__packet_config *c, orr_error *err)
{
    static const char *const names[] = {"FCT_OUTPUT_FILE",   "PFC_OUTPUT_FILE",  "QLEN_MON_FILE",
                                        "TRACE_OUTPUT_FILE", "BW_MON_FILE",      "RATE_MON_FILE",
                                        "CNP_MON_FILE",      "SERIES_FILE",      "TOPOLOGY_FILE",
                                        "FLOW_FILE",         "LINK_EVENTS_FILE", "TRACE_FILE"};
    const char *const paths[] = {c->fct_out,  c->pfc_out,  c->qlen_out,    c->trace_out,
                                 c->bw_out,   c->rate_out, c->cnp_out,     c->series_out,
                                 c->topology, c->flows,    c->link_events, c->trace_nodes};
    enum { OUTPUTS = 8, ALL = 12 };
    for (unsigned i = 0; i < OUTPUTS; i++) {
        if (!paths[i][0] || strncmp(paths[i], "/dev/", 5) == 0)
            continue;
        for (unsigned k = i + 1; k < ALL; k++)
            if (strcmp(paths[i], paths[k]) == 0)
                return fail_at(c, names[i], err, "%s is the same file as %s", names[i], names[k]);
        if (strcmp(paths[i], c->path) == 0)
            return fail_at(c, names[i], err, "%s is this file itself", names[i]);
    }
    return ORR_OK;
}

static orr_code check(const orr__packet_config *c, const char *path, orr_error *err)
{
    orr_code code;
    if ((code = check_needed(c, err)) || (code = check_paths(c, err)) ||
        (code = check_together(c, err)) || (code = check_control(c, err)))
        return code;
    return check_marks(c, path, err);
}

orr_where orr__packet_config_where(const orr__packet_config *c, const char *name)
{
    const key *k = find_key(orr_str_of(name));
    const orr__key_place *at = k ? &c->places[k - keys] : NULL;
    if (!at || !at->line)
        return orr_where_byte(c->path[0] ? c->path : c->over_path, ORR_NO_BYTE);
    return orr_where_line(at->is_over ? c->over_path : c->path, at->line, at->column);
}

static void note_key(orr__packet_config *c, const key *k, orr__key_place at)
{
    c->places[k - keys] = at;
    c->has_rate_ai |= k->offset == AT(rate_ai);
    c->has_rate_hai |= k->offset == AT(rate_hai);
    c->has_stop |= k->offset == AT(stop_s);
    c->is_simai |= k->offset >= AT(bw_out) && k->offset <= AT(bw_mon_us);
}

orr_code orr__packet_config_parse(orr__packet_config *c,
                                  orr_span bytes,
                                  const char *path,
                                  orr_error *err)
{
    orr__words w;
    orr_str s;
    orr_code code = ORR_OK;
    const bool is_over = !c->is_in_file && strcmp(path, c->path) != 0;
    if (is_over)
        snprintf(c->over_path, sizeof c->over_path, "%s", path);
    orr__words_init(&w, bytes, path);
    while (!code && orr__words_next(&w, &s)) {
        const key *k = find_key(s);
        const orr__key_place at = {w.word_line, w.word_column, is_over};
        code = k ? take_value(c, k, &w, err) : unknown_key(c, &w, s, err);
        if (!code && k)
            note_key(c, k, at);
    }
    return code ? code : check(c, path, err);
}

orr_code orr__packet_config_read(orr__packet_config *c, const char *path, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    if (strlen(path) < sizeof c->path)
        memcpy(c->path, path, strlen(path) + 1);
    c->is_in_file = true;
    code = orr__packet_config_parse(c, orr_input_bytes(in), path, err);
    c->is_in_file = false;
    orr_input_close(in);
    return code;
}

static orr_code check_folder(
    const orr__packet_config *c, const key *k, const char *from, const char *path, orr_error *err)
{
    const orr_where at = orr__packet_config_where(c, k->name);
    return orr_folder_check(path, from, &at, err);
}

static bool is_of_file(const orr__packet_config *c, const key *k)
{
    return k && c->places[k - keys].line && !c->places[k - keys].is_over;
}

orr_code orr__packet_config_may_read(const orr__packet_config *c,
                                     const char *name,
                                     const char *from,
                                     const char *path,
                                     orr_error *err)
{
    const key *k = find_key(orr_str_of(name));
    if (c->rules != orr__packet_rules(NULL) || !is_of_file(c, k))
        return ORR_OK;
    return check_folder(c, k, from, path, err);
}

orr_code orr__packet_config_may_write(const orr__packet_config *c,
                                      const char *from,
                                      const char *const *replaced,
                                      orr_error *err)
{
    static const char *const outputs[] = {"FCT_OUTPUT_FILE", "PFC_OUTPUT_FILE",   "QLEN_MON_FILE",
                                          "BW_MON_FILE",     "TRACE_OUTPUT_FILE", "RATE_MON_FILE",
                                          "CNP_MON_FILE",    "SERIES_FILE"};
    orr_code code = ORR_OK;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs && !code; i++) {
        const key *k = find_key(orr_str_of(outputs[i]));
        bool is_replaced = !is_of_file(c, k);
        for (const char *const *r = replaced; *r; r++)
            is_replaced |= strcmp(*r, outputs[i]) == 0;
        const char *path = (const char *)c + k->offset;
        if (!is_replaced && path[0] && c->rules == orr__packet_rules(NULL))
            code = check_folder(c, k, from, path, err);
    }
    return code;
}

void orr__packet_config_write_nothing(orr__packet_config *c)
{
    c->fct_out[0] = c->pfc_out[0] = c->qlen_out[0] = c->trace_out[0] = 0;
    c->bw_out[0] = c->rate_out[0] = c->cnp_out[0] = c->series_out[0] = 0;
}

/* ---- rules ----
 *
 * Our side of each rule: "native default" of the table in packet-network.md 14. */

static const struct orr_rules_packet ours = {
    .engine = {.ticks_per_ns = 1000,
               .waits_for_repair = true,
               .frees_lost_buffer = true,
               .keeps_order = true,
               .has_timeouts = true,
               .acks_duplicates = true,
               .accepts_overlap = true,
               .skips_acked = true,
               .completes_chunks = true,
               .forwards_in_turn = true,
               .acks_high_in_switches = true,
               .host_pauses_expire = true,
               .largest_message = UINT64_MAX,
               .most_packets = 1ull << 32, /* hours */
               .refuses_small_buffers = true,
               .hpcc_hops = UINT8_MAX,
               .has_nscc = true,
               .honours_ends = true,
               .can_skip_periods = true},
    .checks_values = true,
};

const struct orr_rules_packet *orr__packet_rules(const struct orr_rules_packet *given)
{
    return given ? given : &ours;
}
