/* SPDX-License-Identifier: Apache-2.0 */
/* log_pattern.c - spdlog's patterns: %Y-%m-%d, %l, %v, each with an optional width.
 *
 * A width is [-|=]digits[!]: the value is padded to this many characters (at most 64) on the right,
 * on both sides or, without a sign, on the left; ! truncates longer ones.  Unknown flags are
 * copied.  spdlog overestimates the length of two flags when it pads them (%D, %c); so do we.  The
 * source location (%s %g %# %! %@) is empty, as in ASTRA-sim.  All lines have the same time, so
 * elapsed times are 0 (%i %u %o %O).  %^ and %$ delimit the coloured part of a line; nothing is
 * coloured here.
 *
 * Widths count bytes, as spdlog's do. */
#include "config_logging.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

const char orr__log_plain[] = "[%Y-%m-%d %H:%M:%S.%e] [%n] [%l] %v";

enum { MOST_WIDTH = 64, ROOM = 64 };

static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const levels[] = {"trace", "debug",    "info", "warning",
                                     "error", "critical", "off"};

typedef struct width {
    size_t want;
    char side; /* where the blanks go: '<' before, '>' after, '=' on both sides; 0: no width */
    bool cuts;
} width;

typedef struct formatter {
    const orr__log_stamp *stamp;   /* NULL: times are already expanded */
    const orr__log_record *record; /* NULL: flags that differ from line to line are copied */
    orr_buf *out;
} formatter;

void orr__log_now(orr__log_stamp *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (orr__log_stamp){.seconds = now.tv_sec,
                            .nanoseconds = (uint32_t)now.tv_nsec,
                            .process = (uint64_t)getpid(),
                            .thread = (uint64_t)syscall(SYS_gettid)};
    localtime_r(&now.tv_sec, &out->local);
}

/* ---- widths ---- */

/* *it is just after the %; on return at the letter. */
static width take_width(const char **it, const char *end)
{
    const char *p = *it;
    width w = {.side = '<'};
    if (p < end && (*p == '-' || *p == '='))
        w.side = *p++ == '-' ? '>' : '=';
    if (p == end || *p < '0' || *p > '9') {
        *it = p;
        return (width){0};
    }
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        w.want = w.want < 1000 ? w.want * 10 + (size_t)(*p - '0') : w.want;
    if (w.want > MOST_WIDTH)
        w.want = MOST_WIDTH;
    if (p < end && *p == '!') {
        w.cuts = true;
        p++;
    }
    *it = p;
    return w;
}

static void put_blanks(orr_buf *out, size_t n)
{
    static const char blanks[MOST_WIDTH + 1] =
        "                                                                ";
    orr_buf_add(out, blanks, n);
}

/* counted: the length spdlog assumes for the value. */
static void put_padded(orr_buf *out, width w, orr_str value, size_t counted)
{
    const size_t missing = w.want > counted ? w.want - counted : 0;
    const size_t over = counted > w.want ? counted - w.want : 0;
    if (!w.side) {
        orr_buf_add(out, value.ptr, value.len);
        return;
    }
    const size_t before = w.side == '<' ? missing : w.side == '=' ? missing / 2 : 0;
    if (w.cuts)
        value.len -= over < value.len ? over : value.len;
    put_blanks(out, before);
    orr_buf_add(out, value.ptr, value.len);
    put_blanks(out, missing - before);
}

/* ---- values ---- */

static const char *word_for(char flag, const struct tm *t)
{
    switch (flag) {
    case 'A':
    case 'a':
        return days[t->tm_wday % 7];
    case 'B':
    case 'b':
    case 'h':
        return months[t->tm_mon % 12];
    default:
        return t->tm_hour < 12 ? "AM" : "PM";
    }
}

static int twelve(const struct tm *t)
{
    return t->tm_hour > 12 ? t->tm_hour - 12 : t->tm_hour;
}

/* Flags of several numbers.  False: not one of them. */
static bool print_date(char flag, const struct tm *t, char *out)
{
    const int year = t->tm_year + 1900, month = t->tm_mon + 1;
    switch (flag) {
    case 'c':
        snprintf(out, ROOM, "%.3s %.3s %d %02d:%02d:%02d %d", word_for('a', t), word_for('b', t),
                 t->tm_mday, t->tm_hour, t->tm_min, t->tm_sec, year);
        return true;
    case 'D':
    case 'x':
        snprintf(out, ROOM, "%02d/%02d/%02d", month, t->tm_mday, year % 100);
        return true;
    case 'r':
        snprintf(out, ROOM, "%02d:%02d:%02d %s", twelve(t), t->tm_min, t->tm_sec, word_for('p', t));
        return true;
    case 'R':
        snprintf(out, ROOM, "%02d:%02d", t->tm_hour, t->tm_min);
        return true;
    case 'T':
    case 'X':
        snprintf(out, ROOM, "%02d:%02d:%02d", t->tm_hour, t->tm_min, t->tm_sec);
        return true;
    case 'z': {
        const long minutes = (t->tm_gmtoff < 0 ? -t->tm_gmtoff : t->tm_gmtoff) / 60;
        snprintf(out, ROOM, "%c%02ld:%02ld", t->tm_gmtoff < 0 ? '-' : '+', minutes / 60,
                 minutes % 60);
        return true;
    }
    default:
        return false;
    }
}

/* Flags of a single number.  False: not one of them. */
static bool print_number(char flag, const orr__log_stamp *s, char *out)
{
    static const char flags[] = "YCmdHIMSefFEPtiuoO";
    const struct tm *t = &s->local;
    const struct {
        int digits;
        int64_t value;
    } numbers[] = {
        {1, t->tm_year + 1900},
        {2, t->tm_year % 100},
        {2, t->tm_mon + 1},
        {2, t->tm_mday},
        {2, t->tm_hour},
        {2, twelve(t)},
        {2, t->tm_min},
        {2, t->tm_sec},
        {3, s->nanoseconds / 1000000},
        {6, s->nanoseconds / 1000},
        {9, s->nanoseconds},
        {1, s->seconds},
        {1, (int64_t)s->process},
        {1, (int64_t)s->thread},
        {1, 0},
        {1, 0},
        {1, 0},
        {1, 0},
    };
    const char *found = strchr(flags, flag);
    if (!found)
        return false;
    snprintf(out, ROOM, "%0*lld", numbers[found - flags].digits,
             (long long)numbers[found - flags].value);
    return true;
}

/* Flags that all lines share.  False: not one of them. */
static bool put_fixed(const formatter *f, char flag, width w)
{
    char text[ROOM] = "";
    if (strchr("AaBbhp", flag))
        snprintf(text, sizeof text, strchr("abh", flag) ? "%.3s" : "%s",
                 word_for(flag, &f->stamp->local));
    else if (!strchr("sg#!@", flag) && !print_date(flag, &f->stamp->local, text) &&
             !print_number(flag, f->stamp, text))
        return false;
    const orr_str value = orr_str_of(text);
    const size_t counted = flag == 'c' ? 24 : flag == 'D' || flag == 'x' ? 10 : value.len;
    put_padded(f->out, w, value, counted);
    return true;
}

static orr_str value_for(char flag, const orr__log_record *r)
{
    switch (flag) {
    case 'v':
        return r->text;
    case 'n':
        return orr_str_of(r->logger);
    case 'l':
        return orr_str_of(levels[r->level]);
    default: { /* L: one letter */
        static const char letters[] = "TDIWECO";
        return (orr_str){letters + r->level, 1};
    }
    }
}

/* ---- patterns ---- */

static void format(const formatter *f, orr_str pattern);

/* A flag with its width, copied. */
static void put_again(orr_buf *out, const char *from, const char *to)
{
    orr_buf_add(out, from, (size_t)(to - from));
}

/* from: the percent sign; at: the letter. */
static void put_flag(const formatter *f, const char *from, const char *at, width w)
{
    const char flag = *at;
    if (strchr("vnlL%", flag)) {
        if (!f->record)
            put_again(f->out, from, at + 1);
        else if (flag == '%')
            orr_buf_byte(f->out, '%');
        else
            put_padded(f->out, w, value_for(flag, f->record), value_for(flag, f->record).len);
    } else if (!f->stamp) {
        put_again(f->out, from, at + 1); /* unknown */
    } else if (flag == '+') {
        format(f, orr_str_of(orr__log_plain));
    } else if (flag != '^' && flag != '$' && !put_fixed(f, flag, w)) {
        if (w.cuts) /* the exclamation mark itself was the flag */
            put_fixed(f, '!', (width){w.want, w.side, false});
        else
            orr_buf_text(f->out, "%%");
        orr_buf_byte(f->out, (uint8_t)flag);
    }
}

static void format(const formatter *f, orr_str pattern)
{
    const char *end = pattern.ptr + pattern.len;
    for (const char *p = pattern.ptr; p < end;) {
        const char *sign = memchr(p, '%', (size_t)(end - p));
        put_again(f->out, p, sign ? sign : end);
        if (!sign)
            return;
        p = sign + 1;
        const width w = take_width(&p, end);
        if (p == end)
            return;
        put_flag(f, sign, p, w);
        p++;
    }
}

void orr__log_fix(const char *pattern, const orr__log_stamp *stamp, orr_buf *out)
{
    const formatter f = {.stamp = stamp, .out = out};
    format(&f, orr_str_of(pattern));
}

void orr__log_line(orr_str fixed, const orr__log_record *record, orr_buf *out)
{
    const formatter f = {.record = record, .out = out};
    format(&f, fixed);
    orr_buf_byte(out, '\n');
}
