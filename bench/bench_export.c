/* SPDX-License-Identifier: Apache-2.0 */
/* bench_export.c - converts an exported program of 99,999 nodes to traces, including reading; work
 * is nodes of the file.
 *
 * The program is a chain of layers: a product with a bias, an activation, a sum.  As in files of
 * PyTorch, two thirds of the text is the origin of each node: a stack trace and a module path. */
#include "bench.h"
#include "bench_input.h"

#include <orrery/lab/export.h>

#include <inttypes.h>

enum { LAYERS = 33333, NODES = 3 * LAYERS };

static void write_tensor(FILE *f, const char *kind, uint32_t l, uint32_t rows, uint32_t columns)
{
    fprintf(f,
            "%s\"%s_%" PRIu32 "\": {\"dtype\": 13, \"sizes\": [{\"as_int\": %" PRIu32
            "}, {\"as_int\": %" PRIu32
            "}], \"requires_grad\": true, \"device\": {\"type\": \"cuda\", "
            "\"index\": 0}, \"strides\": [{\"as_int\": %" PRIu32
            "}, {\"as_int\": 1}], \"storage_offset\": {\"as_int\": 0}, \"layout\": 7}",
            l == 0 && kind[0] == 'w' ? "" : ", ", kind, l, rows, columns, columns);
}

static void write_node(FILE *f, const char *op, const char *in, const char *out, uint32_t l)
{
    fprintf(f, "%s{\"target\": \"torch.ops.aten.%s\", \"inputs\": [", l || op[0] != 'l' ? ", " : "",
            op);
    for (const char *p = in; *p; p++)
        fprintf(f,
                "%s{\"name\": \"input\", \"arg\": {\"as_tensor\": {\"name\": \"%c_%" PRIu32
                "\"}}, \"kind\": 1}",
                p == in ? "" : ", ", *p, l);
    fprintf(f, "], \"outputs\": [{\"as_tensor\": {\"name\": \"%s_%" PRIu32 "\"}}], ", out,
            *out == 'x' ? l + 1 : l);
    fprintf(
        f,
        "\"metadata\": {\"stack_trace\": \"File \\\"/src/decoder.py\\\", line 78, in forward\\n    x = "
        "layer(x)\\n  File \\\"/src/decoder.py\\\", line 64, in forward\\n    x = x + "
        "self.attention(self.norm1(x))\\n  File \\\"/usr/lib/python3/dist-packages/torch/nn/modules/linear.py\\\", "
        "line 134, in forward\\n    return F.linear(input, self.weight, self.bias)\", "
        "\"nn_module_stack\": \"L__self__,,decoder.Decoder;L__self__layers.%u,layers.%u,decoder.Block;"
        "L__self__layers.%u.mlp,layers.%u.mlp,decoder.Mlp\", \"torch_fn\": "
        "\"linear_%" PRIu32
        ";builtin_function_or_method.linear\"}, \"is_hop_single_tensor_return\": null}",
        l % 48, l % 48, l % 48, l % 48, l);
}

static void write_specs(FILE *f, bool is_signature)
{
    for (uint32_t l = 0; l < LAYERS; l++) {
        fprintf(f,
                is_signature ? "{\"parameter\": {\"arg\": {\"name\": \"w_%" PRIu32
                               "\"}, \"parameter_name\": \"w\"}}, "
                             : "{\"as_tensor\": {\"name\": \"w_%" PRIu32 "\"}}, ",
                l);
    }
    fprintf(f, is_signature ? "{\"user_input\": {\"arg\": {\"as_tensor\": {\"name\": \"x_0\"}}}}"
                            : "{\"as_tensor\": {\"name\": \"x_0\"}}");
}

static void write_program(const char *path)
{
    FILE *f = fopen(path, "w");
    bench_require(f != NULL, "cannot write the input");
    fprintf(f, "{\"graph_module\": {\"graph\": {\"inputs\": [");
    write_specs(f, false);
    fprintf(f, "], \"outputs\": [], \"nodes\": [");
    for (uint32_t l = 0; l < LAYERS; l++) {
        write_node(f, "linear.default", "xw", "y", l);
        write_node(f, "gelu.default", "y", "z", l);
        write_node(f, "add.Tensor", "xz", "x", l);
    }
    fprintf(f, "], \"tensor_values\": {");
    for (uint32_t l = 0; l < LAYERS; l++) {
        write_tensor(f, "w", l, 512, 512);
        write_tensor(f, "x", l, 64, 512);
        write_tensor(f, "y", l, 64, 512);
        write_tensor(f, "z", l, 64, 512);
    }
    write_tensor(f, "x", LAYERS, 64, 512);
    fprintf(f, "}}, \"signature\": {\"input_specs\": [");
    write_specs(f, true);
    fprintf(
        f,
        "], \"output_specs\": [{\"user_output\": {\"arg\": {\"as_tensor\": {\"name\": \"x_%d\"}}}}]}}, "
        "\"schema_version\": {\"major\": 8, \"minor\": 17}}\n",
        LAYERS);
    bench_require(fclose(f) == 0, "cannot write the input");
}

static double run(void *context)
{
    orr_error err;
    orr_fx *program;
    orr_fx_report r;
    orr_set *s;
    bench_check(orr_export_read(context, NULL, &program, NULL, &err), &err);
    bench_check(orr_fx_convert(program, NULL, &s, &r, &err), &err);
    bench_require(orr_trace_columns(orr_set_trace(s, 0))->count == NODES, "nodes differ");
    /* products, GELU at 8 an element, sums */
    bench_require(r.ranks[0].flops == (uint64_t)LAYERS * (2 * 64 * 512 * 512 + 9 * 64 * 512),
                  "FLOPs differ");
    orr_fx_report_fini(&r);
    orr_set_close(s);
    orr_fx_close(program);
    return NODES / 1e6;
}

int main(void)
{
    char path[512];
    bench_path(path, sizeof path, "program.json");
    write_program(path);
    bench_apart(&(bench_job){"convert__export_100k_nodes", "Mnodes", run, NULL, path, path});
    unlink(path);
    return 0;
}
