/* SPDX-License-Identifier: Apache-2.0 */
/* info_meta.h - the head of the figures: metadata (info_meta.c). */
#ifndef ORR_VIEWS_INFO_META_H
#define ORR_VIEWS_INFO_META_H

#include "info_impl.h"

#endif
