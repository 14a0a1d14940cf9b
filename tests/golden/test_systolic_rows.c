/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
/* test_systolic_rows.c - every layer that the two generations of SCALE-Sim were run on: all their
 * figures, to the last digit.
 *
 * tests/golden/systolic_rows.txt has the counts and cycles; averages follow from them.  The golden
 * data has every column as it was printed; it is gone through too when it is here. */
#include "golden.h"

#include "compat/scale_sim/scale_sim.h"

#include <orrery/lab/systolic.h>

enum { MOST_FIELDS = 64, LINE = 4096 };

static unsigned count, bad;

static void tell(bool is_good, const char *file, const char *name, const char *why)
{
    printf("%sok %u - %s %s\n", is_good ? "" : "not ", ++count, file, name);
    if (!is_good)
        printf("# %s\n", why);
    bad += !is_good;
}

/* ---- comparing ---- */

typedef struct judge {
    char **fields; /* of which the next is looked at */
    char *why;     /* the first that differs */
    size_t size;
} judge;

static void expect(judge *j, double got, const char *what)
{
    const double wanted = strtod(*j->fields++, NULL);
    if (got != wanted && !j->why[0])
        snprintf(j->why, j->size, "%s is %.17g, not %.17g", what, got, wanted);
}

static void expect_traffic(judge *j,
                           const orr_systolic_traffic *t,
                           bool with_peak,
                           const char *what)
{
    char name[80];
    snprintf(name, sizeof name, "first cycle of %s", what);
    expect(j, (double)t->first, name);
    snprintf(name, sizeof name, "last cycle of %s", what);
    expect(j, (double)t->last, name);
    expect(j, (double)t->words, what);
    if (with_peak)
        expect(j, t->peak, what);
}

static const char *const sram_names[] = {"sram ifmap", "sram filter", "sram ofmap"};
static const char *const dram_names[] = {"dram ifmap", "dram filter", "dram ofmap"};

static void expect_v1_spans(judge *j, const orr_systolic_result *r, bool with_peak)
{
    for (int i = 0; i < ORR_OPERANDS; i++)
        expect_traffic(j, &r->dram[i], with_peak, dram_names[i]);
    expect_traffic(j, &r->sram[ORR_OPERAND_OFMAP], with_peak, "sram write");
    expect_traffic(j, &r->sram_read, with_peak, "sram read");
}

static void expect_v2_spans(judge *j, const orr_systolic_result *r)
{
    for (int i = 0; i < ORR_OPERANDS; i++)
        expect_traffic(j, &r->sram[i], false, sram_names[i]);
    for (int i = 0; i < ORR_OPERANDS; i++)
        expect_traffic(j, &r->dram[i], false, dram_names[i]);
}

/* ---- layers ---- */

typedef struct row {
    const orr_rules_systolic *rules;
    orr_systolic_array array;
    orr_systolic_layer layer;
} row;

/* Columns from the array's height on: height width, three sizes, dataflow, six or seven of the
 * layer. */
static void take_array(char **f, row *out)
{
    out->array.rows = strtoull(f[0], NULL, 10);
    out->array.columns = strtoull(f[1], NULL, 10);
    out->array.ifmap_words = 1024 * strtoull(f[2], NULL, 10);
    out->array.filter_words = 1024 * strtoull(f[3], NULL, 10);
    out->array.ofmap_words = 1024 * strtoull(f[4], NULL, 10);
    out->array.filter_offset = 10000000;
    out->array.ofmap_offset = 20000000;
    out->array.dataflow = f[5][0] == 'o'   ? ORR_DATAFLOW_OS
                          : f[5][0] == 'w' ? ORR_DATAFLOW_WS
                                           : ORR_DATAFLOW_IS;
}

static void take_layer(char **f, row *out)
{
    uint64_t v[7];
    for (int i = 0; i < 7; i++)
        v[i] = strtoull(f[i], NULL, 10);
    out->layer = (orr_systolic_layer){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[6]};
}

static bool run_row(const row *r, orr_systolic_result *out, char *why, size_t size)
{
    orr_error err;
    uint64_t cycles;
    if (orr_systolic_run(&r->array, &r->layer, r->rules, out, &err) ||
        orr_systolic_cycles(&r->array, &r->layer, r->rules, &cycles, &err)) {
        snprintf(why, size, "%s", err.message);
        return false;
    }
    if (r->array.bandwidth == 0 && cycles != out->cycles)
        snprintf(why, size, "the closed form of the cycles differs");
    return true;
}

static int split(char *line, const char *at, char **fields)
{
    int n = 0;
    for (char *p = line, *next; p && n < MOST_FIELDS; p = next) {
        next = strpbrk(p, at);
        if (next)
            *next++ = '\0';
        if (*p)
            fields[n++] = p;
    }
    return n;
}

/* ---- our table ---- */

static void check_ours(char **f)
{
    static const orr_rules_systolic *const all_rules[] = {NULL, &orr__scale_sim_v1,
                                                          &orr__scale_sim_v2};
    char why[400] = "";
    row r = {.rules = all_rules[strtoul(f[1], NULL, 10)]};
    orr_systolic_result x;
    judge j = {f + 17, why, sizeof why};
    take_array(f + 2, &r);
    r.array.bandwidth = strtod(f[8], NULL);
    take_layer(f + 9, &r);
    if (run_row(&r, &x, why, sizeof why)) {
        expect(&j, (double)x.cycles, "cycles");
        expect(&j, r.rules == &orr__scale_sim_v1 ? x.utilisation : (double)x.stalls,
               "utilisation or stalls");
        if (r.rules == &orr__scale_sim_v1)
            expect_v1_spans(&j, &x, true);
        else
            expect_v2_spans(&j, &x);
    }
    tell(!why[0],
         r.rules == &orr__scale_sim_v1 ? "v1"
         : r.array.bandwidth > 0       ? "v2 USER"
                                       : "v2 CALC",
         f[0], why);
}

/* ---- the golden data ---- */

static void check_v1(char **f)
{
    char why[400] = "";
    row r = {.rules = &orr__scale_sim_v1};
    orr_systolic_result x;
    judge j = {f + 15, why, sizeof why};
    take_array(f + 1, &r);
    take_layer(f + 8, &r);
    if (run_row(&r, &x, why, sizeof why)) {
        expect(&j, (double)x.cycles, "cycles");
        expect(&j, x.utilisation, "utilisation");
        for (int i = 0; i < ORR_OPERANDS; i++)
            expect(&j, x.dram[i].average, "average to memory");
        expect(&j, x.sram_read.average, "average of sram reads");
        expect(&j, x.sram[ORR_OPERAND_OFMAP].average, "average of sram writes");
        for (int i = 0; i < ORR_OPERANDS; i++)
            expect(&j, x.dram[i].peak, "peak to memory");
        expect(&j, x.sram_read.peak, "peak of sram reads");
        expect(&j, x.sram[ORR_OPERAND_OFMAP].peak, "peak of sram writes");
        expect_v1_spans(&j, &x, false);
    }
    tell(!why[0], "all columns, v1", f[0], why);
}

static void check_v2(char **f, bool has_bandwidth)
{
    char why[400] = "";
    row r = {.rules = &orr__scale_sim_v2};
    orr_systolic_result x;
    judge j = {f + 15 + has_bandwidth, why, sizeof why};
    take_array(f + 1, &r);
    take_layer(f + 8, &r);
    r.array.bandwidth = has_bandwidth ? strtod(f[15], NULL) : 0;
    if (run_row(&r, &x, why, sizeof why)) {
        expect(&j, (double)x.cycles, "cycles");
        expect(&j, (double)x.stalls, "stalls");
        expect(&j, x.utilisation, "overall utilisation");
        expect(&j, x.mapping, "mapping efficiency");
        expect(&j, x.busy, "compute utilisation");
        for (int i = 0; i < ORR_OPERANDS; i++)
            expect(&j, x.sram[i].average, "average at the buffers");
        for (int i = 0; i < ORR_OPERANDS; i++)
            expect(&j, x.dram[i].average, "average to memory");
        expect_v2_spans(&j, &x);
    }
    tell(!why[0], has_bandwidth ? "all columns, v2 USER" : "all columns, v2 CALC", f[0], why);
}

static void check_v2_calc(char **f)
{
    check_v2(f, false);
}

static void check_v2_user(char **f)
{
    check_v2(f, true);
}

/* ---- files ---- */

/* Each line that is data; 0: the file is not here. */
static unsigned each_line(const char *path, const char *at, bool has_header, void (*check)(char **))
{
    char line[LINE], *fields[MOST_FIELDS];
    FILE *in = fopen(path, "r");
    unsigned lines = 0;
    bool is_header = has_header;
    while (in && fgets(line, sizeof line, in)) {
        if (line[0] != '#' && !is_header && split(line, at, fields) > 16) {
            check(fields);
            lines++;
        }
        is_header = false;
    }
    if (in)
        fclose(in);
    return lines;
}

static void each_golden(const char *name, unsigned expected, void (*check)(char **))
{
    char path[4096], part[100];
    snprintf(part, sizeof part, "scale-sim/%s", name);
    golden_path(path, sizeof path, part);
    const unsigned lines = each_line(path, ",\r\n", true, check);
    tell(lines == expected, name, "has all its lines", "lines are missing or more");
}

int main(void)
{
    const char *root = getenv("ORR_ROOT");
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/systolic_rows.txt", root ? root : ".");
    tell(each_line(path, " \n", false, check_ours) == 367 + 54 + 186 + 45, "systolic_rows.txt",
         "has all its lines", "lines are missing or more");
    each_golden("v1_layers.csv", 367, check_v1);
    each_golden("v1_resnet50_google_os.csv", 54, check_v1);
    each_golden("v2_layers_calc.csv", 186, check_v2_calc);
    each_golden("v2_layers_user.csv", 45, check_v2_user);
    printf("1..%u\n", count);
    return bad != 0;
}
