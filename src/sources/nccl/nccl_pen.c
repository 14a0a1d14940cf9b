/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_pen.c - lines of GOAL's text, put together without a format string.
 *
 * Why by hand: a schedule has a hundred lines for each row of an export, and printing them is most of the work.  A line is
 * at most 130 bytes; room for it is asked for once.
 * Invariant: a fork's branches lie above its base in `lasts` until it is joined. */
#include "nccl_pen.h"

enum { LINE_ROOM = 160 };

void orr__pen_fini(orr__pen *p)
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

static char *begin_line(orr__pen *p)
{
    if (p->is_dry)
        return NULL;
    char *at = (char *)orr_buf_reserve(&p->to, LINE_ROOM);
    p->is_full = p->is_full || !at;
    return at;
}

static void end_line(orr__pen *p, char *at)
{
    *at++ = '\n';
    p->to.len = (size_t)((uint8_t *)at - p->to.ptr);
}

uint32_t orr__pen_label(orr__pen *p)
{
    if (p->labels == UINT32_MAX - 1) {
        p->is_full = true;
        return 0;
    }
    return p->labels++;
}

static char *put_label(const orr__pen *p, char *at, uint32_t label)
{
    *at++ = 'l';
    return put_number(at, (uint64_t)label + p->first_label, 1);
}

void orr__pen_requires(orr__pen *p, uint32_t later, uint32_t earlier)
{
    char *at = begin_line(p);
    if (!at)
        return;
    at = put_label(p, at, later);
    at = PUT(at, " requires ");
    end_line(p, put_label(p, at, earlier));
}

orr__ends orr__pen_calc(orr__pen *p, uint64_t ns, uint32_t cpu)
{
    const uint32_t label = orr__pen_label(p);
    char *at = begin_line(p);
    if (at) {
        at = put_label(p, at, label);
        at = PUT(at, ": calc ");
        at = put_number(at, ns, 1);
        at = PUT(at, " cpu ");
        end_line(p, put_number(at, cpu, 1));
    }
    return (orr__ends){.first = label, .last = label};
}

orr__ends orr__pen_message(orr__pen *p, const orr__message *m)
{
    const uint32_t label = orr__pen_label(p);
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
    return (orr__ends){.first = label, .last = label};
}

void orr__pen_then(orr__pen *p, orr__chain *c, orr__ends next)
{
    if (next.is_empty)
        return;
    if (c->has_any)
        orr__pen_requires(p, next.first, c->all.last);
    else
        c->all.first = next.first;
    c->all.last = next.last;
    c->has_any = true;
}

void orr__pen_beside(orr__pen *p, const orr__chain *c, orr__ends side)
{
    if (c->has_any && !side.is_empty)
        orr__pen_requires(p, side.first, c->all.last);
}

orr__ends orr__pen_chained(const orr__chain *c)
{
    return (orr__ends){.first = c->all.first, .last = c->all.last, .is_empty = !c->has_any};
}

orr__fork orr__pen_fork(orr__pen *p, uint32_t cpu)
{
    const orr__ends start = orr__pen_calc(p, 0, cpu);
    return (orr__fork){.start = start.first, .base = p->count};
}

void orr__pen_branch(orr__pen *p, const orr__fork *f, orr__ends branch)
{
    if (branch.is_empty)
        return;
    orr__pen_requires(p, branch.first, f->start);
    if (!orr_grow(&p->lasts, &p->room, p->count + 1)) {
        p->is_full = true;
        return;
    }
    p->lasts[p->count++] = branch.last;
}

orr__ends orr__pen_join(orr__pen *p, const orr__fork *f, uint32_t cpu)
{
    const orr__ends stop = orr__pen_calc(p, 0, cpu);
    for (size_t i = f->base; i < p->count; i++)
        orr__pen_requires(p, stop.first, p->lasts[i]);
    p->count = f->base;
    return (orr__ends){.first = f->start, .last = stop.last};
}
