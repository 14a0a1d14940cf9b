/* SPDX-License-Identifier: Apache-2.0 */
/* golden.h - for programs that go through the files of the golden data and print TAP.
 *
 *     static bool check_one(const char *path, char *why, size_t size) { ... }
 *     int main(void) { return golden_each("chakra", ".et", check_one); }
 *
 * `why` says what is wrong with a file.  ORR_GOLDEN is the folder of the golden data. */
#ifndef ORR_TESTS_GOLDEN_H
#define ORR_TESTS_GOLDEN_H

#include <orrery/error.h>
#include <orrery/types.h>

#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef bool golden_check(const char *path, char *why, size_t size);

static inline bool golden_ends_in(const char *s, const char *tail)
{
    const size_t n = strlen(s), m = strlen(tail);
    return n > m && strcmp(s + n - m, tail) == 0;
}

static inline int golden_by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* All of a file, in memory that the caller frees; NULL: it cannot be read. */
static inline char *golden_file(const char *path, size_t *len)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    if (f && fstat(fileno(f), &st) == 0 && (text = malloc((size_t)st.st_size + 1)))
        *len = fread(text, 1, (size_t)st.st_size, f);
    if (f)
        fclose(f);
    return text;
}

/* The path of a file or folder of the golden data, "chakra/feeder". */
static inline void golden_path(char *out, size_t size, const char *name)
{
    const char *root = getenv("ORR_GOLDEN");
    snprintf(out, size, "%s/%s", root ? root : "(ORR_GOLDEN is not set)", name);
}

static inline int golden_each(const char *folder, const char *tail, golden_check *check)
{
    char root[4096];
    unsigned count = 0, bad = 0;
    golden_path(root, sizeof root, folder);
    char *const roots[] = {root, NULL};
    FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, golden_by_name);
    for (FTSENT *e; tree && (e = fts_read(tree));) {
        char why[600] = "";
        if (e->fts_info != FTS_F || !golden_ends_in(e->fts_name, tail))
            continue;
        const bool is_good = check(e->fts_path, why, sizeof why);
        printf("%sok %u - %s\n", is_good ? "" : "not ", ++count, e->fts_path + strlen(root) + 1);
        if (!is_good)
            printf("# %s\n", why);
        bad += !is_good;
    }
    if (tree)
        fts_close(tree);
    if (count == 0) {
        printf("not ok %u - %s has no files\n", ++count, root);
        bad++;
    }
    printf("1..%u\n", count);
    return bad != 0;
}

#endif
