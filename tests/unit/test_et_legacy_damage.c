/* SPDX-License-Identifier: Apache-2.0 */
/* room: et_legacy */
/* test_et_legacy_damage.c - damaged files of the old generations of .et: named with their byte, or
 * passed over. */
#include "legacy_make.h"

/* ---- damage ---- */

typedef struct broken {
    orr_schema schema;
    const char *bytes;
    uint64_t byte;
    const char *words;
} broken;

static const broken damages[] = {
    {ORR_SCHEMA_EG, "", 0, "the file is empty"},
    {ORR_SCHEMA_EG, "80", 0, "ends inside a record's length"},
    {ORR_SCHEMA_EG, "05 08 00", 0, "a record of 5 bytes is announced, but only 2 are left"},
    {ORR_SCHEMA_EG, "00", 0, "an empty record"},
    {ORR_SCHEMA_0_0_3, "00 00", 1, "an empty record"},
    {ORR_SCHEMA_EG, "02 12 00", 1, "node 0 of the file: a node without an id"},
    {ORR_SCHEMA_EG, "02 08 00", 1, "a node without a name"},
    {ORR_SCHEMA_0_0_2, "04 08 00 12 00", 1, "a node without a type"},
    {ORR_SCHEMA_EG, "06 08 00 12 00 18 07", 5, "the node type is not one"},
    {ORR_SCHEMA_0_0_3, "06 08 00 12 00 18 08", 5, "the node type is not one"},
    {ORR_SCHEMA_EG, "05 08 00 12 01 ff", 5, "not valid UTF-8"},
    {ORR_SCHEMA_EG, "07 08 00 12 00 a8 01 00", 5, "a field that this generation does not know"},
    {ORR_SCHEMA_0_0_3, "08 08 00 12 00 18 00 62 00", 7,
     "a field that this generation does not know"},
    {ORR_SCHEMA_EG, "06 08 00 12 00 28 03", 5, "the memory type is not one"},
    {ORR_SCHEMA_EG, "06 08 00 12 00 68 05", 5, "the collective is not one"},
    {ORR_SCHEMA_EG, "0a 08 00 12 00 78 80 80 80 80 10", 5, "does not fit in 32 bits"},
    {ORR_SCHEMA_EG, "06 08 00 12 00 3a 00", 5, "a number field does not hold a number"},
    {ORR_SCHEMA_EG, "07 08 00 12 00 72 01 80", 7, "ends inside a number"},
    {ORR_SCHEMA_0_0_2, "08 08 00 12 00 18 00 28 00", 7, "a text field does not hold text"},
    {ORR_SCHEMA_0_0_2, "08 08 00 12 00 18 00 58 00", 7, "an attribute is not a message"},
    {ORR_SCHEMA_0_0_2, "08 08 00 12 00 18 00 5a 00", 9, "an attribute without a name"},
    {ORR_SCHEMA_0_0_2, "0a 08 00 12 00 18 00 5a 02 0a 00", 9, "an attribute without a type"},
    {ORR_SCHEMA_0_0_2, "0c 08 00 12 00 18 00 5a 04 0a 00 10 06", 11,
     "an attribute's type is not one"},
    {ORR_SCHEMA_0_0_2, "0e 08 00 12 00 18 00 5a 06 0a 00 10 01 20 00", 13, "wrong wire type"},
    {ORR_SCHEMA_0_0_2, "0e 08 00 12 00 18 00 5a 06 0a 00 10 01 50 00", 13,
     "an attribute has a field"},
    {ORR_SCHEMA_0_0_2, "10 08 00 12 00 18 00 5a 08 0a 00 10 01 28 00 40 00", 15,
     "values of two types"},
    {ORR_SCHEMA_0_0_2, "0f 08 00 12 00 18 00 5a 07 0a 00 10 02 32 01 ff", 15, "not valid UTF-8"},
    {ORR_SCHEMA_0_0_3U, "0f 08 00 12 00 18 00 5a 07 0a 00 10 09 6a 01 ff", 15, "not valid UTF-8"},
    {ORR_SCHEMA_0_0_2, "17 08 00 12 00 18 00 5a 0f 0a 09 'comm_type' 10 01 28 04", 9,
     "comm_type is not a collective"},
    {ORR_SCHEMA_0_0_3, "04 0a 02 0a 00", 3, "metadata: an attribute without a type"},
    {ORR_SCHEMA_2023_10, "05 0a 03 0a 01 ff", 5, "metadata: a text is not valid UTF-8"},
    {ORR_SCHEMA_2023_10, "05 0a 00 12 01 'v'", 3,
     "metadata: a field that this generation does not know"},
    {ORR_SCHEMA_2023_10, "02 18 0b", 1, "node 0 of the file: the node type"},
};

TEST(test_et_legacy_damage__damage_is_named_with_its_byte)
{
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const broken *d = &damages[i];
        const orr_read_options opt = {.size = sizeof opt, .schema = d->schema};
        orr_trace *t;
        orr_buf b = {0};
        add_bytes(&b, d->bytes);
        const orr_code code = orr_trace_parse(span_of(&b), "f.et", &opt, &t, &err);
        if (code != ORR_EINPUT || err.where.byte != d->byte || !strstr(err.message, d->words))
            check_fail(__FILE__, __LINE__, "case %zu: code %d, byte %" PRIu64 ": %s", i, (int)code,
                       err.where.byte, err.message);
        CHECK(t == NULL);
        orr_buf_fini(&b);
    }
}

TEST(test_et_legacy_damage__every_cut_is_an_error_or_a_shorter_trace)
{
    for (size_t s = 0; s < SAMPLES; s++) {
        orr_buf b = {0};
        samples[s].make(&b);
        for (size_t len = 0; len <= b.len; len++) {
            const orr_read_options strict = {.size = sizeof strict, .schema = samples[s].schema};
            const orr_read_options feeder = {
                .size = sizeof feeder, .schema = samples[s].schema, .leniency = ORR_AS_FEEDER_V2};
            orr_trace *t;
            const orr_code code =
                orr_trace_parse((orr_span){b.ptr, len}, "f.et", &strict, &t, &err);
            CHECK(code == ORR_OK || (code == ORR_EINPUT && err.where.byte <= len));
            orr_trace_destroy(t);
            CHECK_OK(orr_trace_parse((orr_span){b.ptr, len}, "f.et", &feeder, &t, &err), &err);
            orr_trace_destroy(t);
        }
        orr_buf_fini(&b);
    }
}

static void try_both_ways(orr_span bytes, const orr_read_options *opt, orr_schema out)
{
    orr_trace *t;
    if (orr_trace_parse(bytes, "f.et", opt, &t, &err))
        return;
    const orr_code code = write_as(t, out, 0);
    CHECK(code == ORR_OK || code == ORR_EUSAGE);
    orr_trace_destroy(t);
}

/* Each byte of each sample takes a few other values, and what can still be read is written in some
 * way. */
TEST(test_et_legacy_damage__no_byte_does_harm)
{
    static const uint8_t others[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x5a};
    for (size_t s = 0; s < SAMPLES; s++) {
        orr_buf b = {0};
        samples[s].make(&b);
        for (size_t i = 0; i < b.len; i++) {
            const uint8_t was = b.ptr[i];
            for (size_t k = 0; k < sizeof others; k++) {
                const orr_read_options opt = {
                    .size = sizeof opt,
                    .schema = k & 1 ? ORR_SCHEMA_AUTO : samples[s].schema,
                    .leniency = k & 2 ? ORR_KEEP_UNKNOWN : ORR_STRICT,
                };
                b.ptr[i] = others[k];
                try_both_ways(span_of(&b), &opt, (orr_schema)(ORR_SCHEMA_CURRENT + (i + k) % 6));
            }
            b.ptr[i] = was;
        }
        orr_buf_fini(&b);
    }
    unlink(scratch());
}

TEST(test_et_legacy_damage__lenient_skips_what_it_does_not_know)
{
    orr_buf b = {0}, expected = {0};
    add_record(&b, "08 00 12 01 'n' 18 04 38 05 5a 09 0a 01 'a' 10 02 30 01 78 01 a8 01 01");
    add_record(&expected, "08 00 12 01 'n' 18 04 5a 07 0a 01 'a' 10 02 30 01");
    orr_trace *t = parse_as(&b, ORR_SCHEMA_0_0_3, ORR_KEEP_UNKNOWN);
    check_converts(t, ORR_SCHEMA_0_0_3, &expected);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
    orr_buf_fini(&expected);
}

/* Numbers without a name stay without one, and go back to where they came from, not elsewhere. */
TEST(test_et_legacy_damage__lenient_keeps_unknown_numbers)
{
    orr_buf b = {0};
    add_record(&b, "08 00 12 00 18 07 28 09 68 09");
    orr_trace *t = parse_as(&b, ORR_SCHEMA_EG, ORR_KEEP_UNKNOWN);
    CHECK(orr_node_type_name(orr_trace_columns(t)->type[0]) == NULL);
    CHECK(orr_collective_name((uint32_t)orr_trace_columns(t)->comm_type[0]) == NULL);
    check_converts(t, ORR_SCHEMA_EG, &b);
    CHECK_CODE(write_as(t, ORR_SCHEMA_0_0_2, 0), ORR_EUSAGE, &err);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

TEST(test_et_legacy_damage__metadata_can_be_demanded)
{
    const orr_read_options opt = {
        .size = sizeof opt, .schema = ORR_SCHEMA_0_0_3, .first_is_metadata = true};
    orr_trace *t;
    orr_buf b = {0};
    add_record(&b, "08 00 12 00 18 04");
    CHECK_CODE(orr_trace_parse(span_of(&b), "f.et", &opt, &t, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "f.et: byte 0: the first record is not metadata");
    orr_buf_fini(&b);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_et_legacy_damage__damage_is_named_with_its_byte),
        RUN(test_et_legacy_damage__every_cut_is_an_error_or_a_shorter_trace),
        RUN(test_et_legacy_damage__no_byte_does_harm),
        RUN(test_et_legacy_damage__lenient_skips_what_it_does_not_know),
        RUN(test_et_legacy_damage__lenient_keeps_unknown_numbers),
        RUN(test_et_legacy_damage__metadata_can_be_demanded),
    };
    return RUN_ALL(tests);
}
