/* SPDX-License-Identifier: Apache-2.0 */
/* make_nsys.c - writes made-up exports for tests and examples: make_nsys FOLDER [WORD=N|WORD...],
 * table=FILE for timings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static inline void synth_require(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "make_nsys: %s\n", what);
    exit(1);
}

#include "nsys_synth.h"

static void set_number(synth *s, const char *word, uint32_t number)
{
    uint32_t *const fields[] = {&s->nodes,     &s->gpus,       &s->channels, &s->rounds,
                                &s->algorithm, &s->lost_calls, &s->only};
    static const char *const words[] = {"nodes",     "gpus", "channels", "rounds",
                                        "algorithm", "lost", "only"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word) == 0) {
            *fields[i] = number;
            return;
        }
    synth_require(0, word);
}

static void set_flag(synth *s, const char *word)
{
    bool *const flags[] = {&s->is_silent, &s->has_payloads, &s->has_text_ids, &s->has_no_kernels};
    static const char *const words[] = {"silent", "payloads", "text_ids", "no_kernels"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word) == 0) {
            *flags[i] = true;
            return;
        }
    synth_require(0, word);
}

int main(int argc, char **argv)
{
    synth s = {.nodes = 2, .gpus = 2, .channels = 2, .rounds = 8};
    synth_require(argc > 1, "usage: make_nsys FOLDER [WORD=N|WORD...]");
    s.folder = argv[1];
    mkdir(s.folder, 0777);
    for (int i = 2; i < argc; i++) {
        char word[32];
        char *equals = strchr(argv[i], '=');
        snprintf(word, sizeof word, "%.*s", (int)(equals ? equals - argv[i] : 31), argv[i]);
        if (!equals)
            set_flag(&s, word);
        else if (strcmp(word, "table") == 0)
            synth_write_table(equals + 1);
        else
            set_number(&s, word, (uint32_t)strtoul(equals + 1, NULL, 10));
    }
    synth_write(&s);
    return 0;
}
