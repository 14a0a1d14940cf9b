/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/formats/json_index.h"
#include "base/io/late_library.h"
#include "base/late_names.h"
#include "base/rng.h"

enum { ROOM = 192 };

/* What decides where tokens are, and what makes a text invalid.  The form feed is not among them:
 * simdjson calls it a token of its own, which no message shows. */
static const char *const parts[] = {"{",
                                    "}",
                                    "[",
                                    "]",
                                    ":",
                                    ",",
                                    "\"",
                                    "\"",
                                    "\"",
                                    "\\",
                                    "\\",
                                    " ",
                                    "\n",
                                    "a",
                                    "1",
                                    "-",
                                    ".",
                                    "\t",
                                    "\r",
                                    "é",
                                    "\xE2\x82\xAC",
                                    "\xF0\x9F\x98\x80",
                                    "\x01",
                                    "\xFF",
                                    "\xC3",
                                    "\xE2\x82"};

static size_t draw_text(orr_rng *r, uint8_t *text)
{
    const size_t count = orr_rng_below(r, ROOM / 4);
    /* Most texts without the last four, which are invalid wherever they stand. */
    const size_t kinds = sizeof parts / sizeof *parts - (orr_rng_below(r, 4) ? 4 : 0);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const char *part = parts[orr_rng_below(r, kinds)];
        memcpy(text + n, part, strlen(part));
        n += strlen(part);
    }
    return n;
}

TEST(test_json_index__small_and_large_texts_are_indexed_alike)
{
    orr__json_index *small = orr__json_index_create(ROOM, false);
    orr__json_index *large = orr__json_index_create(ROOM, true);
    CHECK(small && large);
    size_t seen[ORR__JSON_TROUBLE + 1] = {0};
    orr_rng r;
    orr_rng_init(&r, 1, 18);
    for (int i = 0; i < 200000; i++) {
        uint8_t text[ROOM];
        const orr_span piece = {.ptr = text, .len = draw_text(&r, text)};
        const uint32_t *scanned, *indexed;
        size_t n, want;
        const orr__json_found found = orr__json_index_run(small, piece, &scanned, &n);
        CHECK_EQ(found, orr__json_index_run(large, piece, &indexed, &want));
        seen[found]++;
        if (found != ORR__JSON_TOKENS)
            continue;
        CHECK_EQ_U(n, want);
        CHECK(n == 0 || memcmp(scanned, indexed, n * sizeof *scanned) == 0);
    }
    for (int i = 0; i < ORR__JSON_TROUBLE; i++)
        CHECK(seen[i] > 1000);
    orr__json_index_destroy(small);
    orr__json_index_destroy(large);
}

/* A name that the library has lost would make every file slow, without a word. */
TEST(test_json_index__simdjson_can_be_loaded)
{
    static const char *const names[] = {"_ZN8simdjson25get_active_implementationEv"};
    void *call = NULL;
    const char *why;
    CHECK(orr_late_load(ORR_LIBSIMDJSON, names, 1, &call, &why) && call);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_json_index__small_and_large_texts_are_indexed_alike),
        RUN(test_json_index__simdjson_can_be_loaded),
    };
    return RUN_ALL(tests);
}
