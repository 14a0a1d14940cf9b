/* SPDX-License-Identifier: Apache-2.0 */
/* xml.h - small XML files as a tree: elements and their attributes, with places.
 *
 *     orr_xml *x;
 *     orr_str id;
 *     if (orr_xml_open(bytes, path, &x, &err)) ...
 *     for (const orr_xml_node *n = orr_xml_root(x)->child; n; n = n->next)
 *         if (orr_str_is(n->name, "gpu") && orr_xml_attr(n, "id", &id)) ...
 *     orr_xml_close(x);
 *
 * The bytes stay the caller's, until close.  What is accepted: one element with elements in it,
 * attributes in either kind of quotes, the five named entities and numeric ones, comments,
 * processing instructions, CDATA and a document type without declarations of its own.  Text between
 * elements is validated and skipped.  Nesting to 256 levels, 64 attributes per element. */
#ifndef ORR_BASE_XML_H
#define ORR_BASE_XML_H

#include "base/memory/memory.h"
#include "base/text/text.h"

typedef struct orr_xml orr_xml;

typedef struct orr_xml_attribute {
    orr_str name, value; /* the value decoded */
    const uint8_t *at;   /* where the value begins */
} orr_xml_attribute;

typedef struct orr_xml_node {
    orr_str name;
    const orr_xml_attribute *attributes;
    uint32_t attribute_count;
    struct orr_xml_node *child, *next; /* the first element in it; the one after it */
    const orr_xml *document;
} orr_xml_node;

/* path is for messages.  On failure *out is NULL. */
orr_code orr_xml_open(orr_span bytes, const char *path, orr_xml **out, orr_error *err)
    ORR_MUST_CHECK;
void orr_xml_close(orr_xml *x); /* NULL is fine */
const orr_xml_node *orr_xml_root(const orr_xml *x);

bool orr_xml_attr(const orr_xml_node *n, const char *name, orr_str *out);
/* Line and column, counted from the start: for messages. */
orr_where orr_xml_where(const orr_xml_node *n);
/* An integer from min to max.  If absent and not `is_needed`, *out is unchanged. */
orr_code orr_xml_get_int(const orr_xml_node *n,
                         const char *name,
                         bool is_needed,
                         int64_t min,
                         int64_t max,
                         int64_t *out,
                         orr_error *err) ORR_MUST_CHECK;

/* The first non-blank byte is '<': it may be XML. */
bool orr_xml_looks_like(orr_span bytes);

#endif
