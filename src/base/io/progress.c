/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - the progress line.
 *
 * The clock costs more than most items, so it is not asked for each: `look` is the count at which
 * to ask next, set from the rate so far to come about every 20 ms.  When nothing is to be shown
 * `look` is the largest number there is and never comes. */
#include "progress_impl.h"

#include <orrery/lab/units.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const uint64_t second_ns = 1000000000, first_ns = 500000000, again_ns = 100000000,
                      look_ns = 20000000;

enum { LINE_ROOM = 256 };

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * second_ns + (uint64_t)t.tv_nsec;
}

/* a * b / c, or the largest number when that does not fit. */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t c)
{
    const unsigned __int128 q = (unsigned __int128)a * b / (c ? c : 1);
    return q < UINT64_MAX ? (uint64_t)q : UINT64_MAX;
}

static bool counts_bytes(const orr_progress *p)
{
    return strcmp(p->unit, "bytes") == 0;
}

static void put_amount(const orr_progress *p, char *out, size_t size)
{
    char done[ORR_UNIT_ROOM], total[ORR_UNIT_ROOM];
    if (counts_bytes(p)) {
        orr_bytes_text(p->done, done);
        orr_bytes_text(p->total, total);
    } else {
        orr_count_text(p->done, done);
        orr_count_text(p->total, total);
    }
    const char *unit = counts_bytes(p) ? "" : " ", *name = counts_bytes(p) ? "" : p->unit;
    if (p->total)
        snprintf(out, size, "%s of %s%s%s", done, total, unit, name);
    else
        snprintf(out, size, "%s%s%s", done, unit, name);
}

static void put_rate(const orr_progress *p, uint64_t elapsed_ns, char *out, size_t size)
{
    char rate[ORR_UNIT_ROOM];
    const uint64_t per_second = scale(p->done, second_ns, elapsed_ns);
    if (counts_bytes(p))
        snprintf(out, size, "%s", orr_rate_text(per_second, rate));
    else
        snprintf(out, size, "%s %s/s", orr_short_text(per_second, rate), p->unit);
}

static void put_left(const orr_progress *p, uint64_t elapsed_ns, char *out, size_t size)
{
    const uint64_t left = scale(p->total - p->done, elapsed_ns, p->done) / second_ns;
    if (left < 3600)
        snprintf(out, size, ", %" PRIu64 ":%02" PRIu64 " left", left / 60, left % 60);
    else
        snprintf(out, size, ", %" PRIu64 " h %02" PRIu64 " min left", left / 3600, left / 60 % 60);
}

size_t orr__progress_line(const orr_progress *p, uint64_t now_ns, char *out, size_t size)
{
    const uint64_t elapsed = now_ns - p->started_ns;
    const bool knows_end = p->total && p->done <= p->total;
    char amount[3 * ORR_UNIT_ROOM] = "", rate[2 * ORR_UNIT_ROOM], left[ORR_UNIT_ROOM] = "",
                    share[8] = "";
    if (!p->note || !knows_end)
        put_amount(p, amount, sizeof amount);
    put_rate(p, elapsed, rate, sizeof rate);
    if (knows_end && p->done)
        put_left(p, elapsed, left, sizeof left);
    if (knows_end)
        snprintf(share, sizeof share, *amount ? "%3u%% " : "%3u%%",
                 (unsigned)scale(p->done, 100, p->total));
    const int length = snprintf(out, size, "%s %s%s, %s%s%s", p->what, share, amount, rate, left,
                                p->note ? p->note : "");
    if (length < 0)
        return 0;
    return (size_t)length < size ? (size_t)length : size - 1;
}

/* A failed write loses a progress line: nothing to report. */
static void put(int fd, const char *text, size_t length)
{
    while (length) {
        const ssize_t n = write(fd, text, length);
        if (n <= 0)
            return;
        text += n;
        length -= (size_t)n;
    }
}

static size_t columns(int fd)
{
    struct winsize w = {.ws_col = 0};
    if (ioctl(fd, TIOCGWINSZ, &w) != 0 || w.ws_col < 2)
        return 80;
    return w.ws_col < LINE_ROOM ? w.ws_col : LINE_ROOM;
}

static void show(orr_progress *p, uint64_t now_ns)
{
    static const char erase[] = "\r\x1b[K";
    char line[sizeof erase + LINE_ROOM];
    memcpy(line, erase, sizeof erase - 1);
    const size_t length = orr__progress_line(p, now_ns, line + sizeof erase - 1,
                                             columns(p->fd)); /* one column less */
    put(p->fd, line, sizeof erase - 1 + length);
    p->shown_ns = now_ns;
}

void orr_progress_look(orr_progress *p)
{
    if (p->fd < 0) {
        p->look = UINT64_MAX;
        return;
    }
    const uint64_t now = clock_ns(), elapsed = now - p->started_ns;
    const uint64_t step = elapsed ? scale(p->done, look_ns, elapsed) : p->done;
    p->look = p->done + (step < UINT64_MAX - p->done ? step : UINT64_MAX - p->done - 1) + 1;
    if (p->shown_ns ? now - p->shown_ns >= again_ns : elapsed >= first_ns)
        show(p, now);
}

void orr__progress_start_on(
    orr_progress *p, const char *what, const char *unit, uint64_t total, int fd)
{
    *p = (orr_progress){.total = total, .what = what, .unit = unit, .fd = fd, .look = UINT64_MAX};
    if (fd < 0)
        return;
    p->started_ns = clock_ns();
    p->look = 1;
}

static bool can_erase(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

void orr_progress_start(
    orr_progress *p, const char *what, const char *unit, uint64_t total, bool quiet)
{
    orr__progress_start_on(p, what, unit, total,
                           !quiet && can_erase(STDERR_FILENO) ? STDERR_FILENO : -1);
}

void orr_progress_end(orr_progress *p)
{
    if (p->fd >= 0 && p->shown_ns)
        put(p->fd, "\r\x1b[K", 4);
    p->fd = -1;
    p->look = UINT64_MAX;
}
