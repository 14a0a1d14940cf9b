/* SPDX-License-Identifier: Apache-2.0 */
/* scalesim_impl.h - what the files of scalesim.h share. */
#ifndef ORR_MODELS_SCALESIM_IMPL_H
#define ORR_MODELS_SCALESIM_IMPL_H

#include "base/memory/buffer.h"
#include "base/memory/hash.h"
#include "base/memory/memory.h"

#include "systolic_impl.h"

#include <orrery/lab/scalesim.h>

struct orr_scalesim_network {
    orr_arena *arena;
    const char *path, *name;
    orr_content_hash hash;
    orr_scalesim_layer *layers;
    size_t count, room;
    size_t skipped;
    uint32_t first_skipped;
};

struct orr_scalesim {
    orr_scalesim_config config;
    orr_scalesim_options opt; /* rules are not NULL */
    const orr_scalesim_network *network;
    orr_systolic_result *results;
    orr_buf text;
};

/* b as folder/name; b is empty afterwards. */
orr_code orr__scalesim_save(orr_buf *b, const char *folder, const char *name, orr_error *err)
    ORR_MUST_CHECK;

#endif
