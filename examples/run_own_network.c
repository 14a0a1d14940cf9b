/* SPDX-License-Identifier: Apache-2.0 */
/* run_own_network.c - load traces, run them on a custom network, print when each rank finishes.
 *
 *     run_own_network TRACES        a prefix P of P.0.et, P.1.et, ..., a directory or a .orr
 *
 * Without TRACES it makes some first.  cc run_own_network.c $(pkg-config --cflags --libs orrery) */
#include <orrery/lab/lab.h>
#include <orrery/orrery.h>

#include <inttypes.h>
#include <stdio.h>

static int fail(const orr_error *err)
{
    char text[600];
    fprintf(stderr, "%s\n", orr_error_text(err, text, sizeof text));
    return 3;
}

/* The network: 500 ns and 100 bytes per ns, without contention. */
static orr_code my_send(void *net, orr_net *n, const orr_message *m, orr_error *err)
{
    (void)net, (void)err;
    orr_net_deliver_after(n, 500000 + 10 * (orr_ps)m->size, m->token);
    return ORR_OK;
}

static const orr_net_ops my_network = {.name = "mine", .help = "a pipe", .send = my_send};

/* An all-reduce of four ranks, saved to a file, as after a capture. */
static orr_code make_traces(const char *path, orr_error *err)
{
    const orr_pattern *one = orr_pattern_find("all_reduce");
    orr_gen_options gen = one->defaults;
    orr_set *set;
    gen.ranks = 4;
    orr_code code = orr_pattern_set(one, &gen, &set, err);
    if (code)
        return code;
    code = orr_set_save(set, path, NULL, err);
    orr_set_close(set);
    return code;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "one.orr";
    orr_error err;
    orr_set *set;
    orr_run *run;
    if ((argc < 2 && make_traces(path, &err)) || orr_set_open(path, NULL, &set, &err))
        return fail(&err);
    const orr_run_config config = {.size = sizeof config, .set = set, .own_network = &my_network};
    if (orr_run_create(&config, &run, &err))
        return fail(&err);
    const orr_code code = orr_run_to_end(run, &err);
    for (size_t i = 0; code && orr_run_stall_line(run, i); i++) /* who waits for whom */
        fprintf(stderr, "%s\n", orr_run_stall_line(run, i));
    for (uint32_t r = 0; !code && r < orr_run_ranks(run); r++)
        printf("rank %" PRIu32 ": %" PRId64 " ps\n", r, orr_run_rank_at(run, r)->finished_at);
    orr_run_destroy(run);
    orr_set_close(set);
    return code ? fail(&err) : 0;
}
