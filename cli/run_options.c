/* SPDX-License-Identifier: Apache-2.0 */
/* run_options.c - options of orrery run that belong to one engine: LogGOPS, packets. */
#include "goal.h"

#include <orrery/lab/compat.h>

#include <string.h>

orr_code cli_loggops_options(const cli_context *c,
                             orr_run_config *config,
                             orr_loggops_model *model,
                             orr_error *err)
{
    const char *text = cli_text(c, "loggops"), *compat = cli_text(c, "compat");
    const orr_compat *old = NULL;
    orr_code code = orr_loggops_parse(text ? text : "default", model, err);
    if (code)
        return orr_because(err, code, "--loggops");
    if (compat)
        code = orr_compat_find(ORR_RULES_LOGGOPS, compat, &old, err);
    config->loggops = model;
    config->loggops_rules = old ? old->loggops : NULL;
    config->noise = cli_text(c, "noise");
    config->noise_seed = cli_count(c, "noise-seed");
    config->has_common_noise = cli_flag(c, "noise-common");
    return code;
}

/* ---- packets ---- */

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
            cli_note(c, "with --%s the network runs on one thread\n", options[i]);
}

orr_code cli_packet_rules(bool is_wanted, const struct orr_rules_packet **out, orr_error *err)
{
    const orr_compat *old;
    *out = NULL;
    if (!is_wanted)
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
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s: '%s' is empty or contains white space",
                            rows[i].option, value);
        fits = add_key(keys, rows[i].key, value);
    }
    if (fits && cli_flag(c, "approx"))
        fits = add_key(keys, "APPROX", "1");
    note_one_thread(c);
    return fits ? ORR_OK : orr_fail(err, ORR_EUSAGE, NULL, "--packet-keys is too long");
}
