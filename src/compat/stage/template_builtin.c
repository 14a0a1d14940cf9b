/* SPDX-License-Identifier: Apache-2.0 */
/* template_builtin.c - the modules the program brings along, written in a shorthand of ours.
 *
 * The families of modules differ in three things only, so each module is written once:
 *
 *     r  the part of the sequence a rank has outside of tensor-parallel products: divided by tp, or not
 *     K  the heads that keys and values have: as many as queries, or fewer
 *     i  the rows of an embedding: whole, or divided by tp
 *
 * A layout is "extent,extent@hidden"; without @ the values are whole sums.  Letters below stand for extents,
 * anything longer is an expression as it is.  A $ in an attribute is K. */
#include "template.h"

#include "base/text/text.h"

typedef struct row {
    const char *id, *op, *a, *layout_a, *b, *layout_b, *attr, *grad_of, *extras;
} row;

typedef struct letter {
    char letter;
    const char *text;
} letter;

static const letter letters[] = {
    {'b', "Batch/dp"},
    {'s', "Seq/cp"},
    {'S', "Seq"},
    {'m', "Dmodel"},
    {'n', "Dmodel/ep"},
    {'d', "Dmodel/Head"},
    {'h', "Head/tp"},
    {'k', "$/tp"},
    {'u', "2*$/tp"},
    {'w', "(Head+2*$)/tp"},
    {'F', "Dff"},
    {'f', "Dff/tp"},
    {'o', "Dout"},
    {'e', "KExperts"},
    {'q', "Seq*KExperts/(cp*tp)"},            /* tokens, once for each expert they go to */
    {'g', "Seq*KExperts/(cp*tp*ep)"},         /* of these, what a rank gets */
    {'x', "Seq*KExperts/(Experts*cp*tp*ep)"}, /* of these, what one expert gets */
    {0, NULL},
};

/* ---- the modules ---- */

#define INPUT(id, layout)             \
    {                                 \
        id, "T", .layout_a = (layout) \
    }
#define WEIGHT(id, layout)            \
    {                                 \
        id, "W", .layout_a = (layout) \
    } /* T with require_grads */

static const row embedding[] = {
    INPUT("x", "b,r,i"),
    WEIGHT("w", "i,o"),
    {"y", "M", "x", "b,r,i", "w", "i,o", "bsm,mn->bsn"},
    {"dy", "T", .layout_a = "b,r,o", .grad_of = "y"},
    {"dw", "M", "dy", "b,r,o", "x", "b,r,i", "bsn,bsm->mn", "w"},
    {"dx", "M", "dy", "b,r,o", "w", "i,o", "bsn,mn->bsm", "x"},
    {0},
};

static const row layer_norm[] = {
    INPUT("x", "b,r,m"),
    {"y", "E", "x", "b,r,m", .attr = "5"},
    {"dy", "T", .layout_a = "b,r,m", .grad_of = "y"},
    {"dx", "E", "dy", "b,r,m", .attr = "5", .grad_of = "x"},
    {0},
};

static const row residual[] = {
    INPUT("x1", "b,r,m"),
    INPUT("x2", "b,r,m"),
    {"y", "A", "x1", "b,r,m", "x2", "b,r,m"},
    {"dy", "T", .layout_a = "b,r,m", .grad_of = "y"},
    {"dx1", "I", "dy", "b,r,m", .grad_of = "x1"},
    {"dx2", "I", "dy", "b,r,m", .grad_of = "x2"},
    {0},
};

static const row loss[] = {
    INPUT("y", "b,r,m"),
    {"loss", "E", "y", "b,r,m", .attr = "5"},
    {"dy", "E", "loss", "b,r,m", .attr = "5"},
    {0},
};

static const row attention[] = {
    INPUT("x", "b,r,m"),
    WEIGHT("wqkv", "m,d,w"),
    {"qkv", "M", "x", "b,s,m", "wqkv", "m,d,w", "bsm,mnh->bsnh"},
    {"q", "SLICE", "qkv", "b,s,d,w", .attr = "3:Head/tp"},
    {"k", "SLICE", "qkv", "b,s,d,w", .attr = "3:$/tp"},
    {"v", "SLICE", "qkv", "b,s,d,w", .attr = "3:$/tp"},
    INPUT("attn", "b,s,d,h"),
    WEIGHT("wo", "d,h,m"),
    {"o1", "M", "attn", "b,s,d,h", "wo", "d,h,m", "bsmh,mhn->bsn"},
    {"o", "I", "o1", "b,r,m"},
    {"do", "T", .layout_a = "b,r,m", .grad_of = "o"},
    {"do1", "I", "do", "b,s,m", .grad_of = "o1"},
    {"dattn", "M", "do1", "b,s,m", "wo", "d,h,m", "bsn,mhn->bsmh"},
    {"dwo", "M", "do1", "b,s,m", "attn", "b,s,d,h", "bsn,bsmh->mhn", "wo"},
    {"dv", "T", .layout_a = "b,s,d,k", .grad_of = "v"},
    {"dk", "T", .layout_a = "b,s,d,k", .grad_of = "k"},
    {"dq", "T", .layout_a = "b,s,d,h", .grad_of = "q"},
    {"dkv", "SLICE", "dv", "b,s,d,k", "dk", "b,s,d,k", "3:2*$/tp"},
    {"dqkv", "SLICE", "dkv", "b,s,d,u", "dq", "b,s,d,h", "3:(2*$+Head)/tp", "qkv"},
    {"dwqkv", "M", "dqkv", "b,s,d,w", "x", "b,s,m", "bsnh,bsm->mnh", "wqkv"},
    {"dx1", "M", "dqkv", "b,s,d,w", "wqkv", "m,d,w", "bsnh,mnh->bsm"},
    {"dx", "I", "dx1", "b,r,m"},
    {0},
};

/* The cost of the kernel is linear in the sequence: that is the reference's. */
#define KERNEL_OPS(times) "Batch/dp*Seq/cp*Dmodel/Head*Head/tp*" times

#define KERNEL_FORWARD                                                                      \
    INPUT("q", "b,s,d,h"), INPUT("k", "b,s,d,k"), INPUT("v", "b,s,d,k"),                    \
        {"k1", "I", "k", "b,S,d,k"}, {"v1", "I", "v", "b,S,d,k"}, {"qkv",                   \
                                                                   "CUSTOM",                \
                                                                   "q",                     \
                                                                   "b,s,d,h",               \
                                                                   .layout_b = "b,s,d,h",   \
                                                                   .attr = KERNEL_OPS("3"), \
                                                                   .extras = "k1 v1"},      \
        {"dqkv", "T", .layout_a = "b,s,d,h", .grad_of = "qkv"},                             \
    {                                                                                       \
        "dq", "CUSTOM", "dqkv", "b,s,d,h", .layout_b = "b,s,d,h", .attr = KERNEL_OPS("6"),  \
                                           .grad_of = "q"                                   \
    }

#define KERNEL_GRADIENT(id)                                                                  \
    {                                                                                        \
        id, "CUSTOM", "dqkv", "b,s,d,h", .layout_b = "b,S,d,h@1/cp", .attr = KERNEL_OPS("6") \
    }

static const row kernel[] = {
    KERNEL_FORWARD,
    KERNEL_GRADIENT("dk"),
    KERNEL_GRADIENT("dv"),
    {0},
};

static const row kernel_grouped[] = {
    KERNEL_FORWARD,
    KERNEL_GRADIENT("dk1"),
    KERNEL_GRADIENT("dv1"),
    {"dk", "SLICE", "dk1", "b,s,d,h", .attr = "3:$/tp", .grad_of = "k"},
    {"dv", "SLICE", "dv1", "b,s,d,h", .attr = "3:$/tp", .grad_of = "v"},
    {0},
};

static const row feed_forward[] = {
    INPUT("x0", "b,r,m"),
    WEIGHT("wgate", "m,f"),
    WEIGHT("wdown", "f,m"),
    {"x00", "I", "x0", "b,s,m"},
    {"xgate", "M", "x00", "b,s,m", "wgate", "m,f", "bsm,mn->bsn"},
    {"xdown1", "M", "xgate", "b,s,f", "wdown", "f,m", "bsm,mn->bsn"},
    {"xdown", "I", "xdown1", "b,r,F"}, /* Dff: the reference's slip, seen in the texts only */
    {"dxdown", "T", .layout_a = "b,r,m", .grad_of = "xdown"},
    {"dxdown2", "I", "dxdown", "b,s,m"},
    {"dwdown", "M", "dxdown2", "b,s,m", "xgate", "b,s,f", "bsn,bsm->mn", "wdown"},
    {"dxgate", "M", "dxdown2", "b,s,m", "wdown", "f,m", "bsn,mn->bsm", "xgate"},
    {"x01", "I", "x0", "b,s,m"},
    {"dwgate", "M", "dxgate", "b,s,f", "x01", "b,s,m", "bsn,bsm->mn", "wgate"},
    {"dx000", "M", "dxgate", "b,s,f", "wgate", "m,f", "bsn,mn->bsm"},
    {"dx0", "I", "dx000", "b,r,m"},
    {0},
};

static const row feed_forward_gated[] = {
    INPUT("x0", "b,r,m"),
    WEIGHT("wup", "m,f"),
    WEIGHT("wgate", "m,f"),
    WEIGHT("wdown", "f,m"),
    {"x00", "I", "x0", "b,s,m"},
    {"xup", "M", "x00", "b,s,m", "wup", "m,f", "bsm,mn->bsn"},
    {"xgate", "M", "x00", "b,s,m", "wgate", "m,f", "bsm,mn->bsn"},
    {"xupgate", "M", "xup", "b,s,f", "xgate", "b,s,f", "bsm,bsm->bsm"},
    {"xdown1", "M", "xupgate", "b,s,f", "wdown", "f,m", "bsm,mn->bsn"},
    {"xdown", "I", "xdown1", "b,r,F"},
    {"dxdown", "T", .layout_a = "b,r,m", .grad_of = "xdown"},
    {"dxdown2", "I", "dxdown", "b,s,m"},
    {"dwdown", "M", "dxdown2", "b,s,m", "xupgate", "b,s,f", "bsn,bsm->mn", "wdown"},
    {"dxupgate", "M", "dxdown2", "b,s,m", "wdown", "f,m", "bsn,mn->bsm", "xupgate"},
    {"dxup", "M", "dxupgate", "b,s,f", "xgate", "b,s,f", "bsm,bsm->bsm", "xup"},
    {"dxgate", "M", "dxupgate", "b,s,f", "xup", "b,s,f", "bsm,bsm->bsm", "xgate"},
    {"x01", "I", "x0", "b,s,m"},
    {"dwup", "M", "dxup", "b,s,f", "x01", "b,s,m", "bsn,bsm->mn", "wup"},
    {"dwgate", "M", "dxgate", "b,s,f", "x01", "b,s,m", "bsn,bsm->mn", "wgate"},
    {"dx00", "M", "dxup", "b,s,f", "wup", "m,f", "bsn,mn->bsm"},
    {"dx01", "M", "dxgate", "b,s,f", "wgate", "m,f", "bsn,mn->bsm"},
    {"dx000", "A", "dx00", "b,s,m@1/tp", "dx01", "b,s,m@1/tp", .grad_of = "x0"},
    {"dx0", "I", "dx000", "b,r,m"},
    {0},
};

static const row moe_frame[] = {
    INPUT("x", "b,r,m"),
    WEIGHT("wrouter", "n,e"),
    {"yrouter", "M", "x", "b,r,m", "wrouter", "m,e", "bsm,mn->bsn"},
    {"yrouter2", "R", "yrouter", "b,r,e", .layout_b = "b,q,1"},
    {"x1", "B", "x", "b,r,n", .attr = "1*KExperts"},
    {"xrouted", "I", "x1", "b,g,m"},
    INPUT("yrouted", "b,g,m"),
    {"y1", "I", "yrouted", "b,q,n"},
    {"yrouter3", "SLICE", "yrouter2", "b,q,1", .attr = "2:Dmodel/(1*ep)"},
    {"y2", "E2", "y1", "b,q,n", "yrouter3", "b,q,n", "1"},
    {"y", "B", "y2", "b,q,n", .attr = "1*1/KExperts"},
    INPUT("dy", "b,r,n"),
    {"dy2", "B", "dy", "b,r,n", .attr = "1*KExperts"},
    {"dy1", "E2", "dy2", "b,q,n", "yrouter3", "b,q,n", "1"},
    {"dyrouter3", "E2", "dy2", "b,q,n", "y1", "b,q,n", "1"},
    {"dyrouter2", "SLICE", "dyrouter3", "b,q,n", .attr = "2:1"},
    {"dyrouted", "I", "dy1", "b,g,m"},
    {"dyrouter", "R", "dyrouter2", "b,q,1", .layout_b = "b,r,e"},
    {"dwrouter", "M", "dyrouter", "b,r,e", "x", "b,r,n", "bsn,bsm->mn", "wrouter"},
    {"dx01", "M", "dyrouter", "b,r,e", "wrouter", "n,e", "bsn,mn->bsm"},
    INPUT("dxrouted", "b,g,m"),
    {"dx1", "I", "dxrouted", "b,q,n"},
    {"dx02", "B", "dx1", "b,q,n", .attr = "1*1/KExperts"},
    {"dx", "A", "dx01", "b,r,n", "dx02", "b,r,n"},
    {0},
};

#define ROUTED "1:(Seq/cp)*KExperts/(tp*ep)"
#define OF_EXPERT "1:(Seq/cp)*KExperts/(Experts*tp*ep)"

static const row expert_wrapper[] = {
    INPUT("x", "b,g,m"),
    {"x_expert", "SLICE", "x", "b,g,m", .attr = OF_EXPERT},
    INPUT("dx_expert", "b,x,m"),
    {"dx", "SLICE", "dx_expert", "b,x,m", .attr = ROUTED},
    INPUT("y_expert", "b,x,m"),
    {"y", "SLICE", "y_expert", "b,x,m", .attr = ROUTED},
    INPUT("dy", "b,g,m"),
    {"dy_expert", "SLICE", "dy", "b,g,m", .attr = OF_EXPERT},
    {0},
};

/* ---- families ---- */

typedef struct family {
    const char *kind, *rows, *heads, *input;
    const row *kernel, *feed_forward;
} family;

#define DIVIDED "Seq/(cp*tp)"

static const family families[] = {
    {"tpsp_gpt", DIVIDED, "Head", "Din", kernel, feed_forward},
    {"tp_gpt", "Seq/cp", "Head", "Din/tp", kernel, feed_forward},
    {"tpsp", DIVIDED, "KVHead", "Din", kernel_grouped, feed_forward_gated},
    {"tpsp_moe", DIVIDED, "KVHead", "Din", kernel_grouped, feed_forward},
};

static const row *find_rows(const family *f, const char *name)
{
    const struct {
        const char *name;
        const row *rows;
    } modules[] = {
        {"embedding", embedding},
        {"layer_norm", layer_norm},
        {"residual", residual},
        {"loss", loss},
        {"group_query_attention_surrounding", attention},
        {"group_query_attention_kernel_fused", f->kernel},
        {"llama_feed_forward_network", f->feed_forward},
        {"moe_frame", moe_frame},
        {"expert_wrapper", expert_wrapper},
    };
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        if (strcmp(modules[i].name, name) == 0)
            return modules[i].rows;
    }
    return NULL;
}

/* ---- from shorthand to cells ---- */

typedef struct writer {
    const family *f;
    orr_arena *arena;
    orr_buf text;
    bool failed;
} writer;

static orr_str keep(writer *w)
{
    const orr_str s = {(const char *)w->text.ptr, w->text.len};
    const char *copy = w->text.failed ? NULL : orr_arena_text(w->arena, s);
    w->failed |= !copy;
    w->text.len = 0;
    return (orr_str){copy, copy ? s.len : 0};
}

static void put_text(writer *w, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '$')
            orr_buf_text(&w->text, w->f->heads);
        else
            orr_buf_byte(&w->text, (uint8_t)text[i]);
    }
}

static void put_extent(writer *w, const char *text, size_t len)
{
    const char *known = NULL;
    for (const letter *l = letters; len == 1 && l->letter; l++) {
        if (l->letter == *text)
            known = l->text;
    }
    if (len == 1 && *text == 'r')
        known = w->f->rows;
    if (len == 1 && *text == 'i')
        known = w->f->input;
    put_text(w, known ? known : text, known ? strlen(known) : len);
}

static orr_str expand_shape(writer *w, const char *layout)
{
    const char *end = layout + strcspn(layout, "@");
    while (layout < end) {
        const size_t len = strcspn(layout, ",@");
        put_extent(w, layout, len);
        layout += len;
        if (*layout == ',') {
            orr_buf_byte(&w->text, ',');
            layout++;
        }
    }
    return keep(w);
}

static orr_str hidden_of(const char *layout)
{
    const char *at = strchr(layout, '@');
    return orr_str_of(at ? at + 1 : "1");
}

static orr_str expand_attr(writer *w, const char *attr)
{
    put_text(w, attr, strlen(attr));
    return keep(w);
}

/* Names between blanks. */
static const orr_str *split_names(writer *w, const char *names, size_t *count)
{
    orr_str *out = orr_arena_new(w->arena, strlen(names), orr_str);
    w->failed |= !out;
    for (*count = 0; out && *names; names += strspn(names, " ")) {
        const size_t len = strcspn(names, " ");
        out[(*count)++] = (orr_str){names, len};
        names += len;
    }
    return out;
}

static orr_str given(const char *s)
{
    return s ? orr_str_of(s) : (orr_str){NULL, 0};
}

static stg_cells cells_of(writer *w, const row *r)
{
    stg_cells c = {.id = given(r->id),
                   .a = given(r->a),
                   .b = given(r->b),
                   .grad_of = given(r->grad_of),
                   .is_param = strcmp(r->op, "W") == 0};
    c.op = orr_str_of(c.is_param ? "T" : r->op);
    c.shape_a = expand_shape(w, r->layout_a);
    c.hidden_a = hidden_of(r->layout_a);
    if (r->layout_b) {
        c.shape_b = expand_shape(w, r->layout_b);
        c.hidden_b = hidden_of(r->layout_b);
    }
    if (r->attr)
        c.attr = expand_attr(w, r->attr);
    if (r->extras)
        c.extras = split_names(w, r->extras, &c.extra_count);
    return c;
}

static orr_code build(writer *w, stg_tgraph *g, const row *rows, orr_error *err)
{
    size_t count = 0;
    while (rows[count].id)
        count++;
    stg_cells *cells = orr_arena_new(w->arena, count, stg_cells);
    for (size_t i = 0; cells && i < count; i++)
        cells[i] = cells_of(w, &rows[i]);
    return cells && !w->failed ? stg_module_build(g, cells, count, err) : orr_no_memory(err);
}

orr_code stg_module_builtin(stg_tgraph *g, const char *kind, const char *name, orr_error *err)
{
    const row *rows = NULL;
    writer w = {0};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (strcmp(families[i].kind, kind) == 0)
            w.f = &families[i];
    }
    if (w.f)
        rows = find_rows(w.f, name);
    if (!rows)
        return orr_fail(err, ORR_EBUG, NULL, "there is no module %s/%s", kind, name);
    w.arena = orr_arena_create();
    const orr_code code = w.arena ? build(&w, g, rows, err) : orr_no_memory(err);
    orr_arena_destroy(w.arena);
    orr_buf_fini(&w.text);
    return code;
}
