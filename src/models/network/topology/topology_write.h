/* SPDX-License-Identifier: Apache-2.0 */
/* topology_write.h - what the writers of topology files share. */
#ifndef ORR_MODELS_TOPOLOGY_WRITE_H
#define ORR_MODELS_TOPOLOGY_WRITE_H

#include "base/memory/buffer.h"
#include "topology_kinds.h"

/* A .topo file of htsim's, if these cables are one of its fat trees; ORR_EUSAGE with the reason
 * otherwise. */
orr_code orr__htsim_topo_words(const orr__cabling *c, orr_buf *out, orr_error *err) ORR_MUST_CHECK;

#endif
