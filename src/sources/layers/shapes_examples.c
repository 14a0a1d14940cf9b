/* SPDX-License-Identifier: Apache-2.0 */
/* shapes_examples.c - the tables of examples/, built in, so that they are there wherever the program is.
 *
 * The build makes constants of the files (cli/embed_text.c). */
#include "gemm_impl.h"

extern const char orr__shapes_resnet50[], orr__shapes_gpt3_block[], orr__shapes_dlrm[];

static const struct {
    const char *name, *help, *text;
} tables[] = {
    {"resnet50", "ResNet-50, 54 layers, a batch of 1,024 images", orr__shapes_resnet50},
    {"gpt3_block", "one of the 96 blocks of GPT-3, a batch of 64 sequences",
     orr__shapes_gpt3_block},
    {"dlrm", "DLRM of MLPerf, tables shared out, the rest data parallel", orr__shapes_dlrm},
};

bool orr_shapes_example_at(size_t index, orr_shapes_example *out)
{
    if (index >= sizeof tables / sizeof *tables)
        return false;
    *out = (orr_shapes_example){.name = tables[index].name,
                                .help = tables[index].help,
                                .text = orr_str_of(tables[index].text)};
    return true;
}
