/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - runs a fuzz target over given files, without libFuzzer: what once crashed stays a
 * test.
 *
 * Each file is tried whole and cut short at a few places; a target must survive every input.  Of a folder,
 * a merged corpus, all files are tried whole, as one test. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILE_MAX = 1 << 20, CUTS = 16 };

/* A copy of its own, so that a sanitizer sees a read past the end. */
static void try_bytes(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        return;
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int try_file(const char *path, bool cuts)
{
    static uint8_t data[FILE_MAX];
    FILE *in = fopen(path, "rb");
    if (!in) {
        printf("not ok - %s: cannot open\n", path);
        return 1;
    }
    const size_t size = fread(data, 1, sizeof data, in);
    fclose(in);
    try_bytes(data, size);
    if (!cuts)
        return 0;
    for (size_t i = 0; i < CUTS; i++)
        try_bytes(data, size * i / CUTS);
    printf("ok - %s\n", path);
    return 0;
}

static int try_folder(const char *path, DIR *folder)
{
    char file[4096];
    int count = 0;
    for (const struct dirent *e; (e = readdir(folder));)
        if (e->d_name[0] != '.') {
            snprintf(file, sizeof file, "%s/%s", path, e->d_name);
            if (try_file(file, false))
                return 1;
            count++;
        }
    printf("ok - %s: %d inputs\n", path, count);
    return 0;
}

static int try_path(const char *path)
{
    DIR *folder = opendir(path);
    const int failed = folder ? try_folder(path, folder) : try_file(path, true);
    if (folder)
        closedir(folder);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        failed |= try_path(argv[i]);
        fflush(stdout);
    }
    printf("1..%d\n", argc - 1);
    return failed;
}
