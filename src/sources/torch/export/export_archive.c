/* SPDX-License-Identifier: Apache-2.0 */
/* export_archive.c - which file of an archive is the program.
 *
 * PyTorch 2.8 and later: FOLDER/models/NAME.json, one for each program, beside FOLDER/archive_format.  Before that:
 * serialized_exported_program.json.  Other archives of PyTorch are told apart by what is in them, because .pt2 is
 * used for several things.  A file that is no archive is taken for the JSON itself. */
#include "export_impl.h"

#include "base/formats/zip_file.h"

#include <stdio.h>

/* A graph of a million nodes has some 2 GB; the text of a node is some 2,000 bytes. */
static const uint64_t json_most = (uint64_t)4 << 30;
enum { SMALL_FILE = 64 };

static const char old_name[] = "serialized_exported_program.json";

/* The name without the archive's own folder, when it has just that one part more than expected. */
static orr_str without_top(orr_str name)
{
    const char *slash = memchr(name.ptr, '/', name.len);
    const size_t n = slash ? (size_t)(slash - name.ptr) + 1 : 0;
    return (orr_str){name.ptr + n, name.len - n};
}

/* "models/NAME.json": NAME. */
static bool is_model(orr_str name, orr_str *model)
{
    static const char front[] = "models/", tail[] = ".json";
    const size_t f = sizeof front - 1, t = sizeof tail - 1;
    if (name.len <= f + t || memcmp(name.ptr, front, f) != 0 || !orr_str_ends(name, tail) ||
        memchr(name.ptr + f, '/', name.len - f))
        return false;
    *model = (orr_str){name.ptr + f, name.len - f - t};
    return true;
}

/* Is this entry a program, and what is it called? */
static bool is_program(orr_str name, orr_str *model)
{
    if (is_model(name, model) || is_model(without_top(name), model))
        return true;
    *model = (orr_str){"", 0};
    return orr_str_is(name, old_name) || orr_str_is(without_top(name), old_name);
}

static const orr_zip_entry *find_file(const orr_zip *z, const char *name)
{
    for (size_t i = 0; i < orr_zip_count(z); i++) {
        const orr_zip_entry *e = orr_zip_entry_at(z, i);
        if (orr_str_is(e->name, name) || orr_str_is(without_top(e->name), name))
            return e;
    }
    return NULL;
}

static bool has_folder(const orr_zip *z, const char *part)
{
    const size_t n = strlen(part);
    for (size_t i = 0; i < orr_zip_count(z); i++) {
        const orr_str name = orr_zip_entry_at(z, i)->name, rest = without_top(name);
        if ((name.len > n && memcmp(name.ptr, part, n) == 0) ||
            (rest.len > n && memcmp(rest.ptr, part, n) == 0))
            return true;
    }
    return false;
}

/* No program in it: what is it then? */
static orr_code fail_none(const orr_zip *z, const char *label, orr_error *err)
{
    const orr_where w = orr_where_byte(label, ORR_NO_BYTE);
    if (has_folder(z, "data/aotinductor/"))
        return orr_fail(
            err, ORR_EINPUT, &w,
            "holds a compiled program (AOTInductor) without its graph; save the exported "
            "program itself with torch.export.save()");
    if (has_folder(z, "code/"))
        return orr_fail(err, ORR_EINPUT, &w,
                        "holds a TorchScript program; export the model with torch.export.export() "
                        "and save that with torch.export.save()");
    if (find_file(z, "data.pkl"))
        return orr_fail(
            err, ORR_EINPUT, &w,
            "holds weights saved by torch.save(), no program; torch.export.save() writes "
            "programs");
    return orr_fail(err, ORR_EINPUT, &w,
                    "an archive without an exported program: neither models/*.json nor %s is in it",
                    old_name);
}

/* What archive_format says, when it is there. */
static orr_code check_format(const orr_zip *z, const char *label, orr_error *err)
{
    const orr_zip_entry *e = find_file(z, "archive_format");
    orr_buf room = {0};
    orr_span text = {0};
    if (!e)
        return ORR_OK;
    const orr_code code = orr_zip_read(z, e, SMALL_FILE, &room, &text, err);
    const bool is_pt2 = !code && text.len == 3 && memcmp(text.ptr, "pt2", 3) == 0;
    orr_buf_fini(&room);
    if (code || is_pt2)
        return code;
    const orr_where w = orr_where_byte(label, e->data);
    return orr_fail(err, ORR_EINPUT, &w, "the archive's format is not 'pt2'");
}

/* "'a', 'b'": the programs of the archive. */
static void list_models(const orr_zip *z, char *to, size_t room)
{
    size_t len = 0;
    orr_str model;
    for (size_t i = 0; i < orr_zip_count(z); i++) {
        if (!is_program(orr_zip_entry_at(z, i)->name, &model) || len + model.len + 5 > room)
            continue;
        len += (size_t)snprintf(to + len, room - len, "%s'%.*s'", len ? ", " : "", (int)model.len,
                                model.ptr);
    }
    to[len] = '\0';
}

static orr_code choose(const orr_zip *z,
                       const char *label,
                       const char *wanted,
                       const orr_zip_entry **out,
                       orr_str *model,
                       orr_error *err)
{
    const orr_where w = orr_where_byte(label, ORR_NO_BYTE);
    char names[160];
    size_t count = 0;
    bool is_found = false;
    for (size_t i = 0; i < orr_zip_count(z); i++) {
        const orr_zip_entry *e = orr_zip_entry_at(z, i);
        orr_str name;
        if (!is_program(e->name, &name))
            continue;
        count++;
        if (is_found || (wanted && !orr_str_is(name, wanted)))
            continue;
        *out = e;
        *model = name;
        is_found = true;
    }
    if (count == 0)
        return fail_none(z, label, err);
    list_models(z, names, sizeof names);
    if (!is_found)
        return orr_fail(err, ORR_EUSAGE, &w, "no program '%s' in the archive; there are: %s",
                        wanted, names);
    if (count > 1 && !wanted)
        return orr_fail(err, ORR_EUSAGE, &w,
                        "several programs are in the archive: choose one with --model: %s", names);
    return ORR_OK;
}

static orr_code read_program(
    const orr_zip *z, const char *label, const char *wanted, export_source *s, orr_error *err)
{
    const orr_zip_entry *e = NULL;
    orr_code code = check_format(z, label, err);
    if (code || (code = choose(z, label, wanted, &e, &s->model, err)))
        return code;
    s->label = orr_arena_print(s->arena, "%s/%.*s", label, (int)e->name.len, e->name.ptr);
    const char *model = orr_arena_text(s->arena, s->model);
    if (!s->label || !model)
        return orr_no_memory(err);
    s->model.ptr = model; /* the archive's bytes may go */
    return orr_zip_read(z, e, json_most, &s->room, &s->json, err);
}

orr_code export_source_open(
    orr_span bytes, const char *label, const char *model, export_source *out, orr_error *err)
{
    orr_zip *z;
    *out = (export_source){.json = bytes, .model = {"", 0}, .arena = orr_arena_create()};
    if (!out->arena || !(out->label = orr_arena_text(out->arena, orr_str_of(label)))) {
        export_source_close(out);
        return orr_no_memory(err);
    }
    if (!orr_zip_is(bytes)) {
        const orr_where w = orr_where_byte(label, ORR_NO_BYTE);
        if (!model)
            return ORR_OK;
        export_source_close(out);
        return orr_fail(err, ORR_EUSAGE, &w, "no archive, so it has no program '%s'", model);
    }
    orr_code code = orr_zip_open(bytes, label, &z, err);
    if (!code)
        code = read_program(z, label, model, out, err);
    orr_zip_close(z);
    if (code)
        export_source_close(out);
    return code;
}

void export_source_close(export_source *s)
{
    orr_buf_fini(&s->room);
    orr_arena_destroy(s->arena);
    *s = (export_source){0};
}
