/* SPDX-License-Identifier: Apache-2.0 */
/* joint.h - collectives as one operation of all members, as NCCL runs them (docs/design/fluid.md).
 *
 * If no algorithm is configured and the network is fluid, a collective begins when its last member
 * has arrived, takes the time that models/collective/nccl computes for the machine, and shares
 * ports and links with all other traffic while it runs; its members end together. */
#ifndef ORR_RUN_JOINT_H
#define ORR_RUN_JOINT_H

#include "run_state.h"

struct nccl_shape;

orr_code joint_create(orr_sim *s, orr_error *err); /* orr_sim.joint; NULL if not needed */
void joint_destroy(struct joint *j);               /* NULL is fine */

/* A rank joins a collective.  group NULL: the ranks along the dimensions of mask, one bit each. */
void joint_collective(run_npu *n,
                      uint32_t place,
                      orr_collective kind,
                      const cfg_group *group,
                      uint32_t mask,
                      uint64_t size);

/* Adds the load of a collective of these ranks on links, for so many bytes inside and between
 * hosts, to the parts of the network's paths. */
orr_code joint_add_links(struct joint *j,
                         const uint32_t *members,
                         uint32_t count,
                         bool is_pairs,
                         double up,
                         double out,
                         orr_error *err);

/* Placement of a group for the NCCL model, before or during a run.  *out is all zero before.
 * False: only links are known, of a network without routes, or out of memory. */
bool joint_shape_of(orr_sim *s, const uint32_t *members, uint32_t count, struct nccl_shape *out);
/* Bytes as that model counts them: for an all-gather the size of the result. */
uint64_t joint_bytes_of(orr_collective kind, uint64_t size, uint32_t count);
/* Does the rank differ from `base` only in the dimensions of mask, one bit each? */
bool joint_is_member(const orr_sim *s, uint32_t rank, uint32_t base, uint32_t mask);

/* A number that differs where groups that load links alike may take different times. */
uint64_t joint_mark(struct joint *j, const uint32_t *members, uint32_t count);

/* Which members wait in which collective, as words for steady.c; returns their number, and writes
 * them if `out` is not NULL.  The number of meetings of a group is relative to its members. */
size_t joint_state(const struct joint *j, uint64_t *out);

#endif
