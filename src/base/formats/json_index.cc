/* SPDX-License-Identifier: Apache-2.0 */
/* json_index.cc - the token index: byte by byte for small texts, by simdjson's first stage for the
 * rest.
 *
 * Why only the first stage: it finds tokens and checks UTF-8 at several GB/s and needs 4 bytes per
 * byte of the piece it looks at.  What the library builds on top (a tape, or an iterator) keeps no
 * source offsets or needs the index of the whole file; docs/design/json.md has the figures.
 *
 * Why not for all: most commands read a few configuration files, and the library with the C++
 * library under it takes a megabyte and more time to load than those files take to scan.  So it is
 * loaded with the first piece that is large enough; where it is missing, or has no vector code for
 * this processor, the scan serves every size.  So it does in builds without optimization, which
 * keep functions of the header that nobody calls but that need the library when linked.  Both
 * answer the same (tests/unit/test_json_index.c), so a message never depends on which of them read
 * the file.
 *
 * No exceptions leave this file: allocation is nothrow, and the library reports by code.  But its
 * first look for vector instructions makes short strings where it may not throw: a process that has
 * no memory even for those ends there (tests/trust/test_faults knows). */
extern "C" {
#include "json_index.h"

#include "base/io/late_library.h"
#include "base/late_names.h"
#include "base/text/text.h"
}

#ifdef __OPTIMIZE__
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>
#endif

#include <memory>
#include <new>

struct orr__json_index {
#ifdef __OPTIMIZE__
    std::unique_ptr<simdjson::internal::dom_parser_implementation>
        stage; /* or, where it is null, */
#endif
    std::unique_ptr<uint32_t[]> tokens; /* the room of the scan */
};

namespace
{

#ifdef __OPTIMIZE__
/* The library's one function that is not inline, by its mangled name.  Null: scan instead.  Its
 * fallback for processors without vector code is refused: it reads beyond the piece. */
const simdjson::implementation *load_library()
{
    static const char *const names[] = {"_ZN8simdjson25get_active_implementationEv"};
    decltype(simdjson::get_active_implementation) *active;
    const char *why;
    if (!orr_late_load(ORR_LIBSIMDJSON, names, 1, &active, &why))
        return nullptr;
    const simdjson::implementation *const found = active();
    return found->name() == "fallback" ? nullptr : found;
}

const simdjson::implementation *library()
{
    static const simdjson::implementation *const loaded = load_library();
    return loaded;
}

orr__json_found run_stage(simdjson::internal::dom_parser_implementation &stage,
                          orr_span piece,
                          const uint32_t **out,
                          size_t *count_out)
{
    *count_out = 0;
    *out = stage.structural_indexes.get();
    if (piece.len == 0)
        return ORR__JSON_TOKENS;
    switch (stage.stage1(piece.ptr, piece.len, simdjson::stage1_mode::regular)) {
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
#endif

/* What simdjson's first stage does, one byte at a time; see there for why a quote after a
 * backslash opens no string, and one after a letter is no token: what follows is invalid either
 * way, and both must find the same. */
orr__json_found scan(orr_span piece, uint32_t *tokens, size_t *count_out)
{
    size_t count = 0, valid_to = 0;
    bool in_string = false, escaped = false, in_scalar = false;
    bool has_control = false, is_utf8 = true;
    for (size_t i = 0; i < piece.len; i++) {
        const uint8_t c = piece.ptr[i];
        const bool quote = c == '"' && !escaped;
        const bool alone = c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}';
        const bool white = c == ' ' || c == '\n' || c == '\r' || c == '\t';
        if (c >= 0x80 && i >= valid_to) {
            const size_t n = orr_utf8_length(piece.ptr + i, piece.len - i);
            is_utf8 = is_utf8 && n != 0;
            valid_to = i + n;
        }
        if (in_string) {
            has_control = has_control || c < 0x20;
            in_string = !quote;
        } else {
            if (alone || (!white && !in_scalar))
                tokens[count++] = static_cast<uint32_t>(i);
            in_string = quote;
        }
        in_scalar = !alone && !white && !quote;
        escaped = c == '\\' && !escaped;
    }
    *count_out = count;
    if (in_string)
        return ORR__JSON_IN_STRING;
    if (has_control)
        return ORR__JSON_CONTROL;
    return is_utf8 ? ORR__JSON_TOKENS : ORR__JSON_NOT_UTF8;
}

} // namespace

orr__json_index *orr__json_index_create(size_t room, bool is_large)
{
    std::unique_ptr<orr__json_index> ix(new (std::nothrow) orr__json_index);
    if (!ix)
        return nullptr;
#ifdef __OPTIMIZE__
    if (is_large && library()) {
        const auto failed = library()->create_dom_parser_implementation(room, 1, ix->stage);
        return failed || !ix->stage ? nullptr : ix.release();
    }
#else
    static_cast<void>(is_large);
#endif
    ix->tokens.reset(new (std::nothrow) uint32_t[room]);
    return ix->tokens ? ix.release() : nullptr;
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
#ifdef __OPTIMIZE__
    if (ix->stage)
        return run_stage(*ix->stage, piece, out, count_out);
#endif
    *out = ix->tokens.get();
    return scan(piece, ix->tokens.get(), count_out);
}
