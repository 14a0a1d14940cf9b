/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_nccl_contexts.c - any bytes as a table of contexts for NCCL's calls.  What is refused has a place and words; a
 * context that is found is one that tags have room for, and a call has one wherever its communicator or the row for all
 * has. */
#include "fuzz_trace.h"

#include "sources/nccl/nccl_impl.h"

#include "base/text/text.h"

enum { MOST = 99999, CALLS = 8 };

static void look_up(const struct nccl_user_contexts *u, orr_str name)
{
    const uint32_t any = nccl_user_context_of(u, name, UINT32_MAX); /* no row has that call */
    REQUIRE(any == ORR__NONE || any <= MOST);
    for (uint32_t call = 0; call < CALLS; call++) {
        const uint32_t context = nccl_user_context_of(u, name, call);
        REQUIRE(context <= MOST || (context == ORR__NONE && any == ORR__NONE));
    }
}

/* Names of communicators are what begins a line. */
static void look_up_all(const struct nccl_user_contexts *u, orr_str text)
{
    for (size_t at = 0, n; at < text.len; at += n + 1) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        n = end ? (size_t)(end - text.ptr) - at : text.len - at;
        const char *comma = n ? memchr(text.ptr + at, ',', n) : NULL;
        look_up(u, (orr_str){text.ptr + at, comma ? (size_t)(comma - text.ptr) - at : n});
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nccl_user_contexts *u;
    orr_error err = {0};
    if (size > 1 << 12)
        return 0;
    const orr_code code =
        nccl_user_contexts_parse((orr_span){data, size}, "contexts", MOST, &u, &err);
    if (code)
        REQUIRE(code == ORR_EINPUT && err.message[0] && err.where.line);
    else
        look_up_all(u, (orr_str){(const char *)data, size});
    nccl_user_contexts_free(u);
    return 0;
}
