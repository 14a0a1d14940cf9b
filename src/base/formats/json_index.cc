/* SPDX-License-Identifier: Apache-2.0 */
/* json_index.cc - the token index, by simdjson's first stage.
 *
 * Why only the first stage: it finds tokens and checks UTF-8 at several GB/s and needs 4 bytes per
 * byte of the piece it looks at.  What the library builds on top (a tape, or an iterator) keeps no
 * source offsets or needs the index of the whole file; docs/design/json.md has the figures. No
 * exceptions leave this file: allocation is nothrow, and the library reports by code.  But its
 * first look for vector instructions makes short strings where it may not throw: a process that has
 * no memory even for those ends there (tests/trust/test_faults knows). */
extern "C" {
#include "json_index.h"
}

#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <cstring>
#include <memory>
#include <new>

struct orr__json_index {
    std::unique_ptr<simdjson::internal::dom_parser_implementation> stage;
    std::unique_ptr<uint8_t[]> padded; /* or null: the stage stays inside the piece by itself */
};

/* simdjson's fallback for machines without vector instructions reads a little past the end; it gets
 * a padded copy of each piece. */
static bool reads_beyond()
{
    return simdjson::get_active_implementation()->name() == "fallback";
}

orr__json_index *orr__json_index_create(size_t room)
{
    std::unique_ptr<orr__json_index> ix(new (std::nothrow) orr__json_index);
    if (!ix)
        return nullptr;
    const auto failed =
        simdjson::get_active_implementation()->create_dom_parser_implementation(room, 1, ix->stage);
    if (failed || !ix->stage)
        return nullptr;
    if (reads_beyond()) {
        ix->padded.reset(new (std::nothrow) uint8_t[room + simdjson::SIMDJSON_PADDING]);
        if (!ix->padded)
            return nullptr;
    }
    return ix.release();
}

void orr__json_index_destroy(orr__json_index *ix)
{
    delete ix;
}

orr__json_found orr__json_index_run(orr__json_index *ix,
                                    orr_span piece,
                                    const uint32_t **out,
                                    size_t *count_out)
{
    auto &stage = *ix->stage;
    *count_out = 0;
    *out = stage.structural_indexes.get();
    if (piece.len == 0)
        return ORR__JSON_TOKENS;
    const uint8_t *from = piece.ptr;
    if (ix->padded) {
        memcpy(ix->padded.get(), piece.ptr, piece.len);
        memset(ix->padded.get() + piece.len, ' ', simdjson::SIMDJSON_PADDING);
        from = ix->padded.get();
    }
    switch (stage.stage1(from, piece.len, simdjson::stage1_mode::regular)) {
    case simdjson::SUCCESS:
        *count_out = stage.n_structural_indexes;
        return ORR__JSON_TOKENS;
    case simdjson::EMPTY: /* white space only */
        return ORR__JSON_TOKENS;
    case simdjson::UNCLOSED_STRING:
        return ORR__JSON_IN_STRING;
    case simdjson::UNESCAPED_CHARS:
        return ORR__JSON_CONTROL;
    case simdjson::UTF8_ERROR:
        return ORR__JSON_NOT_UTF8;
    default:
        return ORR__JSON_TROUBLE;
    }
}
