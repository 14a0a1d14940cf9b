/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_words.c - words and folders that orrery gemm and the old generator's name share. */
#include "gemm.h"

#include <orrery/lab/compat.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- words ---- */

orr_code cli_gemm_rules(const char *name, const orr_rules_gemm **out, orr_error *err)
{
    const orr_compat *old = NULL;
    const orr_code code = name ? orr_compat_find(ORR_RULES_GEMM, name, &old, err) : ORR_OK;
    *out = old ? old->gemm : NULL;
    return code;
}

orr_code cli_gemm_policy(const char *word, orr_code otherwise, orr_policy *out, orr_error *err)
{
    static const orr_policy known[] = {ORR_POLICY_DATA, ORR_POLICY_MODEL,
                                       ORR_POLICY_HYBRID_DATA_MODEL, ORR_POLICY_HYBRID_MODEL_DATA,
                                       ORR_POLICY_HYBRID_CUSTOMIZED};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(word, orr_policy_name(known[i])) == 0) {
            *out = known[i];
            return ORR_OK;
        }
    }
    return orr_fail(err, otherwise, NULL,
                    "--parallel '%s' is not DATA, MODEL, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA or "
                    "HYBRID_CUSTOMIZED",
                    word);
}

/* ---- intermediate files ---- */

static orr_code make_folder(const char *path, orr_error *err)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return ORR_OK;
    const orr_where where = orr_where_line(path, 0, 0);
    return orr_fail(err, ORR_EIO, &where, "cannot create the folder: %s", strerror(errno));
}

/* The file's name without its folder and without any of the characters of ".csv" at its end (spec
 * scale-sim.md, 7.3: vcs.csv has nothing left). */
static void stem_of(const char *path, char *out, size_t room)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t n = strlen(name);
    while (n && strchr(".csv", name[n - 1]))
        n--;
    snprintf(out, room, "%.*s", (int)n, name);
}

orr_code cli_gemm_keep(
    const orr_gemm *g, orr_policy policy, const char *run_name, const char *shapes, orr_error *err)
{
    char folder[1024], stem[512];
    orr_code code = make_folder("outputs", err);
    snprintf(folder, sizeof folder, "outputs/%s", orr_policy_name(policy));
    if (!code)
        code = make_folder(folder, err);
    const int n =
        snprintf(folder, sizeof folder, "outputs/%s/%s", orr_policy_name(policy), run_name);
    if (!code && (n < 0 || (size_t)n >= sizeof folder))
        code = orr_fail(err, ORR_EUSAGE, NULL, "the name of the run is too long");
    if (!code)
        code = make_folder(folder, err);
    stem_of(shapes, stem, sizeof stem);
    return code ? code : orr_gemm_write_intermediate(g, folder, stem, err);
}
