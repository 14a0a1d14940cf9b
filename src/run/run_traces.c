/* SPDX-License-Identifier: Apache-2.0 */
/* run_traces.c - orr_run with traces: through the system layer, on a network model (sim.c).
 *
 * The configuration becomes orr_sim_options, field by field: the two structs differ on purpose,
 * since one is public and may only grow, the other is internal and may change. */
#include "engine.h"
#include "models/collective/nccl/nccl_model.h"

#include "models/network/packet/packet_run.h"
#include "run_state.h"

#include <orrery/lab/chip.h>
#include <orrery/lab/software.h>

#include <stdio.h>
#include <stdlib.h>

static uint32_t supports(const char *network)
{
    const uint32_t all = ORR_RUN_SPANS | ORR_RUN_PHASES | ORR_RUN_SCHEDULE | ORR_RUN_ISSUES |
                         ORR_RUN_LINKS | ORR_RUN_HISTORY | ORR_RUN_SYSTEM | ORR_RUN_PATH |
                         ORR_RUN_WHAT_IF | ORR_RUN_ROWS | ORR_RUN_REPORT | ORR_RUN_FOLDS;
    return all | (network && strcmp(network, "packet") == 0 ? ORR_RUN_PACKETS : 0);
}

/* ---- defaults for system and network ---- */

static const orr_system plain_system = {.size = sizeof plain_system};

static orr_code need_set(orr_run *r, orr_error *err)
{
    const orr_set_options opt = {.size = sizeof opt,
                                 .threads = r->config.threads,
                                 /* Not only to fold: ranks of a class share the times of their
                                  * nodes, which must not depend on folding (comm_times.c). */
                                 .joins_alike = true};
    if (r->config.set)
        return ORR_OK;
    const orr_code code = orr_set_open(r->config.traces, &opt, &r->set, err);
    if (!code)
        r->config.set = r->set;
    return code;
}

/* One switch with one port per rank, 50 GB/s and 500 ns. */
static orr_code plain_network(orr_run *r, orr_error *err)
{
    const orr_code code = need_set(r, err);
    if (code)
        return code;
    r->plain = (orr_net_config){.size = sizeof r->plain,
                                .dims = 1,
                                .shape = {ORR_NET_SWITCH},
                                .npus = {orr_set_rank_count(r->config.set)},
                                .bandwidth = {50},
                                .latency_ns = {500}};
    r->config.dims = &r->plain;
    return ORR_OK;
}

/* A preset, or one with a host slowed down by a factor: "torch-eager:1.3". */
static orr_code find_software(orr_run *r,
                              const char *name,
                              const orr_software **out,
                              orr_error *err)
{
    const char *colon = strchr(name, ':');
    char *end = NULL;
    const double times = colon ? strtod(colon + 1, &end) : 1;
    const char *preset =
        colon ? orr_arena_text(r->arena, (orr_str){name, (size_t)(colon - name)}) : name;
    if (!preset)
        return orr_no_memory(err);
    *out = orr_software_find(preset);
    if (!*out)
        return orr_fail(err, ORR_EUSAGE, NULL, "unknown software '%s'", preset);
    if (!colon)
        return ORR_OK;
    if (end == colon + 1 || *end || !(times >= 0.01 && times <= 100))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "software '%s': expected a factor from 0.01 to 100 after the colon", name);
    orr_software *slower = orr_arena_new(r->arena, 1, orr_software);
    if (!slower)
        return orr_no_memory(err);
    *slower = **out;
    /* A factor means that the host was measured: its error is that of a known one. */
    slower->knows_host = true;
    slower->host *= times;
    slower->block_us *= times;
    slower->step_us *= times;
    slower->cache_us *= times;
    slower->experts_us *= times;
    slower->expert_us *= times;
    slower->micro_batch_us *= times;
    slower->collective_us *= times;
    slower->tensor_us *= times;
    slower->gather_us *= times;
    slower->again_us *= times;
    slower->reduce_us *= times;
    *out = slower;
    return ORR_OK;
}

static orr_code create(orr_run *r, orr_error *err)
{
    orr_run_config *c = &r->config;
    /* The machine is cut to the ranks of the job, so the set is read first; otherwise the engine
     * reads it in the reference's order. */
    orr_code code = c->machine ? need_set(r, err) : ORR_OK;
    if (!code && c->machine)
        code = run_take_machine(r, orr_set_rank_count(c->set), err);
    if (!code && !c->topology && !c->dims)
        code = plain_network(r, err);
    if (code)
        return code;
    if (!c->system && !c->own_system)
        c->own_system = &plain_system;
    /* A name of the table, or a file that describes a chip. */
    const orr_chip *chip = c->hardware ? orr_chip_find(c->hardware) : NULL;
    const orr_software *software = NULL;
    if (c->hardware && !chip) {
        orr_chip *own = orr_arena_new(r->arena, 1, orr_chip);
        if (!own)
            return orr_no_memory(err);
        /* A word without a dot or a slash is an unknown name, not a missing file. */
        if (!strchr(c->hardware, '.') && !strchr(c->hardware, '/'))
            return orr_fail(err, ORR_EUSAGE, NULL, "unknown chip '%s'", c->hardware);
        if ((code = orr_chip_read(c->hardware, own, err)))
            return code;
        chip = own;
    }
    if (c->software && (code = find_software(r, c->software, &software, err)))
        return code;
    const orr_sim_options opt = {
        .workload = c->traces,
        .set = c->set,
        .system = c->system,
        .own_system = c->own_system,
        .network = c->topology,
        .dims = c->dims,
        .packet = c->packet_config,
        .packet_keys = c->packet_keys,
        .logical = c->logical,
        .memory = c->memory,
        .host_GBps = r->machine.size ? r->machine.host_GBps : 0,
        .groups = c->groups,
        .plans = c->plans,
        .ranks_file = c->ranks_file,
        .logging = c->logging,
        .fidelity = c->network,
        .custom_network = c->own_network,
        .algorithms = c->own_algorithms,
        .compute = c->own_compute,
        .queues_per_dim = c->queues_per_dim,
        .injection_scale = c->injection_scale,
        .rendezvous = c->rendezvous,
        .steps = c->steps,
        .fold = c->fold == ORR_RUN_FOLD_OFF      ? ORR_SIM_FOLD_OFF
                : c->fold == ORR_RUN_FOLD_VERIFY ? ORR_SIM_FOLD_VERIFY
                                                 : ORR_SIM_FOLD_AUTO,
        .trace_log = c->records & ORR_RUN_ISSUES,
        .wants_history = c->records & ORR_RUN_HISTORY,
        .wants_links = c->records & ORR_RUN_LINKS,
        .rules = c->rules,
        .packet_rules = c->packet_rules,
        .threads = c->threads,
        .record = c->records & ORR_RUN_PHASES  ? ORR_SIM_RECORD_PHASES
                  : c->records & ORR_RUN_SPANS ? ORR_SIM_RECORD_NODES
                                               : ORR_SIM_RECORD_FIGURES,
        .critical_path = c->path_steps,
        .records_goal = c->records & ORR_RUN_SCHEDULE,
        .shows_progress = c->shows_progress,
        .max_events = c->max_events,
        .program = c->program,
        .change = {.has_dimension = c->change.has_dimension,
                   .dimension = c->change.dimension,
                   .bandwidth = c->change.bandwidth,
                   .latency = c->change.latency,
                   .compute = c->change.compute,
                   .memory = c->change.memory},
        .machine = run_machine_text(r),
        .chip = chip,
        .is_ideal = c->is_ideal,
        /* Also in a rerun, which has the name from the first. */
        .chip_is_default = c->machine && c->hardware && strcmp(c->hardware, r->machine.chip) == 0,
        .software = software,
        .nccl_generation =
            (int)(c->machine ? nccl_generation_of(r->machine.architecture) : NCCL_OTHER),
        .nccl_table = r->nccl_table,
        .is_torus = r->is_torus,
        .up_reduces = c->machine && r->machine.up_reduces,
        .out_reduces = c->machine && r->machine.fabric_reduces,
    };
    return orr_sim_create(&opt, &r->is.sim, err);
}

static void destroy(orr_run *r)
{
    orr_sim_destroy(r->is.sim);
}

static orr_code step(orr_run *r, orr_error *err)
{
    return orr_sim_step(r->is.sim, err);
}

static orr_code to_end(orr_run *r, orr_error *err)
{
    return orr_sim_run(r->is.sim, err);
}

static void stop(orr_run *r)
{
    orr_sim_stop(r->is.sim);
}

/* ---- results ---- */

static uint32_t ranks(const orr_run *r)
{
    return orr_sim_ranks(r->is.sim);
}

static uint32_t finished(const orr_run *r)
{
    return orr_sim_finished(r->is.sim);
}

static uint32_t simulated(const orr_run *r)
{
    return orr_sim_simulated(r->is.sim);
}

static uint32_t simulated_last(const orr_run *r)
{
    return orr_sim_simulated_last(r->is.sim);
}

static const char *fold_why(const orr_run *r)
{
    return orr_sim_fold_why(r->is.sim);
}

static uint32_t threads(const orr_run *r)
{
    return orr_sim_threads(r->is.sim);
}

static const char *threads_why(const orr_run *r)
{
    return orr_sim_threads_why(r->is.sim);
}

static orr_run_steps steps(const orr_run *r)
{
    const orr_sim_steps s = orr_sim_steps_of(r->is.sim);
    return (orr_run_steps){.asked = s.asked,
                           .simulated = s.simulated,
                           .total = run_ps(s.total),
                           .first = run_ps(s.first),
                           .last = run_ps(s.last)};
}

static void rank_at(const orr_run *r, uint32_t rank, orr_run_rank *out)
{
    const orr_sim_rank_result *x = orr_sim_rank(r->is.sim, rank);
    *out = (orr_run_rank){.finished_at = run_ps(x->finished_at),
                          .wall = run_ps(x->wall),
                          .gpu_time = run_ps(x->gpu_time),
                          .comm_time = run_ps(x->comm_time),
                          .cpu_time = run_ps(x->cpu_time),
                          .memory_time = run_ps(x->memory_time),
                          .gpu_total = run_ps(x->gpu_total),
                          .peak_memory = x->peak_memory};
}

static orr_ps time_of(const orr_run *r)
{
    return run_ps(orr_sim_time(r->is.sim));
}

static uint64_t events(const orr_run *r)
{
    return orr_sim_events(r->is.sim);
}

static uint64_t messages(const orr_run *r)
{
    return orr_sim_messages(r->is.sim);
}

/* Known after the run. */
static const char *idle_plan(const orr_run *r, size_t i)
{
    orr_collective kind;
    uint32_t members;
    /* Only of a complete run: in another one its collective may not have come yet. */
    const char *path = orr_sim_finished(r->is.sim) == orr_sim_ranks(r->is.sim)
                           ? sys_unused_plan(r->is.sim, i, &kind, &members)
                           : NULL;
    return path ? orr_arena_print(r->arena,
                                  "%s was not used: no %s has %u ranks and a size it is for", path,
                                  coll_kind_name(kind), members)
                : NULL;
}

static const char *warning(const orr_run *r, size_t i)
{
    size_t count = 0;
    const char *line = orr_sim_warning(r->is.sim, i);
    /* Warnings of several sources form one list: indices of later ones start where the earlier ones
     * end. */
    while (!line && orr_sim_warning(r->is.sim, count))
        count++;
    if (line)
        return line;
    if (orr_sim_ignores_log_patterns(r->is.sim) && i == count++)
        return orr_arena_print(
            r->arena, "the patterns of %s are not used, as in ASTRA-sim; --no-compat uses them",
            r->config.logging);
    return idle_plan(r, i - count);
}

static const struct orr_stall *stall(orr_run *r)
{
    return orr_sim_stall(r->is.sim);
}

/* First what the ranks wait for, then the network's explanation. */
static const char *stall_line(orr_run *r, size_t i)
{
    size_t count;
    const char *const *lines = orr__stall_lines(r->is.sim, &count);
    if (!lines || i < count)
        return lines ? lines[i] : NULL;
    const char *line = orr_sim_network_stall(r->is.sim, i - count);
    return line ? orr_arena_print(r->arena, "network: %s", line) : NULL;
}

static bool input(const orr_run *r, size_t i, const char **role, const char **path)
{
    const orr_run_config *c = &r->config;
    const struct {
        const char *role, *path;
    } all[] = {{"traces", c->traces},         {"system", c->system},      {"network", c->topology},
               {"memory", c->memory},         {"groups", c->groups},      {"ranks", c->ranks_file},
               {"packets", c->packet_config}, {"dimensions", c->logical}, {"plans", c->plans}};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (all[k].path && i-- == 0) {
            *role = all[k].role;
            *path = all[k].path;
            return true;
        }
    return false;
}

static void visit_links(const orr_run *r, orr_net_link_visit visit, void *context)
{
    orr_sim_visit_links(r->is.sim, visit, context);
}

static uint32_t dimensions(const orr_run *r)
{
    return orr_sim_dimension_count(r->is.sim);
}

static void dimension_at(const orr_run *r, uint32_t i, orr_run_dimension *out)
{
    const orr_sim_dimension d = orr_sim_dimension_at(r->is.sim, i);
    *out = (orr_run_dimension){.shape = d.shape,
                               .ranks = d.ranks,
                               .bandwidth = d.bandwidth,
                               .latency_ns = d.latency_ns,
                               .messages = d.messages,
                               .bytes = d.bytes,
                               .links = d.links};
}

static bool packets(const orr_run *r, struct orr_packet_figures *out)
{
    return orr_sim_packets(r->is.sim, out);
}

static orr_code fabric_view(const orr_run *r, struct orr_fabric_view **out, orr_error *err)
{
    orr_packet_figures figures;
    return packets(r, &figures)
               ? orr__fabric_view_take(orr__net_packet_fabric(r->is.sim->net), &figures, out, err)
               : ORR_OK;
}

static const orr_set *traces(const orr_run *r)
{
    return r->is.sim->set;
}

static double peak_flops(const orr_run *r)
{
    const orr_chip *chip = r->is.sim->opt.chip;
    if (chip)
        return chip->peak_tflops[ORR_TYPE_BF16] * 1e12;
    return r->is.sim->system.roofline ? r->is.sim->system.peak_perf : 0;
}

static orr_code timeline(const orr_run *r, orr_run_rows rows, orr_timeline **out, orr_error *err)
{
    return orr_sim_timeline_to_show(r->is.sim, rows, out, err);
}

static orr_code critical_path(const orr_run *r, struct orr_critical_path **out, orr_error *err)
{
    return orr_sim_critical_path(r->is.sim, out, err);
}

static orr_code goal(const orr_run *r, orr_goal **out, orr_error *err)
{
    return orr_sim_goal(r->is.sim, out, err);
}

/* ---- writers ---- */

static orr_code write_text(const orr_run *r, const char *path, orr_error *err)
{
    return orr_sim_write_text(r->is.sim, path, err);
}

static orr_code write_json(const orr_run *r, const char *path, orr_error *err)
{
    return orr_sim_write_json(r->is.sim, path, err);
}

static orr_code write_figures(const orr_run *r, const char *path, orr_error *err)
{
    return orr_sim_write_figures(r->is.sim, path, err);
}

static orr_code write_csv(const orr_run *r, const char *path, orr_error *err)
{
    return orr_sim_write_csv(r->is.sim, false, path, err);
}

static orr_code write_alike(const orr_run *r, const char *path, orr_error *err)
{
    return orr_sim_write_csv(r->is.sim, true, path, err);
}

static orr_code write_links(const orr_run *r, const char *path, orr_error *err)
{
    return orr_sim_write_links(r->is.sim, path, err);
}

static orr_code write_trace_log(const orr_run *r, const char *path, orr_error *err)
{
    return orr_sim_write_trace_log(r->is.sim, path, err);
}

/* PREFIX.<rank>.json for each finished rank, in order of completion. */
static orr_code write_memory(const orr_run *r, const char *prefix, orr_error *err)
{
    const orr_sim *s = r->is.sim;
    char path[4096];
    orr_code code = ORR_OK;
    /* Tensors were not tracked: nothing to write, which is not an error. */
    if (!orr_sim_memory_trace(s))
        return ORR_OK;
    if (!prefix)
        prefix = orr_sim_memory_trace(s);
    for (uint32_t i = 0; i < orr_sim_finished(s) && !code; i++) {
        const uint32_t rank = orr_sim_finished_rank(s, i);
        snprintf(path, sizeof path, "%s.%u.json", prefix, rank);
        code = orr_sim_write_memory_trace(s, rank, path, err);
    }
    return code;
}

/* ASTRA-sim's output (astra-sim.md 10.1): its console, log.log, err.log, and the sinks of its
 * logging file. */
static orr_code write_old(const orr_run *r, const char *what, const char *path, orr_error *err)
{
    static const char *const names[] = {"console-log", "file-log", "error-log"};
    static const orr_sim_log logs[] = {ORR_SIM_LOG_CONSOLE, ORR_SIM_LOG_FILE, ORR_SIM_LOG_ERRORS};
    for (size_t i = 0; i < 3; i++)
        if (strcmp(what, names[i]) == 0)
            return orr_sim_write_old_log(r->is.sim, path, logs[i], err);
    return strcmp(what, "log-sinks") == 0
               ? orr_sim_write_log_sinks(r->is.sim, err)
               : orr_fail(err, ORR_EUSAGE, NULL, "a run of traces writes no \"%s\"", what);
}

static const run_writer writers[] = {
    {"text", write_text},
    {"json", write_json},
    {"figures", write_figures},
    {"csv", write_csv},
    {"csv-alike", write_alike},
    {"links", write_links},
    {"trace-log", write_trace_log},
    {"memory", write_memory},
    {NULL, NULL},
};

const run_engine run_traces_engine = {
    .name = "traces",
    .supports = supports,
    .create = create,
    .destroy = destroy,
    .step = step,
    .to_end = to_end,
    .stop = stop,
    .ranks = ranks,
    .finished = finished,
    .simulated = simulated,
    .simulated_last = simulated_last,
    .fold_why = fold_why,
    .threads = threads,
    .threads_why = threads_why,
    .steps = steps,
    .rank_at = rank_at,
    .time = time_of,
    .events = events,
    .messages = messages,
    .warning = warning,
    .stall_line = stall_line,
    .stall = stall,
    .input = input,
    .visit_links = visit_links,
    .dimensions = dimensions,
    .dimension_at = dimension_at,
    .packets = packets,
    .fabric_view = fabric_view,
    .traces = traces,
    .peak_flops = peak_flops,
    .timeline = timeline,
    .critical_path = critical_path,
    .goal = goal,
    .writers = writers,
    .write_old = write_old,
};
