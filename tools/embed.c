/* SPDX-License-Identifier: Apache-2.0 */
/* embed.c - a build-time program: turns the report page into constants of a C file.
 *
 *     embed [--name NAME] OUT.c report.html report.css module.js...
 *
 * The page is a single file that loads nothing, so its style sheet and modules are inserted here.
 * Modules become one script, in the order given (definitions before uses):
 *
 *     import { a, b } from './x.js';     dropped, the names are there already
 *     export function f() ...            the word dropped
 *
 * Both must be at the start of a line and on one line: this is not a parser.  Indentation is
 * dropped too, so no string may span lines.  Comments on lines of their own are for readers of web/
 * and are left out: lines that begin with two slashes, and comments that begin with a slash and two
 * stars and end at the end of a line.  The rest of the page is split at its marks into three
 * pieces, around the title and around the data. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct text {
    char *ptr;
    size_t len, room;
} text;

static void fail(const char *path, const char *what)
{
    fprintf(stderr, "embed: %s: %s\n", path, what);
    exit(1);
}

static void add(text *t, const char *p, size_t n)
{
    if (t->len + n > t->room) {
        t->room = 2 * (t->len + n);
        t->ptr = realloc(t->ptr, t->room);
        if (!t->ptr)
            fail("", "out of memory");
    }
    memcpy(t->ptr + t->len, p, n);
    t->len += n;
}

static text read_file(const char *path)
{
    text out = {0};
    char part[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f)
        fail(path, "cannot be read");
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        add(&out, part, n);
    fclose(f);
    add(&out, "", 1); /* terminates the string */
    if (strlen(out.ptr) + 1 != out.len)
        fail(path, "has a NUL byte");
    out.len--;
    return out;
}

static bool begins(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

static bool is_import(const char *path, const char *line, size_t len)
{
    if (!begins(line, "import ") && !begins(line, "import{"))
        return false;
    if (len < 2 || line[len - 2] != ';')
        fail(path, "an import is not on one line that ends in a semicolon");
    return true;
}

static size_t line_length(const char *p)
{
    const char *end = strchr(p, '\n');
    return end ? (size_t)(end - p) + 1 : strlen(p);
}

/* The length of a comment on lines of its own at the start of the text; 0: none. */
static size_t comment_length(const char *line)
{
    const char *p = line + strspn(line, " \t");
    if (begins(p, "//"))
        return line_length(line);
    const char *end = begins(p, "/**") ? strstr(p + 3, "*/") : NULL;
    if (!end)
        return 0;
    end += 2;
    end += strspn(end, " \t\r");
    return *end == '\n' ? (size_t)(end - line) + 1 : 0;
}

static void add_module(text *to, const char *path)
{
    const text from = read_file(path);
    if (strstr(from.ptr, "</script"))
        fail(path, "\"</script\" would end the script");
    for (const char *p = from.ptr; *p;) {
        const size_t comment = comment_length(p);
        if (comment) {
            p += comment;
            continue;
        }
        const size_t len = line_length(p);
        const size_t skip = begins(p, "export default ") ? 15
                            : begins(p, "export ")       ? 7
                                                         : strspn(p, " \t");
        if (!is_import(path, p, len))
            add(to, p + skip, len - skip);
        p += len;
    }
    add(to, "\n", 1);
    free(from.ptr);
}

static void put_char(FILE *to, int c)
{
    if (c == '\n')
        fputs("\\n\"\n    \"", to);
    else if (c == '"' || c == '\\')
        fprintf(to, "\\%c", c);
    else if (c < ' ' || c > '~' || c == '?') /* "??" would begin a trigraph */
        fprintf(to, "\\%03o", (unsigned)c & 0xFF);
    else
        fputc(c, to);
}

static void put_piece(FILE *to, const char *name, const text *t)
{
    fprintf(to, "const char %s[] =\n    \"", name);
    for (size_t i = 0; i < t->len; i++)
        put_char(to, (unsigned char)t->ptr[i]);
    fputs("\";\n", to);
}

/* The text from *at to the mark, which must exist; *at moves past it. */
static text take(const char *path, const char **at, const char *mark)
{
    text out = {0};
    const char *found = strstr(*at, mark);
    if (!found)
        fail(path, mark);
    add(&out, *at, (size_t)(found - *at));
    *at = found + strlen(mark);
    return out;
}

static void add_text(text *to, const char *s)
{
    add(to, s, strlen(s));
}

/* orr__page_before_title; of a page with a name orr__NAME_page_before_title. */
static void put_named(FILE *to, const char *name, const char *piece, const text *t)
{
    char symbol[100];
    snprintf(symbol, sizeof symbol, "orr__%s%spage_%s", name, *name ? "_" : "", piece);
    fprintf(to, "extern const char %s[];\n", symbol);
    put_piece(to, symbol, t);
}

int main(int argc, char **argv)
{
    const char *name = "";
    if (argc > 2 && strcmp(argv[1], "--name") == 0) {
        name = argv[2];
        argv += 2;
        argc -= 2;
    }
    if (argc < 5) {
        fprintf(stderr, "usage: embed [--name NAME] OUT.c report.html report.css module.js...\n");
        return 1;
    }
    const text page = read_file(argv[2]), css = read_file(argv[3]);
    const char *at = page.ptr;
    const text before = take(argv[2], &at, "<!--orrery:title-->");
    text middle = take(argv[2], &at, "<!--orrery:css-->");
    add_text(&middle, "<style>\n");
    add(&middle, css.ptr, css.len);
    add_text(&middle, "</style>");
    const text body = take(argv[2], &at, "<!--orrery:data-->");
    add(&middle, body.ptr, body.len);
    text after = take(argv[2], &at, "<!--orrery:script-->");
    add_text(&after, "<script type=\"module\">\n");
    for (int i = 4; i < argc; i++)
        add_module(&after, argv[i]);
    add_text(&after, "</script>");
    add_text(&after, at);

    FILE *to = fopen(argv[1], "wb");
    if (!to)
        fail(argv[1], "cannot be written");
    put_named(to, name, "before_title", &before);
    put_named(to, name, "before_data", &middle);
    put_named(to, name, "after_data", &after);
    const text all[] = {page, css, before, middle, body, after};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i].ptr);
    return fclose(to) != 0;
}
