/* SPDX-License-Identifier: Apache-2.0 */
/* capture_python.c - finds a Python with PyTorch and runs the capture module in it.
 *
 * A Python is probed first without loading PyTorch, which takes seconds, so a failure is explained
 * at once and names the program.  Then the module is written to a temporary folder and run from
 * there; the folder is also first in PYTHONPATH, for scripts that import the module. */
#include <orrery/lab/capture.h>

#include "base/io/child_process.h"
#include "base/io/input.h"
#include "base/io/output.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const char orr__capture_module[]; /* capture/orrery_capture.py */

enum { OLDEST_MAJOR = 2, OLDEST_MINOR = 4, ANSWER_SHOWN = 90 };

struct orr_capture {
    orr_arena *arena;
    orr_held_signals held;
    orr_folder folder;
    char *file, *module, *python, *words, *module_path;
};

/* Works in every Python since 2.7.  Metadata are quick to read; PyTorch itself is loaded only if
 * they are missing. */
static const char probe[] = "import sys\n"
                            "print('orrery-python %d.%d.%d' % sys.version_info[:3])\n"
                            "try:\n"
                            "    from importlib import metadata\n"
                            "    version = metadata.version('torch')\n"
                            "except Exception:\n"
                            "    version = None\n"
                            "if version is None:\n"
                            "    try:\n"
                            "        import torch\n"
                            "        version = torch.__version__\n"
                            "    except ImportError as e:\n"
                            "        version = 'none' if 'torch' in str(e) else 'broken'\n"
                            "    except Exception:\n"
                            "        version = 'broken'\n"
                            "print('orrery-torch %s' % version)\n";

typedef struct answer {
    char *path; /* NULL: not found */
    orr_str python, torch, last_line;
    orr_child_end end;
} answer;

orr_str orr_capture_module(void)
{
    return orr_str_of(orr__capture_module);
}

/* ---- queries ---- */

/* Replaces control bytes, on which a terminal would act. */
static void make_plain(char *s)
{
    for (; *s; s++) {
        if ((unsigned char)*s < 0x20 || *s == 0x7F)
            *s = ' ';
    }
}

static bool copy(orr_arena *a, orr_str s, orr_str *out)
{
    char *p = orr_arena_text(a, s);
    if (p)
        make_plain(p);
    *out = (orr_str){p, p ? s.len : 0};
    return p != NULL;
}

/* The rest of a line that starts with this word. */
static bool take_line(orr_str line, const char *front, orr_str *out)
{
    const size_t n = strlen(front);
    if (line.len < n || memcmp(line.ptr, front, n) != 0)
        return false;
    *out = (orr_str){line.ptr + n, line.len - n};
    return true;
}

static bool read_line(orr_arena *a, orr_str line, answer *out)
{
    orr_str v;
    if (take_line(line, "orrery-python ", &v))
        return copy(a, v, &out->python);
    if (take_line(line, "orrery-torch ", &v))
        return copy(a, v, &out->torch);
    return !line.len || copy(a, line, &out->last_line);
}

static bool read_answer(orr_arena *a, orr_span text, answer *out)
{
    bool is_fine = true;
    for (size_t at = 0, n; at < text.len && is_fine; at += n + 1) {
        const uint8_t *end = memchr(text.ptr + at, '\n', text.len - at);
        n = end ? (size_t)(end - text.ptr) - at : text.len - at;
        is_fine = read_line(a, (orr_str){(const char *)text.ptr + at, n > 200 ? 200 : n}, out);
    }
    return is_fine;
}

static orr_code ask(orr_capture *c, const char *name, answer *out, orr_error *err)
{
    orr_input *in;
    orr_error why = {0};
    *out = (answer){0};
    char *file = orr_arena_print(c->arena, "%s/answer", c->folder.path);
    orr_code code = file ? orr_program_find(c->arena, name, &out->path, err) : orr_no_memory(err);
    if (code || !out->path)
        return code;
    const char *arguments[] = {out->path, "-c", probe, NULL};
    const orr_child child = {.path = out->path, .arguments = arguments, .output = file};
    code = orr_child_run(&child, &c->held, &out->end, &why);
    if (code == ORR_EIO) /* it exists and cannot be run: that is its answer */
        return copy(c->arena, orr_str_of(why.message), &out->last_line) ? ORR_OK
                                                                        : orr_no_memory(err);
    if (code && err)
        *err = why;
    if (code || (code = orr_input_open(file, &in, err)))
        return code;
    const bool is_fine = read_answer(c->arena, orr_input_bytes(in), out);
    orr_input_close(in);
    unlink(file);
    return is_fine ? ORR_OK : orr_no_memory(err);
}

/* "2.11.0+cu130" is 2.4 or later. */
static bool is_new_enough(orr_str version)
{
    uint64_t part[2] = {0, 0};
    size_t at = 0;
    for (int i = 0; i < 2; i++) {
        size_t n = 0;
        while (at + n < version.len && version.ptr[at + n] >= '0' && version.ptr[at + n] <= '9')
            n++;
        if (!orr_text_u64((orr_str){version.ptr + at, n}, &part[i]))
            return false;
        at += n + 1;
    }
    return part[0] > OLDEST_MAJOR || (part[0] == OLDEST_MAJOR && part[1] >= OLDEST_MINOR);
}

static bool is_fit(const answer *x)
{
    return x->path && x->python.len && x->python.ptr[0] >= '3' && x->torch.len &&
           is_new_enough(x->torch);
}

/* What is wrong with it, as the end of a sentence. */
static char *complaint(orr_arena *a, const char *name, const answer *x)
{
    const orr_str p = x->python, t = x->torch, last = x->last_line;
    if (!x->path)
        return orr_arena_print(a, strchr(name, '/') ? "%s is not a program" : "%s was not found",
                               name);
    if (!p.len && last.len)
        return orr_arena_print(a, "%s answered '%.*s'", x->path,
                               last.len > ANSWER_SHOWN ? ANSWER_SHOWN : (int)last.len, last.ptr);
    if (!p.len)
        return orr_arena_print(a, "%s exited with status %d and printed nothing", x->path,
                               x->end.signal ? 128 + x->end.signal : x->end.status);
    if (p.ptr[0] < '3')
        return orr_arena_print(a, "%s is Python %s", x->path, p.ptr);
    if (orr_str_is(t, "none"))
        return orr_arena_print(a, "%s (Python %s) has no PyTorch", x->path, p.ptr);
    if (!t.len || orr_str_is(t, "broken"))
        return orr_arena_print(a, "%s (Python %s) has a PyTorch that cannot be loaded", x->path,
                               p.ptr);
    return orr_arena_print(a, "%s (Python %s) has PyTorch %.40s, which is too old", x->path, p.ptr,
                           t.ptr);
}

static orr_code choose(orr_capture *c, const answer *x, orr_error *err)
{
    c->python = x->path;
    c->words = orr_arena_print(c->arena, "%s (Python %s, PyTorch %s)", x->path, x->python.ptr,
                               x->torch.ptr);
    return c->words ? ORR_OK : orr_no_memory(err);
}

static orr_code find_python(orr_capture *c, const char *wanted, orr_error *err)
{
    const char *const names[] = {wanted ? wanted : "python3", wanted ? NULL : "python"};
    char *words[2] = {NULL, NULL};
    for (size_t i = 0; i < 2 && names[i]; i++) {
        answer x;
        const orr_code code = ask(c, names[i], &x, err);
        if (code)
            return code;
        if (is_fit(&x))
            return choose(c, &x, err);
        if (!(words[i] = complaint(c->arena, names[i], &x)))
            return orr_no_memory(err);
    }
    return orr_fail(
        err, ORR_EINPUT, NULL,
        "capture needs a Python with PyTorch %d.%d or later: %s%s%s. Choose one with --python, or "
        "capture on a machine that has it: orrery capture --print-module",
        OLDEST_MAJOR, OLDEST_MINOR, words[0], words[1] ? "; " : "", words[1] ? words[1] : "");
}

/* ---- the folder ---- */

static orr_code write_module(orr_capture *c, orr_error *err)
{
    orr_output *out;
    const char *before = getenv("PYTHONPATH");
    c->module = orr_arena_print(c->arena, "%s/orrery_capture.py", c->folder.path);
    c->file = orr_arena_print(c->arena, "%s/capture.json", c->folder.path);
    c->module_path = orr_arena_print(c->arena, "PYTHONPATH=%s%s%s", c->folder.path,
                                     before && *before ? ":" : "", before ? before : "");
    if (!c->module || !c->file || !c->module_path)
        return orr_no_memory(err);
    const orr_code code = orr_output_open(c->module, &out, err);
    if (code)
        return code;
    orr_output_add(out, orr__capture_module, strlen(orr__capture_module));
    return orr_output_commit(&out, err);
}

orr_code orr_capture_open(const char *python, orr_capture **out, orr_error *err)
{
    orr_capture *c = orr_alloc(1, sizeof *c);
    *out = NULL;
    if (!c)
        return orr_no_memory(err);
    orr_signals_hold(&c->held);
    c->arena = orr_arena_create();
    orr_code code = c->arena ? orr_folder_create(c->arena, &c->folder, err) : orr_no_memory(err);
    if (!code && !(code = find_python(c, python, err)))
        code = write_module(c, err);
    if (code)
        orr_capture_close(c);
    else
        *out = c;
    return code;
}

void orr_capture_close(orr_capture *c)
{
    if (!c)
        return;
    const orr_held_signals held = c->held;
    orr_folder_remove(&c->folder);
    orr_arena_destroy(c->arena);
    orr_free(c);
    orr_signals_release(&held);
}

const char *orr_capture_python(const orr_capture *c)
{
    return c->words;
}

const char *orr_capture_file(const orr_capture *c)
{
    return c->file;
}

/* ---- running ---- */

/* The module itself reports what is wrong; this interprets its exit status. */
static orr_code explain(const orr_capture *c, const orr_child_end *end, orr_error *err)
{
    if (end->signal)
        return orr_fail(err, ORR_EINPUT, NULL, "%s was ended by signal %d (%s)%s", c->python,
                        end->signal, strsignal(end->signal),
                        end->signal == SIGKILL ? ": often a lack of memory" : "");
    switch (end->status) {
    case 0:
        return ORR_OK;
    case 2:
        return orr_fail(err, ORR_EUSAGE, NULL, "orrery_capture does not take these options");
    case 3:
        return orr_fail(err, ORR_EINPUT, NULL,
                        "the script cannot be captured; the reason is above");
    default:
        return orr_fail(err, ORR_EINPUT, NULL, "%s ended with status %d", c->python, end->status);
    }
}

static size_t count_of(const char *const *list)
{
    size_t n = 0;
    while (list[n])
        n++;
    return n;
}

/* By path: with -m an older copy in the current folder would take precedence. */
orr_code orr_capture_run(orr_capture *c, const char *const *arguments, orr_error *err)
{
    const char *const front[] = {c->python, c->module};
    const size_t n = count_of(arguments), f = sizeof front / sizeof *front;
    const char **all = orr_arena_new(c->arena, f + n + 1, const char *);
    char *temporary = orr_arena_print(c->arena, "TMPDIR=%s", c->folder.path);
    const char *const environment[] = {c->module_path, temporary, NULL};
    orr_child_end end;
    if (!all || !temporary)
        return orr_no_memory(err);
    memcpy(all, front, sizeof front);
    memcpy(all + f, arguments, n * sizeof *all);
    const orr_child child = {.path = c->python, .arguments = all, .environment = environment};
    const orr_code code = orr_child_run(&child, &c->held, &end, err);
    return code ? code : explain(c, &end, err);
}
