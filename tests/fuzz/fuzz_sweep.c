/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sweep.c - any bytes as the specification of a sweep, and behind a byte of 0 as what its last
 * command printed.  What is refused has words; what is taken has points, each has a command line,
 * and figures are one JSON object. */
#include "base/formats/json.h"
#include "sweep/spec.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_POINTS = 1000 }; /* ten million of them, as the library takes, are seconds */

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Two commands; names of up to three letters are options, "flag" is a flag, "arg" an argument. */
static orr_sweep_form find(void *context, const char *command, const char **name, uint32_t *place)
{
    (void)context;
    *place = 0;
    if (strcmp(command, "make") != 0 && strcmp(command, "run") != 0)
        return ORR_SWEEP_NOTHING;
    if (!name || strlen(*name) < 3)
        return ORR_SWEEP_OPTION;
    return strcmp(*name, "flag") == 0  ? ORR_SWEEP_FLAG
           : strcmp(*name, "arg") == 0 ? ORR_SWEEP_ARGUMENT
                                       : ORR_SWEEP_NOTHING;
}

static const char *nearest(void *context, const char *command, const char *typed)
{
    (void)context, (void)typed;
    return command ? "tp" : "make";
}

static void make_figures(const orr_sweep *s, orr_span said)
{
    orr_buf json[SWP_MOST_STEPS] = {0}, flat = {0};
    orr_error err;
    orr_json *j;
    orr_json_value root;
    orr_buf_add(&json[s->step_count - 1], said.ptr, said.len);
    if (swp_figures_flatten(s, json, &flat, &err)) {
        require(err.message[0]);
    } else {
        require(orr_json_open((orr_span){flat.ptr, flat.len}, "figures", &j, &err) == ORR_OK);
        require(orr_json_only(j, &root, &err) == ORR_OK);
        require(orr_json_type_of(root) == ORR_JSON_OBJECT);
        orr_json_close(j);
    }
    orr_buf_fini(&json[s->step_count - 1]);
    orr_buf_fini(&flat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_sweep_hooks hooks = {.program = "fuzz", .find = find, .nearest = nearest};
    orr_sweep *s;
    orr_error err;
    char line[4096];
    if (size > 1024)
        return 0;
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    const size_t length = end ? (size_t)(end - data) : size;
    if (swp_read((orr_span){data, length}, "sweep.yaml", &hooks, MOST_POINTS, &s, &err)) {
        require(err.message[0] && !s);
        return 0;
    }
    const size_t n = orr_sweep_count(s);
    require(n > 0 && n <= MOST_POINTS);
    for (size_t i = 0; i < n && i < 8; i++)
        require(orr_sweep_line(s, i, line, sizeof line, &err) == ORR_OK && line[0]);
    if (end)
        make_figures(s, (orr_span){end + 1, size - length - 1});
    orr_sweep_close(s);
    return 0;
}
