/* SPDX-License-Identifier: Apache-2.0 */
/* input_files.c - hashes of input files, for provenance.
 *
 * A file is read again for it: hashes are needed only when a result is saved, and the readers need
 * not know about them.  So only regular files have one: a pipe cannot be read twice. Cost: linear
 * in the size of the files. */
#include "input_files.h"

#include "base/io/input.h"
#include "set_impl.h"

#include <string.h>
#include <sys/stat.h>

static bool is_plain_file(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool orr__input_file_hash(orr__input_file *f)
{
    orr_input *in;
    orr_error why;
    if (!is_plain_file(f->path))
        return true;
    const orr_code code = orr_input_open(f->path, &in, &why);
    if (code)
        return code != ORR_ENOMEM;
    f->hash = orr_content_hash_of(orr_input_bytes(in));
    f->bytes = orr_input_bytes(in).len;
    f->is_known = true;
    orr_input_close(in);
    return true;
}

bool orr__input_traces_hash(orr__input_file *f)
{
    orr_set *set;
    orr_error why;
    orr_code code = orr_set_open(f->path, NULL, &set, &why);
    if (code)
        return code != ORR_ENOMEM;
    code = orr__set_content_hash(set, ORR_NO_NODE, &f->hash, &why);
    f->is_known = code == ORR_OK;
    orr_set_close(set);
    return code != ORR_ENOMEM;
}

void orr__put_input(orr_json_writer *w, const orr__input_file *f)
{
    char hash[ORR_CONTENT_HASH_ROOM];
    orr_json_begin_object(w);
    orr_json_put_text(w, "role", f->role);
    orr_json_put_text(w, "path", f->path);
    orr_json_put_text(w, "content_hash_murmur3_128",
                      f->is_known ? orr_content_hash_text(f->hash, hash) : NULL);
    orr_json_end_object(w);
}
