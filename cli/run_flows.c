/* SPDX-License-Identifier: Apache-2.0 */
/* run_flows.c - orrery run --flows: flows over the packet network, without traces. */
#include "html_report.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/packet.h>

#include <signal.h>
#include <string.h>

static orr_packet *volatile running;

static void stop_running(int signal_number)
{
    orr_packet *p = running;
    (void)signal_number;
    if (p)
        orr_packet_stop(p);
}

static orr_code run_until_stopped(orr_packet *p, orr_error *err)
{
    struct sigaction old, stop = {.sa_handler = stop_running, .sa_flags = (int)SA_RESETHAND};
    const bool is_ignored = sigaction(SIGINT, NULL, &old) != 0 || old.sa_handler == SIG_IGN;
    running = p;
    if (!is_ignored)
        sigaction(SIGINT, &stop, NULL);
    const orr_code code = orr_packet_run(p, err);
    if (!is_ignored)
        sigaction(SIGINT, &old, NULL);
    running = NULL;
    return code;
}

static void note_warnings(const cli_context *c, const orr_packet *p)
{
    const char *line;
    for (size_t i = 0; (line = orr_packet_warning(p, i)); i++)
        cli_note(c, "%s\n", line);
}

static void explain(cli_context *c, const orr_packet *p, const orr_error *err)
{
    const char *line;
    if (!orr_packet_stall(p, 0) && err->code != ORR_ESTOP)
        return;
    cli_report(c, err);
    for (size_t i = 0; (line = orr_packet_stall(p, i)); i++)
        fprintf(stderr, "%s\n", line);
}

static bool add_key(char *keys, const char *key, const char *value)
{
    const size_t at = strlen(keys);
    const int n = value ? snprintf(keys + at, CLI_KEYS_ROOM - at, " %s %s", key, value) : 0;
    return n >= 0 && (size_t)n < CLI_KEYS_ROOM - at;
}

/* What one thread does whatever was asked for; the results are the same. */
static void note_one_thread(const cli_context *c)
{
    static const char *const options[] = {"compat", "approx"};
    const char *network = cli_text(c, "network");
    const bool is_packet = cli_given(c, "flows") || (network && strcmp(network, "packet") == 0);
    if (!is_packet || !cli_given(c, "threads") || cli_count(c, "threads") == 1)
        return;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (cli_given(c, options[i]))
            cli_note(c, "with --%s one thread runs the network\n", options[i]);
}

orr_code cli_packet_rules(bool is_compat, const struct orr_rules_packet **out, orr_error *err)
{
    const orr_compat *old;
    *out = NULL;
    if (!is_compat)
        return ORR_OK;
    const orr_code code = orr_compat_find(ORR_RULES_PACKET, NULL, &old, err);
    if (!code)
        *out = old->packet;
    return code;
}

orr_code cli_packet_keys(const cli_context *c, char keys[CLI_KEYS_ROOM], orr_error *err)
{
    static const struct {
        const char *option, *key;
    } rows[] = {{"series", "SERIES_FILE"},
                {"series-what", "SERIES_WHAT"},
                {"series-watch", "SERIES_WATCH"},
                {"series-every", "SERIES_INTERVAL"}};
    const char *own = cli_text(c, "packet-keys");
    bool fits = !own || strlen(own) < CLI_KEYS_ROOM / 2;
    keys[0] = 0;
    if (own && fits)
        memcpy(keys, own, strlen(own) + 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && fits && cli_given(c, "series"); i++) {
        const char *value = cli_text(c, rows[i].option);
        if (value && (!*value || strpbrk(value, " \t\n")))
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s: '%s' has white space or is empty",
                            rows[i].option, value);
        fits = add_key(keys, rows[i].key, value);
    }
    if (fits && cli_flag(c, "approx"))
        fits = add_key(keys, "APPROX", "1");
    note_one_thread(c);
    return fits ? ORR_OK : orr_fail(err, ORR_EUSAGE, NULL, "--packet-keys is too long");
}

static orr_code write_result(const orr_packet *p, bool is_json, orr_error *err)
{
    return is_json ? orr_packet_write_json(p, "-", err) : orr_packet_write_text(p, "-", err);
}

/* A page must not take the place of what it was made from. */
static orr_code check_report(const orr_packet *p, const char *report, orr_error *err)
{
    orr_packet_input in;
    orr_code code = ORR_OK;
    for (size_t i = 0; report && !(code = orr_packet_input_at(p, i, &in, err)); i++)
        if (strcmp(in.path, report) == 0 && strcmp(report, "-") != 0)
            return orr_fail(err, ORR_EUSAGE, NULL,
                            "--report %s: that file is an input of the run (%s)", report, in.what);
    return code == ORR_END ? ORR_OK : code;
}

/* The output files appear only when all flows were done; a run that is interrupted says how far it came. */
orr_code cli_run_flows(
    cli_context *c, const orr_packet_options *opt, bool is_json, const char *report, orr_error *err)
{
    orr_packet *p = NULL;
    orr_error second;
    orr_code code = orr_packet_create(opt, &p, err);
    if (code)
        return code;
    note_warnings(c, p);
    code = check_report(p, report, err);
    if (code) {
        orr_packet_destroy(p);
        return code;
    }
    code = run_until_stopped(p, err);
    if (!code)
        code = orr_packet_commit(p, err);
    if (!code)
        code = write_result(p, is_json, err);
    else if (is_json || code == ORR_ESTOP)
        (void)!write_result(p, is_json, &second); /* the first error counts */
    if (!code && report)
        code = cli_report_flows(c, p, NULL, report, err);
    else if (report && (code == ORR_ESTOP || orr_packet_stall(p, 0)))
        (void)!cli_report_flows(c, p, err, report, &second);
    if (code)
        explain(c, p, err);
    orr_packet_destroy(p);
    return code;
}
