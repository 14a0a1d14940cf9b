/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_loggops.c - files that go with a schedule of four ranks: interruptions by the operating system, or links that
 * messages share.  The first byte says which, and by whose rules; the second the costs of messages.  A file that is refused
 * has words and a place; a run with one that is taken ends, or says why not. */
#include "fuzz_trace.h"

#include "run/loggops/loggops.h"

#include <orrery/lab/compat.h>

enum { HEAD = 2, MOST_EVENTS = 2000 };

static const char schedule[] = "num_ranks 4\n"
                               "rank 0 {\n"
                               "a: calc 1000\n"
                               "b: send 4096b to 1 tag 1\n"
                               "c: send 100000b to 2 tag 2\n"
                               "d: recv 8b from 3 tag 3\n"
                               "b requires a\n"
                               "d requires b\n"
                               "}\n"
                               "rank 1 {\n"
                               "a: recv 4096b from 0 tag 1\n"
                               "b: calc 20000\n"
                               "c: send 70000b to 3 tag 4\n"
                               "b requires a\n"
                               "c requires b\n"
                               "}\n"
                               "rank 2 {\n"
                               "a: recv 100000b from 0 tag 2\n"
                               "b: send 1b to 3 tag 5 cpu 1\n"
                               "b requires a\n"
                               "}\n"
                               "rank 3 {\n"
                               "a: recv 70000b from 1 tag 4\n"
                               "b: recv 1b from 2 tag 5\n"
                               "c: send 8b to 0 tag 3\n"
                               "c requires a\n"
                               "c requires b\n"
                               "}\n";

static const orr_goal *get_schedule(void)
{
    static orr_goal *g;
    orr_error err;
    if (!g)
        REQUIRE(orr_goal_parse((orr_span){(const uint8_t *)schedule, sizeof schedule - 1},
                               "four.goal", NULL, &g, &err) == ORR_OK);
    return g;
}

static const struct orr_rules_loggops *rules_of(const char *name)
{
    const orr_compat *old = NULL;
    orr_error err;
    return name && orr_compat_find(ORR_RULES_LOGGOPS, name, &old, &err) == ORR_OK ? old->loggops
                                                                                  : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const rules[] = {NULL, "lgs2023", "atlahs", "lgs2023"};
    orr_error err = {0};
    lgs_sim *s;
    if (size < HEAD || size > 4096)
        return 0;
    const unsigned how = data[0], cost = data[1];
    const char *path = fuzz_file(0, data + HEAD, size - HEAD);
    lgs_options opt = lgs_defaults();
    opt.rules = rules_of(rules[how & 3]);
    if ((how & 3) == 3 && opt.rules)
        opt.simple_links = path;
    else
        opt.noise = path;
    opt.has_common_noise = how & 4;
    opt.noise_seed = how >> 3;
    opt.L = (uint64_t)(cost & 3) * 1000;
    opt.o = (uint64_t)(cost >> 2 & 3) * 700;
    opt.g = (uint64_t)(cost >> 4 & 3) * 500;
    opt.S = cost & 64 ? 4096 : 65535;
    opt.keeps_spans = cost & 128;
    opt.max_events = MOST_EVENTS;
    orr_code code = lgs_create(get_schedule(), &opt, &s, &err);
    if (code) {
        REQUIRE(code == ORR_EINPUT && err.message[0] && err.where.path[0]);
        return 0;
    }
    code = lgs_run(s, &err);
    REQUIRE(!code || ((code == ORR_EINPUT || code == ORR_ESTOP) && err.message[0]));
    for (uint32_t r = 0; !code && r < orr_goal_ranks(get_schedule()); r++)
        REQUIRE(lgs_finished_at(s, r) >= lgs_noise_of(s, r) || opt.rules);
    lgs_destroy(s);
    return 0;
}
