/* SPDX-License-Identifier: Apache-2.0 */
/* room: stage, chakra */
/* Options that are all zero: every public function that takes options works with the defaults or
 * says what is missing.  Under the sanitizers (make check) this is also what nobody may read or
 * leak.  orr_run_create has more in test_run.c. */
#include "check.h"
#include "files.h"

#include <orrery/check.h>
#include <orrery/feeder.h>
#include <orrery/lab/chrome_trace.h>
#include <orrery/lab/explain.h>
#include <orrery/lab/export.h>
#include <orrery/lab/gemm.h>
#include <orrery/lab/gen.h>
#include <orrery/lab/info.h>
#include <orrery/lab/issue_log.h>
#include <orrery/lab/layers.h>
#include <orrery/lab/link.h>
#include <orrery/lab/llm.h>
#include <orrery/lab/model.h>
#include <orrery/lab/mpi_trace.h>
#include <orrery/lab/nccl.h>
#include <orrery/lab/plan.h>
#include <orrery/lab/pytorch.h>
#include <orrery/lab/scalesim.h>
#include <orrery/lab/schedgen.h>
#include <orrery/lab/serve.h>
#include <orrery/lab/simai.h>
#include <orrery/lab/stage.h>
#include <orrery/report.h>
#include <orrery/run.h>
#include <orrery/view.h>

static orr_error err;

/* Done, or refused in words. */
static void fine(orr_code code, const char *what)
{
    if (code != ORR_OK && (code == ORR_EBUG || !err.message[0]))
        fail_msg("%s: code %d, \"%s\"", what, (int)code, err.message);
    err.message[0] = 0;
}
#define FINE(call) fine((call), #call)
/* All zero but for the size of the struct itself: all defaults. */
#define PLAIN(type) (&(type){.size = sizeof(type)})

static orr_set *ring_set(void)
{
    const orr_pattern *ring = orr_pattern_find("send_recv_ring");
    orr_gen_options gen = ring->defaults;
    orr_set *set;
    gen.ranks = 2;
    CHECK_OK(orr_pattern_set(ring, &gen, &set, &err), &err);
    return set;
}

static orr_span bytes(const char *text)
{
    return (orr_span){(const uint8_t *)text, strlen(text)};
}

TEST(test_zero_options__of_whatever_makes_traces)
{
    const orr_pattern *p;
    orr_set *set = NULL;
    orr_trace *t = NULL;
    for (size_t i = 0; (p = orr_pattern_at(i)); i++) {
        FINE(orr_pattern_set(p, &(orr_gen_options){0}, &set, &err));
        orr_set_close(set);
        set = NULL;
        FINE(orr_pattern_trace(p, &(orr_gen_options){0}, 0, &t, &err));
        orr_trace_destroy(t);
        t = NULL;
    }
    FINE(orr_gen_write_samples(&(orr_gen_options){0}, ".", &err));
    const orr_schedgen_pattern *s;
    for (size_t i = 0; (s = orr_schedgen_at(i)); i++) {
        orr_goal *g = NULL;
        orr_schedgen_totals totals;
        (void)orr_schedgen_repair(s, &(orr_schedgen_options){0});
        FINE(orr_schedgen_goal(s, &(orr_schedgen_options){0}, &g, &err));
        orr_goal_free(g);
        FINE(orr_schedgen_write(s, &(orr_schedgen_options){.is_quiet = true}, "s.goal", &totals,
                                &err));
    }
    orr_stage *job = NULL;
    FINE(orr_stage_create(&(orr_stage_options){0}, &job, &err));
    orr_stage_destroy(job);
}

TEST(test_zero_options__of_models)
{
    const orr_model *m = orr_model_find("gpt2");
    const orr_model nothing = {0};
    CHECK(m != NULL);
    for (int k = 0; k < 2; k++, m = &nothing) {
        orr_llm_options llm = {0};
        orr_llm_memory memory[ORR_LLM_ZEROS];
        orr_serve_options serve = {0};
        orr_serve_report report;
        orr_set *set = NULL;
        FINE(orr_model_check(m, &err));
        if (k == 0)
            CHECK_EQ_U(orr_llm_ranks(&llm), 1);
        FINE(orr_llm_training(m, &llm, &set, &err));
        orr_set_close(set);
        set = NULL;
        FINE(orr_llm_memory_of(m, &llm, 0, &memory[0], &err));
        FINE(orr_llm_memory_most(m, &llm, memory, &err));
        FINE(orr_llm_complete(m, &llm, &err));
        FINE(orr_serve(m, &serve, &set, &report, &err));
        orr_set_close(set);
        FINE(orr_serve_complete(m, &serve, &err));
    }
    orr_plan_search *search = NULL;
    orr_plan_serving *servings = NULL;
    size_t count = 0;
    CHECK_CODE(orr_plan_search_create(&(orr_plan_options){0}, &search, &err), ORR_EUSAGE, &err);
    CHECK(search == NULL);
    CHECK_CODE(orr_plan_search_create(&(orr_plan_options){.size = sizeof(orr_plan_options)},
                                      &search, &err),
               ORR_EUSAGE, &err);
    CHECK_CODE(orr_plan_serve(&(orr_plan_serve_options){0}, &servings, &count, &err), ORR_EUSAGE,
               &err);
    CHECK_CODE(orr_plan_serve(&(orr_plan_serve_options){.size = sizeof(orr_plan_serve_options)},
                              &servings, &count, &err),
               ORR_EUSAGE, &err);
    orr_plan_search_destroy(search);
    orr_plan_serve_free(servings);
}

TEST(test_zero_options__of_readers)
{
    orr_shapes *shapes = NULL;
    orr_gemm *gemm = NULL;
    orr_gemm_sweep *sweep = NULL;
    CHECK_OK(orr_shapes_parse(bytes("Layer,M,N,K\na,8,8,8\n"), "x", &(orr_shapes_options){0},
                              &shapes, &err),
             &err);
    FINE(orr_gemm_create(shapes, &(orr_gemm_options){0}, &gemm, &err));
    orr_gemm_destroy(gemm);
    FINE(orr_gemm_sweep_create(shapes, &(orr_gemm_options){0}, 0, 0, &sweep, &err));
    orr_gemm_sweep_destroy(sweep);
    orr_shapes_free(shapes);

    orr_scalesim_network *network = NULL;
    orr_scalesim *cost = NULL;
    CHECK_OK(orr_scalesim_parse_network(bytes("Layer,M,N,K,\na,8,8,8,\n"), "x",
                                        &(orr_scalesim_read){.form = ORR_SCALESIM_GEMM}, &network,
                                        &err),
             &err);
    FINE(orr_scalesim_run(&(orr_scalesim_config){0}, network, &(orr_scalesim_options){0}, &cost,
                          &err));
    orr_scalesim_destroy(cost);
    orr_scalesim_network_free(network);

    const char *const nothing[] = {"", " ", "{}", "[]", "{\"traceEvents\": []}", "{\"nodes\": []}"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        orr_timeline *timeline = NULL;
        orr_issue_log *log = NULL;
        orr_layers *layers = NULL;
        orr_set *set = NULL;
        orr_simai_report simai;
        orr_trace *t = NULL;
        orr_fx *fx = NULL;
        orr_export_report exported;
        orr_linked *linked = NULL;
        orr_link *link = NULL;
        const orr_span text = bytes(nothing[i]);
        FINE(orr_chrome_trace_parse(text, "x", &(orr_chrome_trace_options){0}, &timeline, &err));
        FINE(orr_issue_log_parse(text, "x", &(orr_issue_log_options){0}, &log, &err));
        FINE(orr_layers_parse(text, "x", &(orr_layers_read_options){0}, &layers, &err));
        FINE(orr_simai_parse(text, "x", &(orr_simai_options){0}, &set, &simai, &err));
        FINE(orr_trace_parse(text, "x", &(orr_read_options){0}, &t, &err));
        FINE(orr_export_parse(text, "x", &(orr_export_options){0}, &fx, &exported, &err));
        FINE(orr_linked_parse(text, "x", &(orr_linked_options){0}, &linked, &err));
        FINE(orr_link_parse(&text, &text, &(orr_link_options){0}, &link, &err));
        orr_timeline_destroy(timeline);
        orr_issue_log_free(log);
        orr_layers_free(layers);
        orr_set_close(set);
        orr_trace_destroy(t);
        orr_fx_close(fx);
        orr_linked_free(linked);
        orr_link_close(link);
    }
    orr_nccl_report nccl;
    orr_schedgen_totals totals;
    orr_mpi_trace_remarks remarks;
    orr_link_job *job = NULL;
    CHECK(orr_nccl_convert(NULL, 0, &(orr_nccl_options){0}, &nccl, &err) != ORR_OK);
    CHECK(orr_mpi_trace_write("nothing", &(orr_mpi_trace_options){0}, "out", &totals, &remarks,
                              &err) != ORR_OK);
    CHECK(orr_link_job_open(NULL, 0, &(orr_link_options){0}, &job, &err) != ORR_OK);
}

TEST(test_zero_options__of_what_looks_at_traces)
{
    orr_set *set = ring_set();
    const orr_trace *t = orr_set_trace(set, 0);
    orr_info *info = NULL;
    orr_check_report *checked = NULL;
    orr_feeder *feeder = NULL;
    orr_report *page = NULL;
    orr_timeline *empty = NULL;
    orr_view_graph_result drawn;
    FINE(orr_info_create(set, &(orr_info_options){0}, &info, &err));
    orr_info_destroy(info);
    FINE(orr_check_set(set, &(orr_check_options){0}, &checked, &err));
    orr_check_report_destroy(checked);
    FINE(orr_feeder_create(t, &(orr_feeder_options){0}, &feeder, &err));
    orr_feeder_close(feeder);
    FINE(orr_view_json(t, "t.json", &(orr_view_json_options){0}, &err));
    FINE(orr_view_graph(t, "t.dot", &(orr_view_graph_options){0}, &drawn, &err));
    FINE(orr_view_graph_ranks(set, "s.dot", &(orr_view_graph_options){0}, &drawn, &err));
    FINE(orr_trace_write(t, "t.et", &(orr_write_options){0}, &err));
    FINE(orr_set_save(set, "t.orr", &(orr_set_save_options){0}, &err));
    CHECK_OK(orr_view_json(t, "t.json", PLAIN(orr_view_json_options), &err), &err);
    CHECK_OK(orr_view_graph(t, "t.dot", PLAIN(orr_view_graph_options), &drawn, &err), &err);
    CHECK_OK(orr_view_graph_ranks(set, "s.dot", PLAIN(orr_view_graph_options), &drawn, &err), &err);
    CHECK_OK(orr_trace_write(t, "t.et", PLAIN(orr_write_options), &err), &err);
    CHECK_OK(orr_set_save(set, "t.orr", PLAIN(orr_set_save_options), &err), &err);
    CHECK_OK(orr_check_set(set, PLAIN(orr_check_options), &checked, &err), &err);
    orr_check_report_destroy(checked);
    CHECK_OK(orr_feeder_create(t, PLAIN(orr_feeder_options), &feeder, &err), &err);
    orr_feeder_close(feeder);
    CHECK_OK(orr_report_create(PLAIN(orr_report_options), &page, &err), &err);
    orr_report_destroy(page);
    page = NULL;
    CHECK_OK(orr_timeline_create(&empty, &err), &err);
    CHECK_OK(orr_timeline_seal(empty, &err), &err);
    FINE(orr_view_gantt(empty, "g.txt", &(orr_view_gantt_options){0}, &err));
    orr_timeline_destroy(empty);
    FINE(orr_report_create(&(orr_report_options){0}, &page, &err));
    orr_report_destroy(page);

    orr_run *r;
    orr_explanation *why = NULL;
    const orr_run_config config = {.size = sizeof config, .set = set};
    CHECK_OK(orr_run_create(&config, &r, &err), &err);
    CHECK_OK(orr_run_to_end(r, &err), &err);
    FINE(orr_run_explain(r, &(orr_explain_options){0}, &why, &err));
    orr_explanation_destroy(why);
    orr_run_destroy(r);
    orr_set_close(set);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_zero_options__of_whatever_makes_traces),
        RUN(test_zero_options__of_models),
        RUN(test_zero_options__of_readers),
        RUN(test_zero_options__of_what_looks_at_traces),
    };
    return RUN_ALL(tests);
}
