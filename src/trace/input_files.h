/* SPDX-License-Identifier: Apache-2.0 */
/* input_files.h - the input files of a result, each with the hash of its content. */
#ifndef ORR_SIMULATE_INPUT_FILES_H
#define ORR_SIMULATE_INPUT_FILES_H

#include "base/formats/json.h"
#include "base/memory/hash.h"

typedef struct orr__input_file {
    const char *role; /* "traces", "system", ... */
    const char *path; /* as given; NULL: from memory */
    bool is_known;    /* the hash is */
    orr_content_hash hash;
    uint64_t bytes; /* of a file */
} orr__input_file;

/* The hash of a file's uncompressed bytes; of traces the one printed by `orrery info`.  Standard
 * input and pipes, which cannot be reread, have none.  False: out of memory. */
bool orr__input_file_hash(orr__input_file *f);
bool orr__input_traces_hash(orr__input_file *f);

/* {"role": ..., "path": ..., "content_hash_murmur3_128": ...} */
void orr__put_input(orr_json_writer *w, const orr__input_file *f);

#endif
