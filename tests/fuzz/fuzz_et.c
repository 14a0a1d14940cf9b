/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_et.c - any bytes into the reader of .et files, with every leniency and as every generation
 * of the format.
 *
 * What is read must be as trace.h promises, can be fed, summed up and checked, and reads back when
 * written; what is read strictly as the current schema is written as the very same bytes. */
#include "fuzz_trace.h"

#include "trace/trace_impl.h"

static void check_identical(const orr_trace *t, orr_span in)
{
    fuzz_sink *sink = fuzz_writable();
    orr_error err;
    REQUIRE(orr_trace_write(t, sink->path, NULL, &err) == ORR_OK);
    const orr_span out = fuzz_take(sink);
    REQUIRE(out.len == in.len && (in.len == 0 || memcmp(out.ptr, in.ptr, in.len) == 0));
}

static void write_all(const orr_trace *t, orr_leniency leniency)
{
    fuzz_write_back(
        t, &(orr_write_options){.size = sizeof(orr_write_options), .schema = ORR_SCHEMA_CURRENT},
        leniency);
    fuzz_write_back(t,
                    &(orr_write_options){.size = sizeof(orr_write_options),
                                         .schema = ORR_SCHEMA_CURRENT,
                                         .id_shift = 12345678901},
                    leniency);
    /* Fields of a wrong type are lost on the way to old generations, and may leave a record
     * empty. */
    for (int schema = ORR_SCHEMA_2023_10; leniency == ORR_STRICT && schema < ORR_SCHEMA_COUNT;
         schema++)
        fuzz_write_back(
            t,
            &(orr_write_options){.size = sizeof(orr_write_options), .schema = (orr_schema)schema},
            leniency);
}

static void try_reading(orr_span in, orr_schema schema, orr_leniency leniency)
{
    const orr_read_options opt = {.size = sizeof opt,
                                  .schema = schema,
                                  .leniency = leniency,
                                  .first_is_metadata = leniency == ORR_AS_JSONIZER};
    orr_trace *t;
    orr_error err;
    const orr_code code = orr_trace_parse(in, "fuzz.et", &opt, &t, &err);
    if (code != ORR_OK) {
        REQUIRE(code == ORR_EINPUT && !t && err.message[0]);
        REQUIRE(err.where.byte == ORR_NO_BYTE || err.where.byte <= in.len);
        return;
    }
    fuzz_look_at(t, in.len);
    if (leniency == ORR_STRICT && orr_trace_schema(t) == ORR_SCHEMA_CURRENT && !t->is_transcoded &&
        in.len <= FUZZ_WRITE_MAX)
        check_identical(t, in);
    if (schema != ORR_SCHEMA_AUTO) {
        orr_trace_destroy(t);
        return;
    }
    fuzz_feed(t);
    if (in.len <= FUZZ_WRITE_MAX && leniency <= ORR_KEEP_UNKNOWN)
        write_all(t, leniency);
    fuzz_sum_up(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_span in = {data, size};
    const unsigned schemas = ORR_SCHEMA_COUNT - ORR_SCHEMA_AUTO,
                   ways = schemas * (ORR_AS_FEEDER_V2 - ORR_STRICT + 1);
    try_reading(in, ORR_SCHEMA_AUTO, ORR_STRICT);
    FUZZ_WAYS(way, ways, data, size)
    try_reading(in, (orr_schema)(ORR_SCHEMA_AUTO + way % schemas),
                (orr_leniency)(ORR_STRICT + way / schemas));
    if (size % 4 == 0)
        fuzz_feed_window(data, size);
    return 0;
}
