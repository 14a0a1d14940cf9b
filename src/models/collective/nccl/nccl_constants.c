/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_constants.c - the figures behind nccl_model.c.
 *
 * Fitted: lines (all but steps between hosts), direct, spread, on measured NCCL times of NVIDIA's
 * AIConfigurator (truth/collectives/aiconfigurator_nccl.csv has the source): A100, H100 and H200,
 * B200 and GB200, 2 to 8 GPUs of one node, 512 B to 512 MiB, 1,260 rows.  spread is the 90 %
 * interval of measured / model with each curve left out of the fit.
 * Published: steps between hosts, latency of NVLS, its share of the port (20.6 of 25 GB/s per link
 * x 0.85; Blackwell 40.1 of 50 x 0.74) and its turns (a step of Simple, 3.4 us): NCCL's tuning
 * model (github.com/NVIDIA/nccl at 5067397c, graph/tuning and graph/topo).
 * Assumed: out_rate.  Volta has Ampere's figures, "other" has Hopper's, with wide intervals. */
#include "models/collective/nccl/nccl_parts.h"

/* clang-format off */
/* fitted: tools/fit_nccl.py */
/* 252 rows; mean error 3.7 %, 4.9 % on curves left out */
#define AMPERE_LINES { \
    {7981, 2624, 968, 421, 2700, 5000, 0.4271, 1.031, 0}, \
    {18850, 0, 832, 0, 4000, 8500, 0.5484, 0.757, 0}, \
    {13730, 0, 11138, 0, 14000, 14000, 0.7294, 0.320, 96592} }
#define AMPERE_DIRECT \
    .direct_ns = 8100, .direct_grow_ns = 6000, .peer_ns = 300, \
    .direct_rate = 0.8000, .direct_drain_ns = 10000
#define AMPERE_SPREAD { {0.961, 1.086}, {0.881, 1.124}, {0.914, 1.177} }
#define AMPERE_ROWS 252
/* 504 rows; mean error 5.4 %, 6.6 % on curves left out */
#define HOPPER_LINES { \
    {4400, 695, 884, 253, 2700, 5000, 0.4904, 1.118, 0}, \
    {6283, 0, 1621, 0, 4000, 8500, 0.6715, 0.382, 0}, \
    {12013, 0, 4788, 0, 14000, 14000, 0.7833, 0.346, 37237} }
#define HOPPER_DIRECT \
    .direct_ns = 5831, .direct_grow_ns = 5055, .peer_ns = 336, \
    .direct_rate = 0.7968, .direct_drain_ns = 7373
#define HOPPER_SPREAD { {0.874, 1.269}, {0.876, 1.177}, {0.916, 1.128} }
#define HOPPER_ROWS 504
/* 504 rows; mean error 3.4 %, 4.3 % on curves left out */
#define BLACKWELL_LINES { \
    {7814, 434, 1250, 294, 2700, 5000, 0.4003, 1.156, 0}, \
    {7700, 0, 1500, 0, 4000, 8500, 0.6500, 0.500, 0}, \
    {9915, 0, 10653, 0, 14000, 14000, 0.7382, 0.530, 15031} }
#define BLACKWELL_DIRECT \
    .direct_ns = 8360, .direct_grow_ns = 6672, .peer_ns = 626, \
    .direct_rate = 0.7253, .direct_drain_ns = 1753
#define BLACKWELL_SPREAD { {0.918, 1.098}, {0.909, 1.101}, {0.911, 1.104} }
#define BLACKWELL_ROWS 504
/* end of the fitted part */

#define NETWORK .out_latency_ns = 1500, .out_rate = 0.92
#define NVLS(part) .nvls_ns = 24000, .nvls_rate = (part), .nvls_loop_ns = 3400
#define WIDE {{0.6, 1.6}, {0.6, 1.6}, {0.7, 1.4}}
#define MEASURED .ranks_most = 8, .bytes_least = 512, .bytes_most = 512 << 20

const nccl_constants nccl_table[NCCL_GENERATIONS] = {
    [NCCL_OTHER] = {
        .name = "other", .up_GBps = 450, .up_latency_ns = 500, .out_GBps = 50, .channels = 24,
        .line = HOPPER_LINES, HOPPER_DIRECT, NETWORK, NVLS(0.70), .spread = WIDE,
    },
    [NCCL_VOLTA] = {
        .name = "volta", .up_GBps = 150, .up_latency_ns = 500, .out_GBps = 12.5, .channels = 12,
        .line = AMPERE_LINES, AMPERE_DIRECT, NETWORK, NVLS(0.50), .spread = WIDE,
    },
    [NCCL_AMPERE] = {
        .name = "ampere", .up_GBps = 300, .up_latency_ns = 500, .out_GBps = 25, .channels = 24,
        .line = AMPERE_LINES, AMPERE_DIRECT, NETWORK, NVLS(0.50),
        .spread = AMPERE_SPREAD, .rows = AMPERE_ROWS, MEASURED,
    },
    [NCCL_HOPPER] = {
        .name = "hopper", .up_GBps = 450, .up_latency_ns = 500, .out_GBps = 50, .channels = 24,
        .line = HOPPER_LINES, HOPPER_DIRECT, NETWORK, NVLS(0.70),
        .spread = HOPPER_SPREAD, .rows = HOPPER_ROWS, MEASURED,
    },
    [NCCL_BLACKWELL] = {
        .name = "blackwell", .up_GBps = 900, .up_latency_ns = 500, .out_GBps = 50, .channels = 32,
        .line = BLACKWELL_LINES, BLACKWELL_DIRECT, NETWORK, NVLS(0.59),
        .spread = BLACKWELL_SPREAD, .rows = BLACKWELL_ROWS, MEASURED,
    },
};
/* clang-format on */
