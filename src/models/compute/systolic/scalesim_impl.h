/* SPDX-License-Identifier: Apache-2.0 */
/* scalesim_impl.h - what the files of scalesim.h share. */
#ifndef ORR_MODELS_SCALESIM_IMPL_H
#define ORR_MODELS_SCALESIM_IMPL_H

#include "base/memory/buffer.h"
#include "base/memory/content_hash.h"
#include "base/memory/memory.h"

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
    orr_scalesim_options opt;
    const orr_scalesim_network *network;
    orr_systolic_result *results;
    orr_buf text;
};

orr_code orr__scalesim_write_v1(const orr_scalesim *r,
                                const char *folder,
                                orr_error *err) ORR_MUST_CHECK;
orr_code orr__scalesim_write_v2(const orr_scalesim *r,
                                const char *folder,
                                orr_error *err) ORR_MUST_CHECK;
/* Can each layer have trace files of its own? */
orr_code orr__scalesim_check_names(const orr_scalesim_network *n, orr_error *err) ORR_MUST_CHECK;
/* b as folder/name; b is empty afterwards. */
orr_code orr__scalesim_save(orr_buf *b, const char *folder, const char *name, orr_error *err)
    ORR_MUST_CHECK;

#endif
