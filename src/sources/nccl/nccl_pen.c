/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_pen.c - lines of GOAL's text, written without format strings.
 *
 * Why by hand: a schedule has a hundred lines per row of an export, and formatting dominates the
 * run time.  A line is at most 130 bytes; capacity is checked once per line. Invariant: a fork's
 * branches are above its base in `lasts` until it is joined. */
#include "nccl_write.h"

enum { LINE_ROOM = 160 };

void nccl_pen_fini(nccl_pen *p)
{
    orr_buf_fini(&p->to);
    orr_free(p->lasts);
}

static char *put_number(char *at, uint64_t v, uint32_t digits)
{
    char text[24];
    uint32_t n = 0;
    do {
        text[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    while (n < digits && n < sizeof text)
        text[n++] = '0';
    while (n)
        *at++ = text[--n];
    return at;
}

#define PUT(at, text) (memcpy((at), (text), sizeof(text) - 1), (at) + sizeof(text) - 1)

static char *begin_line(nccl_pen *p)
{
    if (p->is_dry)
        return NULL;
    char *at = (char *)orr_buf_reserve(&p->to, LINE_ROOM);
    p->is_full = p->is_full || !at;
    return at;
}

static void end_line(nccl_pen *p, char *at)
{
    *at++ = '\n';
    p->to.len = (size_t)((uint8_t *)at - p->to.ptr);
}

uint32_t nccl_pen_label(nccl_pen *p)
{
    if (p->labels == UINT32_MAX - 1) {
        p->is_full = true;
        return 0;
    }
    return p->labels++;
}

static char *put_label(const nccl_pen *p, char *at, uint32_t label)
{
    *at++ = 'l';
    return put_number(at, (uint64_t)label + p->first_label, 1);
}

void nccl_pen_requires(nccl_pen *p, uint32_t later, uint32_t earlier)
{
    char *at = begin_line(p);
    if (!at)
        return;
    at = put_label(p, at, later);
    at = PUT(at, " requires ");
    end_line(p, put_label(p, at, earlier));
}

nccl_ends nccl_pen_calc(nccl_pen *p, uint64_t ns, uint32_t cpu)
{
    const uint32_t label = nccl_pen_label(p);
    char *at = begin_line(p);
    if (at) {
        at = put_label(p, at, label);
        at = PUT(at, ": calc ");
        at = put_number(at, ns, 1);
        at = PUT(at, " cpu ");
        end_line(p, put_number(at, cpu, 1));
    }
    return (nccl_ends){.first = label, .last = label};
}

nccl_ends nccl_pen_message(nccl_pen *p, const nccl_message *m)
{
    const uint32_t label = nccl_pen_label(p);
    char *at = begin_line(p);
    p->messages += m->is_send;
    p->bytes += m->is_send ? m->bytes : 0;
    if (at) {
        at = put_label(p, at, label);
        at = m->is_send ? PUT(at, ": send ") : PUT(at, ": recv ");
        at = put_number(at, m->bytes, 1);
        at = m->is_send ? PUT(at, "b to ") : PUT(at, "b from ");
        at = put_number(at, m->peer, 1);
        at = PUT(at, " tag ");
        at = put_number(at, m->tag, m->digits);
        at = PUT(at, " cpu ");
        at = put_number(at, m->cpu, 1);
        end_line(p, PUT(at, " nic 0"));
    }
    return (nccl_ends){.first = label, .last = label};
}

void nccl_pen_then(nccl_pen *p, nccl_chain *c, nccl_ends next)
{
    if (next.is_empty)
        return;
    if (c->has_any)
        nccl_pen_requires(p, next.first, c->all.last);
    else
        c->all.first = next.first;
    c->all.last = next.last;
    c->has_any = true;
}

void nccl_pen_beside(nccl_pen *p, const nccl_chain *c, nccl_ends side)
{
    if (c->has_any && !side.is_empty)
        nccl_pen_requires(p, side.first, c->all.last);
}

nccl_ends nccl_pen_chained(const nccl_chain *c)
{
    return (nccl_ends){.first = c->all.first, .last = c->all.last, .is_empty = !c->has_any};
}

nccl_fork nccl_pen_fork(nccl_pen *p, uint32_t cpu)
{
    const nccl_ends start = nccl_pen_calc(p, 0, cpu);
    return (nccl_fork){.start = start.first, .base = p->count};
}

void nccl_pen_branch(nccl_pen *p, const nccl_fork *f, nccl_ends branch)
{
    if (branch.is_empty)
        return;
    nccl_pen_requires(p, branch.first, f->start);
    if (!orr_grow(&p->lasts, &p->room, p->count + 1)) {
        p->is_full = true;
        return;
    }
    p->lasts[p->count++] = branch.last;
}

nccl_ends nccl_pen_join(nccl_pen *p, const nccl_fork *f, uint32_t cpu)
{
    const nccl_ends stop = nccl_pen_calc(p, 0, cpu);
    for (size_t i = f->base; i < p->count; i++)
        nccl_pen_requires(p, stop.first, p->lasts[i]);
    p->count = f->base;
    return (nccl_ends){.first = f->start, .last = stop.last};
}
