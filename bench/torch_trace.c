/* SPDX-License-Identifier: Apache-2.0 */
/* torch_trace.c - a simulated training job: a clock per thread and stream, and a line of JSON per
 * event.
 *
 * Host nodes are written when they end, with ids assigned when they began, as in PyTorch.  Only
 * open operators are kept, so memory does not grow with the length. */
#include "torch_trace.h"

#include "base/rng.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAIN = 0, BACKWARD = 1, COMPUTE = 0, NCCL = 1, DEPTH = 12, TEXT = 600, PID = 4242 };
static const int stream_ids[] = {7, 20};
static const int64_t epoch_ns =
    3868350874000000000; /* 16 digits of microseconds, as in real traces */

typedef struct frame {
    uint64_t id, rf, external;
    const char *name;
    int64_t begin;
    char inputs[TEXT], types[TEXT]; /* of `values` and `types` */
    char attrs[TEXT], args[TEXT];   /* further ones, host and device */
    int scope;
} frame;

typedef struct thread {
    int64_t now;
    frame stack[DEPTH];
    int depth;
    uint64_t node; /* its node in the host trace */
} thread;

typedef struct player {
    const torch_job *job;
    uint32_t rank;
    int64_t offset; /* of this rank's clock */
    FILE *host, *device;
    thread threads[2];
    int64_t busy_until[2]; /* streams */
    uint64_t next_id, next_rf, next_correlation, sequence;
    orr_rng rng;
    torch_totals totals;
} player;

/* ---- writing ---- */

static void stop(const char *what)
{
    perror(what);
    exit(1);
}

static void put_time(FILE *f, const char *key, int64_t ns)
{
    fprintf(f, ", \"%s\": %" PRId64 ".%03" PRId64, key, ns / 1000, ns % 1000);
}

static void put_event(player *p, const char *ph, const char *cat, const char *name)
{
    fprintf(p->device, "%s\n  {%s\"ph\": \"%s\", \"cat\": \"%s\", \"name\": \"%s\"",
            p->totals.device_events ? "," : "", p->job->is_real ? "\n    " : "", ph, cat, name);
    p->totals.device_events++;
}

static void put_span(player *p, int64_t begin, int64_t duration, int pid, int tid)
{
    fprintf(p->device, ", \"pid\": %d, \"tid\": %d", pid, tid);
    put_time(p->device, "ts", begin + p->offset);
    put_time(p->device, "dur", duration);
    if (p->job->is_real)
        fputc('\n', p->device);
}

static void put_arrow(player *p, const char *ph, uint64_t id, int64_t at, int pid, int tid)
{
    put_event(p, ph, "ac2g", "ac2g");
    fprintf(p->device, ", \"id\": %" PRIu64 ", \"pid\": %d, \"tid\": %d", id, pid, tid);
    put_time(p->device, "ts", at + p->offset);
    fputs(ph[0] == 'f' ? ", \"bp\": \"e\"}" : "}", p->device);
}

static int tid_of(const player *p, const thread *t)
{
    return t == &p->threads[MAIN] ? PID : PID + 40;
}

static void put_attr(FILE *f, const char *name, const char *type, int64_t v)
{
    fprintf(f, "{\"name\": \"%s\", \"type\": \"%s\", \"value\": %" PRId64 "},", name, type, v);
}

/* A node in PyTorch's format: with shapes and strides of its tensors, and the operator's schema. */
static void put_real_host(player *p, const frame *n, uint64_t parent, int thread_number)
{
    FILE *f = p->host;
    static const char shape[] = "[8,1024,768]", strides[] = "[786432,768,1]";
    const char *shapes = n->inputs[0] ? shape : "", *steps = n->inputs[0] ? strides : "";
    fprintf(f,
            "%s\n      {\n        \"id\": %" PRIu64 ", \"name\": \"%s\", \"ctrl_deps\": %" PRIu64
            ",\n        \"inputs\": {\"values\": [%s], \"shapes\": [%s], \"types\": [%s], "
            "\"strides\": [%s]},\n        \"outputs\": {\"values\": [], \"shapes\": [], \"types\": "
            "[], \"strides\": []},\n        \"attrs\": [",
            p->totals.host_nodes ? "," : "", n->id, n->name, parent, n->inputs, shapes, n->types,
            steps);
    put_attr(f, "rf_id", "uint64", (int64_t)n->rf);
    put_attr(f, "fw_parent", "uint64", 0);
    put_attr(f, "seq_id", "int64", -1);
    put_attr(f, "scope", "uint64", n->scope);
    put_attr(f, "tid", "uint64", thread_number);
    put_attr(f, "fw_tid", "uint64", 0);
    fprintf(f,
            "{\"name\": \"op_schema\", \"type\": \"string\", \"value\": \"%s%s\"},"
            "{\"name\": \"kernel_backend\", \"type\": \"string\", \"value\": \"\"},"
            "{\"name\": \"kernel_file\", \"type\": \"string\", \"value\": \"\"},"
            "{\"name\": \"tensor_range\", \"type\": \"string\", \"value\": \"\"}%s]\n      }",
            n->scope ? "" : n->name,
            n->scope ? ""
                     : "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                       "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> "
                       "Tensor",
            n->attrs);
    p->totals.host_nodes++;
}

static void put_host(player *p, const frame *n, uint64_t parent, int thread_number)
{
    FILE *f = p->host;
    if (p->job->is_real) {
        put_real_host(p, n, parent, thread_number);
        return;
    }
    fprintf(f,
            "%s\n    {\n      \"id\": %" PRIu64 ", \"name\": \"%s\", \"ctrl_deps\": %" PRIu64
            ",\n      \"inputs\": {\"values\": [%s], \"shapes\": [], \"types\": [%s], "
            "\"strides\": []}, \"outputs\": {\"values\": [], \"shapes\": [], \"types\": [], "
            "\"strides\": []},\n      \"attrs\": [",
            p->totals.host_nodes ? "," : "", n->id, n->name, parent, n->inputs, n->types);
    put_attr(f, "rf_id", "uint64", (int64_t)n->rf);
    put_attr(f, "fw_parent", "uint64", 0);
    put_attr(f, "seq_id", "int64", -1);
    put_attr(f, "scope", "uint64", n->scope);
    put_attr(f, "tid", "uint64", thread_number);
    put_attr(f, "fw_tid", "uint64", 0);
    fprintf(f,
            "{\"name\": \"op_schema\", \"type\": \"string\", \"value\": \"%s%s\"},"
            "{\"name\": \"kernel_backend\", \"type\": \"string\", \"value\": \"\"},"
            "{\"name\": \"kernel_file\", \"type\": \"string\", \"value\": \"\"}%s]}",
            n->scope ? "" : n->name, n->scope ? "" : "(Tensor self, Tensor other) -> Tensor",
            n->attrs);
    p->totals.host_nodes++;
}

/* ---- threads ---- */

static int64_t between(player *p, int64_t low, int64_t high)
{
    return low + (int64_t)orr_rng_below(&p->rng, (uint64_t)(high - low));
}

/* One operator in 1,200 has no event, one launch in 6 has no call: about what the profiler misses
 * in a step of GPT-2. */
static bool is_missed(const player *p, uint64_t id)
{
    return p->job->is_real && id % 1200 == 600;
}

static bool is_launch_missed(const player *p, uint64_t correlation)
{
    return p->job->is_real && correlation % 6 == 0;
}

static frame *begin(player *p, thread *t, const char *name)
{
    frame *n = &t->stack[t->depth++];
    t->now += between(p, 500, 2500);
    memset(n, 0, sizeof *n);
    n->id = p->next_id++;
    n->rf = n->external = p->next_rf++;
    n->name = name;
    n->begin = t->now;
    t->now += between(p, 300, 1500);
    return n;
}

static void end(player *p, thread *t)
{
    const frame *n = &t->stack[--t->depth];
    t->now += between(p, 300, 1500);
    put_host(p, n, t->depth ? t->stack[t->depth - 1].id : t->node, t == p->threads ? 1 : 2);
    if (is_missed(p, n->id))
        return;
    put_event(p, "X", n->scope ? "user_annotation" : "cpu_op", n->name);
    put_span(p, n->begin, t->now - n->begin, PID, tid_of(p, t));
    fprintf(p->device,
            ", \"args\": {\"External id\": %" PRIu64 ", \"Record function id\": %" PRIu64
            ", \"Ev Idx\": %" PRIu64 "%s}}",
            n->external, n->rf, n->id, n->args);
}

static void add_tensor(frame *n, uint64_t storage, uint64_t elements)
{
    const size_t have = strlen(n->inputs), types = strlen(n->types);
    snprintf(n->inputs + have, TEXT - have,
             "%s[%" PRIu64 ", %" PRIu64 ", 0, %" PRIu64 ", 4, \"cuda:0\"]", have ? ", " : "",
             storage + 100000, storage, elements);
    snprintf(n->types + types, TEXT - types, "%s\"Tensor(float)\"", types ? ", " : "");
}

static void operator_on(player *p, thread *t, const char *name, uint64_t storage, uint64_t elements)
{
    add_tensor(begin(p, t, name), storage, elements);
}

static void leaf(player *p, thread *t, const char *name, uint64_t storage)
{
    operator_on(p, t, name, storage, 4096);
    end(p, t);
}

/* ---- the device ---- */

static uint64_t runtime_call(
    player *p, thread *t, const char *name, int64_t duration, bool is_known)
{
    const uint64_t correlation = p->next_correlation++;
    if (is_launch_missed(p, correlation)) {
        t->now += duration;
        return correlation;
    }
    put_event(p, "X", "cuda_runtime", name);
    put_span(p, t->now, duration, PID, tid_of(p, t));
    fprintf(p->device, ", \"args\": {");
    if (is_known && t->depth)
        fprintf(p->device, "\"External id\": %" PRIu64 ", ", t->stack[t->depth - 1].external);
    fprintf(p->device, "\"cbid\": 211, \"correlation\": %" PRIu64 "}}", correlation);
    t->now += duration;
    return correlation;
}

typedef struct work {
    const char *cat, *call, *name, *args;
    int stream;
    int64_t duration;
} work;

static void launch(player *p, thread *t, const work *w)
{
    const int64_t called = t->now;
    const uint64_t id = runtime_call(p, t, w->call, between(p, 4000, 9000), true);
    const int stream = stream_ids[w->stream];
    const int64_t ready = t->now + 1500;
    const int64_t start = ready > p->busy_until[w->stream] ? ready : p->busy_until[w->stream] + 800;
    put_arrow(p, "s", id, called, PID, tid_of(p, t));
    put_event(p, "X", w->cat, w->name);
    put_span(p, start, w->duration, 0, stream);
    fprintf(
        p->device,
        ", \"args\": {\"External id\": %" PRIu64
        ", \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": %d, \"correlation\": %" PRIu64
        ", \"grid\": [128, 1, 1], \"block\": [256, 1, 1]%s}}",
        t->stack[t->depth - 1].external, stream, id, w->args ? w->args : "");
    put_arrow(p, "f", id, start, 0, stream);
    p->busy_until[w->stream] = start + w->duration;
    p->totals.busy_ns += w->duration;
    p->totals.kernels += w->cat[0] == 'k';
    p->totals.copies += strcmp(w->cat, "gpu_memcpy") == 0;
    p->totals.fills += strcmp(w->cat, "gpu_memset") == 0;
}

static void kernel(player *p, thread *t, const char *name, int64_t low, int64_t high)
{
    launch(p, t,
           &(work){.cat = "kernel",
                   .call = "cudaLaunchKernel",
                   .name = name,
                   .duration = between(p, low, high)});
}

static void put_sync(
    player *p, const char *name, const thread *t, uint64_t id, int stream, const char *more)
{
    put_event(p, "X", "cuda_sync", name);
    put_span(p, t->now - 900, 800, 0, stream);
    fprintf(p->device,
            ", \"args\": {\"device\": 0, \"context\": 1, \"stream\": %d, \"correlation\": %" PRIu64
            "%s}}",
            stream, id, more);
}

/* From here on `to` waits for the current work of `from`. */
static void make_wait(player *p, thread *t, int to, int from)
{
    char more[120];
    const uint64_t record = runtime_call(p, t, "cudaEventRecord", 900, true);
    const uint64_t wait = runtime_call(p, t, "cudaStreamWaitEvent", 900, true);
    snprintf(more, sizeof more,
             ", \"wait_on_stream\": %d, \"wait_on_cuda_event_record_corr_id\": %" PRIu64,
             stream_ids[from], record);
    put_sync(p, "Stream Wait Event", t, wait, stream_ids[to], more);
    if (p->busy_until[to] < p->busy_until[from])
        p->busy_until[to] = p->busy_until[from];
}

static void wait_for_stream(player *p, thread *t, int stream)
{
    const int64_t left = p->busy_until[stream] - t->now;
    const uint64_t id =
        runtime_call(p, t, "cudaStreamSynchronize", left > 0 ? left + 2000 : 2000, true);
    put_sync(p, "Stream Sync", t, id, stream_ids[stream], "");
}

/* ---- communication ---- */

typedef struct call {
    const char *operation, *annotation, *kernel, *word;
    uint64_t storage, elements;
    uint32_t group, group_size, first; /* the ranks first, first + 1, ... */
    int64_t peer;                      /* rank in the group; the own rank if there is none */
    int64_t ns_per_mb;
} call;

static void describe(player *p, frame *n, const call *c)
{
    snprintf(n->attrs, TEXT,
             ",{\"name\": \"collective_name\", \"type\": \"string\", \"value\": \"%s\"},"
             "{\"name\": \"dtype\", \"type\": \"string\", \"value\": \"Float\"},"
             "{\"name\": \"in_msg_nelems\", \"type\": \"uint64\", \"value\": %" PRIu64 "},"
             "{\"name\": \"out_msg_nelems\", \"type\": \"uint64\", \"value\": %" PRIu64 "},"
             "{\"name\": \"pg_name\", \"type\": \"string\", \"value\": \"%u\"},"
             "{\"name\": \"pg_size\", \"type\": \"uint64\", \"value\": %u}",
             c->word, c->elements, c->elements, c->group, c->group_size);
    add_tensor(n, c->storage, c->elements);
    const size_t have = strlen(n->inputs), types = strlen(n->types);
    snprintf(n->inputs + have, TEXT - have,
             ", %" PRIu64 ", [\"%u\", \"pg\"], %" PRId64 ", \"%s\", [], [], %u, 1, %u",
             p->sequence++, c->group, c->peer, c->word, c->first, c->group_size);
    snprintf(n->types + types, TEXT - types,
             ", \"Int\", \"GenericList[String,String]\", \"Int\", \"String\", \"GenericList[]\", "
             "\"GenericList[]\", \"Int\", \"Int\", \"Int\"");
}

static void communicate(player *p, thread *t, const call *c)
{
    char args[TEXT];
    operator_on(p, t, c->operation, c->storage, c->elements);
    describe(p, begin(p, t, "record_param_comms"), c);
    frame *n = begin(p, t, c->annotation);
    n->scope = 7;
    add_tensor(n, c->storage, c->elements);
    make_wait(p, t, NCCL, COMPUTE);
    snprintf(args, sizeof args,
             ", \"Collective name\": \"%s\", \"In msg nelems\": %" PRIu64
             ", \"Out msg nelems\": %" PRIu64
             ", \"Group size\": %u, \"dtype\": \"Float\", \"Process Group Name\": \"%u\"",
             c->word, c->elements, c->elements, c->group_size, c->group);
    launch(p, t,
           &(work){.cat = "kernel",
                   .call = "cudaLaunchKernelExC",
                   .name = c->kernel,
                   .args = args,
                   .stream = NCCL,
                   .duration = 20000 + (int64_t)c->elements * 4 * c->ns_per_mb / 1000000});
    end(p, t);
    end(p, t);
    end(p, t);
}

static void all_reduce(player *p, thread *t, uint64_t bucket)
{
    communicate(p, t,
                &(call){"c10d::allreduce_", "nccl:all_reduce",
                        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                        "allreduce", bucket, 6553600, 0, p->job->ranks, 0, p->rank, 4000});
    p->totals.collectives++;
}

/* Even ranks send to the next odd ones. */
static void exchange(player *p, thread *t, uint64_t storage)
{
    static const char name[] = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    const uint32_t first = p->rank & ~1u, group = 1 + p->rank / 2;
    if (p->rank % 2 == 0)
        communicate(p, t,
                    &(call){"c10d::send", "nccl:send 0->1", name, "send", storage, 262144, group, 2,
                            first, 1, 20000});
    else
        communicate(p, t,
                    &(call){"c10d::recv_", "nccl:recv 1<-0", name, "recv", storage, 262144, group,
                            2, first, 0, 20000});
    p->totals.messages++;
}

/* ---- a step ---- */

static void forward_layer(player *p, thread *t, uint64_t layer)
{
    operator_on(p, t, "aten::linear", layer, 1 << 20);
    operator_on(p, t, "aten::t", layer, 1 << 20);
    leaf(p, t, "aten::transpose", layer);
    end(p, t);
    operator_on(p, t, "aten::addmm", layer, 1 << 20);
    if (layer % 3 == 0)
        launch(p, t,
               &(work){.cat = "gpu_memset",
                       .call = "cudaMemsetAsync",
                       .name = "Memset (Device)",
                       .duration = 1152});
    kernel(p, t, "nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_NNT", 30000, 60000);
    end(p, t);
    end(p, t);
    operator_on(p, t, "aten::gelu", 1000 + layer, 1 << 20);
    kernel(p, t,
           "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>(int)",
           5000, 12000);
    end(p, t);
    operator_on(p, t, "aten::layer_norm", 2000 + layer, 1 << 18);
    operator_on(p, t, "aten::native_layer_norm", 2000 + layer, 1 << 18);
    kernel(
        p, t,
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)",
        4000, 9000);
    end(p, t);
    end(p, t);
}

static void backward_layer(player *p, thread *t, uint64_t layer)
{
    const uint64_t bucket = 3000 + layer / 2;
    operator_on(p, t, "autograd::engine::evaluate_function: AddmmBackward0", layer, 1 << 20);
    operator_on(p, t, "AddmmBackward0", layer, 1 << 20);
    for (int i = 0; i < 2; i++) {
        operator_on(p, t, "aten::mm", layer, 1 << 20);
        kernel(p, t, "nvjet_sm90_tst_128x192_64x4_2x1_v_bz_coopA_TNN", 30000, 60000);
        end(p, t);
    }
    end(p, t);
    operator_on(p, t, "torch::autograd::AccumulateGrad", bucket, 1 << 20);
    operator_on(p, t, "aten::copy_", bucket, 1 << 20);
    kernel(p, t,
           "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda>(int)",
           3000, 8000);
    end(p, t);
    end(p, t);
    end(p, t);
    if (p->job->ranks > 1 && layer % 2 == 0)
        all_reduce(p, t, bucket);
}

static void copy(player *p, thread *t, const char *name, const char *kernel_name, uint64_t storage)
{
    operator_on(p, t, name, storage, 1 << 16);
    operator_on(p, t, "aten::copy_", storage, 1 << 16);
    launch(p, t,
           &(work){.cat = "gpu_memcpy",
                   .call = "cudaMemcpyAsync",
                   .name = kernel_name,
                   .duration = between(p, 3000, 20000)});
}

static void update(player *p, thread *t)
{
    begin(p, t, "Optimizer.step#AdamW.step")->scope = 7;
    make_wait(p, t, COMPUTE, NCCL);
    for (int i = 0; i < 2; i++) {
        frame *n = begin(p, t, "aten::_fused_adamw_");
        for (uint64_t layer = 0; layer < 8 && layer < p->job->layers; layer++)
            add_tensor(n, 3000 + layer / 2, 1 << 20);
        kernel(p, t,
               "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<AdamW>(int)",
               40000, 90000);
        end(p, t);
    }
    end(p, t);
}

static void step(player *p, uint32_t number)
{
    static char name[32]; /* until the operator ends */
    thread *main_thread = &p->threads[MAIN], *backward = &p->threads[BACKWARD];
    snprintf(name, sizeof name, p->job->is_real ? "train#%u" : "ProfilerStep#%u", number);
    begin(p, main_thread, name)->scope = 7;
    copy(p, main_thread, "aten::to", "Memcpy HtoD (Pageable -> Device)", 9000);
    end(p, main_thread);
    end(p, main_thread);
    if (p->job->ranks > 1)
        exchange(p, main_thread, 9001);
    make_wait(p, main_thread, COMPUTE, NCCL);
    for (uint64_t layer = 0; layer < p->job->layers; layer++)
        forward_layer(p, main_thread, layer);
    backward->now = main_thread->now + 60000;
    for (uint64_t layer = p->job->layers; layer-- > 0;)
        backward_layer(p, backward, layer);
    main_thread->now = backward->now + 60000;
    update(p, main_thread);
    copy(p, main_thread, "aten::item", "Memcpy DtoH (Device -> Pageable)", 9002);
    wait_for_stream(p, main_thread, COMPUTE);
    end(p, main_thread);
    end(p, main_thread);
    end(p, main_thread);
    main_thread->now += 20000;
}

/* ---- a rank ---- */

static FILE *open_file(const player *p, const char *kind)
{
    char path[700];
    snprintf(path, sizeof path, "%s.%u.%s.json", p->job->prefix, p->rank, kind);
    FILE *f = fopen(path, "w");
    if (!f)
        stop(path);
    return f;
}

static void put_pg_config(FILE *f, const torch_job *job, const char *quote)
{
    fprintf(
        f,
        "[{%spg_name%s: %s0%s, %spg_desc%s: %sdefault_pg%s, %sbackend_config%s: %scuda:nccl%s, %sranks%s: [",
        quote, quote, quote, quote, quote, quote, quote, quote, quote, quote, quote, quote, quote,
        quote);
    for (uint32_t r = 0; r < job->ranks; r++)
        fprintf(f, "%s%u", r ? ", " : "", r);
    fprintf(f, "], %sgroup_size%s: %u}", quote, quote, job->ranks);
    for (uint32_t g = 0; g < job->ranks / 2; g++)
        fprintf(
            f,
            ", {%spg_name%s: %s%u%s, %spg_desc%s: %spair%s, %sbackend_config%s: %scuda:nccl%s, %sranks%s: [%u, %u], "
            "%sgroup_size%s: 2}",
            quote, quote, quote, g + 1, quote, quote, quote, quote, quote, quote, quote, quote,
            quote, quote, quote, 2 * g, 2 * g + 1, quote, quote);
    fputs("]", f);
}

/* Node 1 is the process; a node for each thread, and one that describes the groups. */
static void begin_files(player *p)
{
    fprintf(
        p->host,
        "{\n  \"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": %d, \"time\": \"2026-11-15 06:49:36\", "
        "\"start_ts\": 61344,\n  \"nodes\": [",
        PID);
    fprintf(
        p->device,
        "{\n \"schemaVersion\": 1, \"record_shapes\": 1,\n \"distributedInfo\": {\"backend\": \"nccl\", "
        "\"rank\": %u, \"world_size\": %u, \"pg_count\": %u, \"pg_config\": ",
        p->rank, p->job->ranks, 1 + p->job->ranks / 2);
    put_pg_config(p->device, p->job, "\"");
    fprintf(p->device, "},\n \"displayTimeUnit\": \"ms\",\n \"traceEvents\": [");
    for (int i = 0; i < 2; i++) {
        frame n = {
            .id = p->next_id++, .name = "[pytorch|profiler|execution_trace|thread]", .scope = 7};
        p->threads[i].node = n.id;
        put_host(p, &n, 1, i + 1);
    }
}

static void put_groups(player *p)
{
    FILE *f = p->host;
    fprintf(f,
            ",\n    {\"id\": %" PRIu64
            ", \"name\": \"## process_group:init ##\", \"ctrl_deps\": %" PRIu64
            ", \"inputs\": {\"values\": [\"",
            p->next_id++, p->threads[MAIN].node);
    put_pg_config(f, p->job, "\\\"");
    fputs(
        "\"], \"shapes\": [[]], \"types\": [\"String\"], \"strides\": [[]]}, \"outputs\": {\"values\": [], \"shapes\": [], "
        "\"types\": [], \"strides\": []}, \"attrs\": [",
        f);
    static const char *const names[] = {"rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid"};
    for (int i = 0; i < 6; i++)
        put_attr(f, names[i], "uint64", i == 3 ? 7 : i == 4);
    fputs("{\"name\": \"op_schema\", \"type\": \"string\", \"value\": \"\"}]}", f);
    p->totals.host_nodes++;
}

static void end_files(player *p)
{
    const frame process = {
        .id = 1, .name = "[pytorch|profiler|execution_trace|process]", .scope = 7};
    put_host(p, &process, 1, 0);
    fputs("\n  ],\n  \"finish_ts\": 61497\n}\n", p->host);
    fputs("\n ],\n \"traceName\": \"made up\"\n}\n", p->device);
    if (fclose(p->host) || fclose(p->device))
        stop("torch_trace");
}

torch_totals torch_make(const torch_job *job)
{
    torch_totals totals = {0};
    for (uint32_t rank = 0; rank < job->ranks; rank++) {
        player *p = calloc(1, sizeof *p);
        if (!p)
            stop("torch_trace");
        *p = (player){.job = job,
                      .rank = rank,
                      .offset = (int64_t)rank * TORCH_CLOCK_STEP_NS,
                      .next_id = 2,
                      .next_rf = 1,
                      .next_correlation = 1000};
        orr_rng_init(&p->rng, job->seed, 0);
        p->threads[MAIN].now = p->threads[BACKWARD].now = epoch_ns;
        p->host = open_file(p, "host");
        p->device = open_file(p, "device");
        begin_files(p);
        put_groups(p);
        for (uint32_t s = 0; s < job->steps; s++)
            step(p, s);
        end_files(p);
        totals = p->totals;
        free(p);
    }
    return totals;
}
