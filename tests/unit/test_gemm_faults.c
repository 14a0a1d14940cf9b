/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
/* test_gemm_faults.c - memory that runs out at every single place between shapes and files.
 *
 * As in test_faults.c: each job is run again and again with the first, the second, the third ...
 * request for memory failing, and must say so each time.  Sanitizers watch that nothing leaks. */
#include "check.h"

#include "compat/scale_sim/scale_sim.h"

#include <orrery/lab/gemm.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

static orr_error err;
static const char table[] = "name,type,m,n,k,batch,heads,seq_q,head_dim,strategy\n"
                            "a,gemm,64,32,16,,,,,MODEL\n"
                            "\"b\"\"b\",attention,,,,8,4,16,8,DATA\n"
                            "c,norm,64,8,,,,,,DATA\n";
static const char old_table[] = "Layer,m,n,k,strategy\na,64,32,16,MODEL\nb,8,8,8,DATA\n";
static const orr_systolic_array array = {.rows = 4,
                                         .columns = 4,
                                         .ifmap_words = 1024,
                                         .filter_words = 1024,
                                         .ofmap_words = 1024,
                                         .filter_offset = 10000000,
                                         .ofmap_offset = 20000000};

static orr_code read_table(const char *text, bool is_compat, orr_shapes **out)
{
    const orr_shapes_options opt = {.rules = is_compat ? &orr__gemm_v1 : NULL,
                                    .needs_policies = true};
    return orr_shapes_parse((orr_span){(const uint8_t *)text, strlen(text)}, "t.csv", &opt, out,
                            &err);
}

static orr_gemm_options options(bool is_compat)
{
    return (orr_gemm_options){.rules = is_compat ? &orr__gemm_v1 : NULL,
                              .policy = ORR_POLICY_HYBRID_CUSTOMIZED,
                              .npus = 4,
                              .hardware = is_compat ? NULL : orr_hardware_at(0),
                              .array = is_compat ? &array : NULL,
                              .repeat = 2};
}

/* ---- the jobs ---- */

static orr_code write_table(const orr_gemm *g)
{
    orr_layers *t;
    orr_code code = orr_gemm_table(g, &t, &err);
    if (code)
        return code;
    code = orr_layers_write(t, "out.txt", ORR_LAYERS_PLAIN, &err);
    orr_layers_free(t);
    return code;
}

static orr_code make_with(const orr_gemm_options *opt)
{
    const bool is_compat = opt->rules != NULL;
    orr_shapes *s;
    orr_gemm *g;
    orr_str text;
    orr_code code = read_table(is_compat ? old_table : table, is_compat, &s);
    if (code)
        return code;
    code = orr_gemm_create(s, opt, &g, &err);
    orr_shapes_free(s);
    if (code)
        return code;
    code = write_table(g);
    if (!code && is_compat)
        code = orr_gemm_write_intermediate(g, ".", "stem", &err);
    if (!code)
        code = orr_gemm_text(g, &text, &err);
    if (!code)
        code = orr_gemm_json(g, &text, &err);
    if (!code)
        code = orr_gemm_csv(g, &text, &err);
    orr_gemm_destroy(g);
    return code;
}

static orr_code make_ours(void)
{
    const orr_gemm_options opt = options(false);
    return make_with(&opt);
}

static orr_code make_on_chip(void)
{
    orr_gemm_options opt = options(false);
    opt.hardware = NULL;
    opt.chip = orr_chip_find("h100");
    opt.update = ORR_UPDATE_ADAM;
    return make_with(&opt);
}

static orr_code make_old(void)
{
    const orr_gemm_options opt = options(true);
    return make_with(&opt);
}

static orr_code make_sweep(void)
{
    const orr_gemm_options opt = options(false);
    orr_shapes *s;
    orr_gemm_sweep *w;
    orr_str text;
    orr_code code = read_table(table, false, &s);
    if (code)
        return code;
    code = orr_gemm_sweep_create(s, &opt, 4, 4, &w, &err);
    orr_shapes_free(s);
    if (code)
        return code;
    code = orr_gemm_sweep_text(w, true, &text, &err);
    if (!code)
        code = orr_gemm_sweep_json(w, &text, &err);
    orr_gemm_sweep_destroy(w);
    return code;
}

static orr_code read_hardware(void)
{
    static const char text[] = "{rows: 2, columns: 3, clock: 1GHz}";
    orr_hardware hw;
    return orr_hardware_parse((orr_span){(const uint8_t *)text, sizeof text - 1}, "chip.yml", &hw,
                              &err);
}

/* ---- */

static void fail_everywhere(orr_code (*job)(void))
{
    long n = 0;
    orr_code code;
    do {
        orr__fail_alloc_after(n++);
        code = job();
        const long left = orr__fail_alloc_after(-1);
        CHECK(code == (left < 0 ? ORR_ENOMEM : ORR_OK));
        CHECK(code == ORR_OK || err.code == ORR_ENOMEM);
    } while (code);
    CHECK(n > 1);
}

TEST(test_gemm_faults__shapes_to_reports)
{
    fail_everywhere(make_ours);
    fail_everywhere(make_on_chip);
}

TEST(test_gemm_faults__the_old_generator)
{
    fail_everywhere(make_old);
}

TEST(test_gemm_faults__a_sweep)
{
    fail_everywhere(make_sweep);
}

TEST(test_gemm_faults__a_hardware_file)
{
    fail_everywhere(read_hardware);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_gemm_faults__shapes_to_reports),
        RUN(test_gemm_faults__the_old_generator),
        RUN(test_gemm_faults__a_sweep),
        RUN(test_gemm_faults__a_hardware_file),
    };
    return RUN_ALL(tests);
}
