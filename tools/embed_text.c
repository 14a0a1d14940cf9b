/* SPDX-License-Identifier: Apache-2.0 */
/* embed_text.c - a build-time program: turns text files into constants of a C file.
 *
 *     embed_text OUT.c NAME=FILE...     ->     const char NAME[] = "..."; */
#include <stdio.h>
#include <string.h>

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

static int embed(FILE *to, const char *name, size_t length, const char *path)
{
    FILE *from = fopen(path, "rb");
    if (!from) {
        fprintf(stderr, "embed_text: cannot read %s\n", path);
        return 1;
    }
    fprintf(to, "extern const char %.*s[];\nconst char %.*s[] =\n    \"", (int)length, name,
            (int)length, name);
    for (int c; (c = fgetc(from)) != EOF;)
        put_char(to, c);
    fputs("\";\n", to);
    fclose(from);
    return 0;
}

int main(int argc, char **argv)
{
    int status = 0;
    FILE *to = argc > 1 ? fopen(argv[1], "wb") : NULL;
    if (!to) {
        fprintf(stderr, "usage: embed_text OUT.c NAME=FILE...\n");
        return 1;
    }
    for (int i = 2; i < argc && !status; i++) {
        const char *sign = strchr(argv[i], '=');
        status = sign ? embed(to, argv[i], (size_t)(sign - argv[i]), sign + 1) : 1;
    }
    return fclose(to) != 0 || status;
}
