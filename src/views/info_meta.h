/* SPDX-License-Identifier: Apache-2.0 */
/* info_meta.h - the head of the figures: metadata (info_meta.c). */
#ifndef ORR_VIEWS_INFO_META_H
#define ORR_VIEWS_INFO_META_H

#include "info_impl.h"

orr_code orr__info_metadata(orr_info *o, const orr_trace *t, orr_error *err);
bool orr__info_same_metadata(const orr_trace *a, const orr_trace *b);

#endif
