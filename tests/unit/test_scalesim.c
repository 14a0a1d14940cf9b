/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
#include "check.h"

#include "base/text/text.h"
#include "compat/scale_sim/scale_sim.h"

#include <orrery/lab/scalesim.h>

static orr_error err;

static const char v1_config[] = "[general]\nrun_name = \"eyeriss\"\n\n[architecture_presets]\n"
                                "ArrayHeight:    12\nArrayWidth:     14, 28\nIfmapSramSz:    108\n"
                                "FilterSramSz:   108\nOfmapSramSz:    64\nIfmapOffset:    0\n"
                                "FilterOffset:   1000\nOfmapOffset: 2000\nDataflow:       ws\n";
static const char v2_config[] =
    "[general]\nrun_name = run\n[architecture_presets]\nArrayHeight: 4\n"
    "ArrayWidth: 8\nIfmapSramSzkB: 1\nFilterSramSzkB: 2\nOfmapSramSzkB: 3\n"
    "Dataflow: is\nBandwidth: 10, 20\nMemoryBanks: 1\n"
    "[run_presets]\nInterfaceBandwidth: USER\n";

static orr_span span_of(const char *text)
{
    return (orr_span){(const uint8_t *)text, strlen(text)};
}

/* ---- configurations ---- */

TEST(test_scalesim__reads_configurations_of_v1)
{
    orr_scalesim_config c;
    CHECK_OK(orr_scalesim_parse_config(span_of(v1_config), "a.cfg", &c, &err), &err);
    CHECK_TEXT(c.run_name, "\"eyeriss\"");
    CHECK(c.array.rows == 12 && c.array.columns == 14 && c.array.dataflow == ORR_DATAFLOW_WS);
    CHECK(c.array.ifmap_words == 108 * 1024 && c.array.ofmap_words == 64 * 1024);
    CHECK(c.array.filter_offset == 1000 && c.array.ofmap_offset == 2000);
    CHECK(c.interface == ORR_INTERFACE_UNSAID && c.array.bandwidth == 0);
}

TEST(test_scalesim__reads_configurations_of_v2)
{
    orr_scalesim_config c;
    CHECK_OK(orr_scalesim_parse_config(span_of(v2_config), "a.cfg", &c, &err), &err);
    CHECK(c.array.rows == 4 && c.array.columns == 8 && c.array.dataflow == ORR_DATAFLOW_IS);
    CHECK(c.array.ifmap_words == 1024 && c.array.filter_words == 2048);
    CHECK(c.interface == ORR_INTERFACE_USER && c.array.bandwidth == 10);
    CHECK(c.array.filter_offset == 10000000 && c.array.ofmap_offset == 20000000);
}

/* One key of a good file replaced. */
static void refuse_config(const char *from, const char *to, const char *words)
{
    char text[1000];
    orr_scalesim_config c;
    const char *at = strstr(v2_config, from);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - v2_config), v2_config, to,
             at + strlen(from));
    CHECK_CODE(orr_scalesim_parse_config(span_of(text), "a.cfg", &c, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, words);
}

TEST(test_scalesim__faults_of_configurations_have_their_places)
{
    refuse_config("ArrayHeight: 4", "ArrayHeight: four",
                  "a.cfg:4:14: ArrayHeight: \"four\" is not a whole number from 1 to 1048576");
    refuse_config("ArrayWidth: 8", "ArrayWidth: 0", "a.cfg:5:13: ArrayWidth: \"0\" is not");
    refuse_config("ArrayWidth: 8", "ArrayWidth: 99999999",
                  "ArrayWidth: \"99999999\" is not a whole number from 1 to");
    refuse_config("ArrayWidth: 8", "Width: 8",
                  "a.cfg: the key \"ArrayWidth\" is missing in section [architecture_presets]");
    refuse_config("IfmapSramSzkB: 1", "IfmapSram: 1",
                  "unknown key \"IfmapSram\"; did you mean \"IfmapSramSz\"?");
    refuse_config("Dataflow: is", "Dataflow: rs",
                  "a.cfg:9:11: Dataflow: \"rs\" is not os, ws or is");
    refuse_config("USER", "user", "a.cfg:13:21: InterfaceBandwidth: \"user\" is not CALC or USER");
    refuse_config("Bandwidth: 10", "Bandwidth: -1", "is not a number of words per cycle above 0");
    refuse_config("run_name = run", "run_name = a/b", "is not the name of a folder");
}

/* ---- layers ---- */

static orr_scalesim_network *net;

static orr_code read_net(const char *text, const orr_rules_systolic *rules, orr_scalesim_form form)
{
    const orr_scalesim_read opt = {.rules = rules, .form = form};
    return orr_scalesim_parse_network(span_of(text), "dir/net.v1.csv", &opt, &net, &err);
}

static bool layer_is(size_t i, const char *name, const uint64_t sizes[8])
{
    const orr_scalesim_layer *l = orr_scalesim_network_at(net, i);
    const orr_systolic_layer x = {sizes[0], sizes[1], sizes[2], sizes[3],
                                  sizes[4], sizes[5], sizes[6], sizes[7]};
    return orr_str_is(l->name, name) && memcmp(&l->layer, &x, sizeof x) == 0;
}

TEST(test_scalesim__lines_tell_what_they_are)
{
    CHECK_OK(
        read_net("name,...\nc1, 9,8, 3,2, 4,5, 1,\n\n# note\nc2,9,8,3,2,4,5,1,2\ng,10,20,30,\n",
                 NULL, ORR_SCALESIM_ANY),
        &err);
    CHECK_EQ_U(orr_scalesim_network_count(net), 3);
    CHECK_TEXT(orr_scalesim_network_name(net), "net");
    CHECK(layer_is(0, "c1", (const uint64_t[]){9, 8, 3, 2, 4, 5, 1, 1}));
    CHECK(layer_is(1, "c2", (const uint64_t[]){9, 8, 3, 2, 4, 5, 1, 2}));
    CHECK(layer_is(2, "g", (const uint64_t[]){10, 30, 1, 30, 1, 20, 1, 1}));
    CHECK_EQ_U(orr_scalesim_network_at(net, 2)->line, 6);
    orr_scalesim_network_free(net);
}

TEST(test_scalesim__v1_passes_over_short_lines)
{
    uint32_t line;
    CHECK_OK(read_net("h\n a b ,9,8,3,2,4,5,1,\nlost,9,8,3,2,4,5,1\nDP,9,8,3,2,4,5,1,2,note\n"
                      "\"q\"\"\" ,9,8,3,2,4,5,1,\n",
                      &orr__scale_sim_v1, ORR_SCALESIM_ANY),
             &err);
    CHECK_EQ_U(orr_scalesim_network_count(net), 3);
    CHECK_EQ_U(orr_scalesim_network_skipped(net, &line), 1);
    CHECK_EQ_U(line, 3);
    CHECK(layer_is(0, "a b ", (const uint64_t[]){9, 8, 3, 2, 4, 5, 1, 1})); /* blanks kept */
    CHECK(layer_is(1, "DP", (const uint64_t[]){9, 8, 3, 2, 4, 5, 1, 1}));   /* one stride */
    CHECK(layer_is(2, "\"q\"\"\" ", (const uint64_t[]){9, 8, 3, 2, 4, 5, 1, 1}));
    orr_scalesim_network_free(net);
}

TEST(test_scalesim__v2_drops_what_is_behind_the_last_comma)
{
    CHECK_OK(read_net("h\na,9,8,3,2,4,5,1,7\n", &orr__scale_sim_v2, ORR_SCALESIM_ANY), &err);
    CHECK(layer_is(0, "a", (const uint64_t[]){9, 8, 3, 2, 4, 5, 1, 1}));
    orr_scalesim_network_free(net);
    CHECK_CODE(read_net("h\na,9,8,3,2,4,5,1\n", &orr__scale_sim_v2, ORR_SCALESIM_ANY), ORR_EINPUT,
               &err);
    CHECK_SAYS(&err, "dir/net.v1.csv:2:15: 8 or 9 columns (a convolution) expected, 7 found; "
                     "SCALE-Sim v2 drops what follows the last comma");
    CHECK_OK(read_net("h\na,2,3,4,\n", &orr__scale_sim_v2, ORR_SCALESIM_GEMM), &err);
    CHECK(layer_is(0, "a", (const uint64_t[]){2, 4, 1, 4, 1, 3, 1, 1}));
    orr_scalesim_network_free(net);
}

TEST(test_scalesim__depthwise_layers_become_one_a_channel)
{
    CHECK_OK(read_net("h\nDP1,9,8,3,2,3,1,1,\n", &orr__scale_sim_v2, ORR_SCALESIM_ANY), &err);
    CHECK_EQ_U(orr_scalesim_network_count(net), 3);
    CHECK(layer_is(2, "DP1Channel_2", (const uint64_t[]){9, 8, 3, 2, 1, 1, 1, 1}));
    orr_scalesim_network_free(net);
}

static void refuse_net(const char *text, const char *words)
{
    CHECK_CODE(read_net(text, NULL, ORR_SCALESIM_ANY), ORR_EINPUT, &err);
    CHECK(net == NULL);
    CHECK_SAYS(&err, words);
}

TEST(test_scalesim__faults_of_layers_have_their_places)
{
    refuse_net("", "dir/net.v1.csv: there are no layers in it");
    refuse_net("header\n", "there are no layers in it");
    refuse_net("a,9,8,3,2,4,5,1,\n", ":1:3: the first line must be a header");
    refuse_net("h\na,9,8\n",
               ":2:5: 8 or 9 columns (a convolution) or 4 (a GEMM) expected, 3 found");
    refuse_net("h\na,9,8,3,2,4,5,1,2,3\n", ":2:19: 8 or 9 columns (a convolution) or 4");
    refuse_net("h\na,9,8,3,2,x,5,1,\n", ":2:11: channels: \"x\" is not a whole number from 1 to");
    refuse_net("h\na,9,8,10,2,4,5,1,\n", ":2:7: the filter is higher than the ifmap: 10 of 9");
    refuse_net("h\na,9,8,3,9,4,5,1,\n", ":2:9: the filter is wider than the ifmap: 9 of 8");
    refuse_net("h\na,0,8,3,2,4,5,1,\n", ":2:3: ifmap height: \"0\" is not");
    refuse_net("h\nDP,9,8,3,2,4294967296,5,1,\n", "more than 65536 layers");
}

/* ---- runs ---- */

static orr_scalesim *run_text(const char *config,
                              const char *layers,
                              const orr_rules_systolic *rules)
{
    orr_scalesim_config c;
    orr_scalesim *r;
    const orr_scalesim_options opt = {.rules = rules, .program = "test"};
    CHECK_OK(orr_scalesim_parse_config(span_of(config), "a.cfg", &c, &err), &err);
    CHECK_OK(read_net(layers, rules, ORR_SCALESIM_ANY), &err);
    CHECK_OK(orr_scalesim_run(&c, net, &opt, &r, &err), &err);
    return r;
}

/* Layers of the same shape are looked at once and have the same figures. */
TEST(test_scalesim__layers_are_run_as_they_would_be_alone)
{
    orr_scalesim *r = run_text(v1_config, "h\na,9,8,3,2,4,5,1\nb,5,6,7\nc,9,8,3,2,4,5,1\n", NULL);
    orr_scalesim_config c;
    CHECK_OK(orr_scalesim_parse_config(span_of(v1_config), "a.cfg", &c, &err), &err);
    for (size_t i = 0; i < 3; i++) {
        orr_systolic_result alone;
        CHECK_OK(
            orr_systolic_run(&c.array, &orr_scalesim_network_at(net, i)->layer, NULL, &alone, &err),
            &err);
        CHECK_BYTES(&alone, orr_scalesim_result(r, i), sizeof alone);
    }
    orr_scalesim_destroy(r);
    orr_scalesim_network_free(net);
}

TEST(test_scalesim__failures_name_the_layer_and_its_line)
{
    orr_scalesim_config c;
    orr_scalesim *r;
    const orr_scalesim_options opt = {.rules = &orr__scale_sim_v2};
    CHECK_OK(orr_scalesim_parse_config(span_of(v1_config), "a.cfg", &c, &err), &err);
    CHECK_OK(read_net("h\nok,9,8,3,2,4,5,1,\n", &orr__scale_sim_v2, ORR_SCALESIM_ANY), &err);
    CHECK_CODE(orr_scalesim_run(&c, net, &opt, &r, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "a.cfg: SCALE-Sim v2 needs the key InterfaceBandwidth: CALC or USER");
    orr_scalesim_network_free(net);
    CHECK_OK(read_net("h\nok,9,8,4\nbig,4294967296,4294967296,1\n", NULL, ORR_SCALESIM_ANY), &err);
    CHECK_CODE(orr_scalesim_run(&c, net, NULL, &r, &err), ORR_EINPUT, &err);
    CHECK(r == NULL);
    CHECK_SAYS(&err, "dir/net.v1.csv:3:1: layer big: the layer is too large");
    orr_scalesim_network_free(net);
}

/* Names may hold anything: CSV quotes them, the table shows nothing that moves a terminal's pen. */
TEST(test_scalesim__odd_names_do_no_harm)
{
    orr_scalesim *r = run_text(v1_config, "h\n\"a,\"\"b\x1b[1m\",5,6,7\n", NULL);
    orr_str text;
    CHECK_OK(orr_scalesim_csv(r, &text, &err), &err);
    CHECK(memmem(text.ptr, text.len, "\n\"a,\"\"b\x1b[1m\",", 13));
    CHECK_OK(orr_scalesim_text(r, &text, &err), &err);
    CHECK(!memchr(text.ptr, '\x1b', text.len));
    CHECK(memmem(text.ptr, text.len, "a,\"b?[1m", 8));
    CHECK_OK(orr_scalesim_json(r, &text, &err), &err);
    CHECK(memmem(text.ptr, text.len, "a,\\\"b\\u001b[1m", 14));
    orr_scalesim_destroy(r);
    orr_scalesim_network_free(net);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_scalesim__reads_configurations_of_v1),
        RUN(test_scalesim__reads_configurations_of_v2),
        RUN(test_scalesim__faults_of_configurations_have_their_places),
        RUN(test_scalesim__lines_tell_what_they_are),
        RUN(test_scalesim__v1_passes_over_short_lines),
        RUN(test_scalesim__v2_drops_what_is_behind_the_last_comma),
        RUN(test_scalesim__depthwise_layers_become_one_a_channel),
        RUN(test_scalesim__faults_of_layers_have_their_places),
        RUN(test_scalesim__layers_are_run_as_they_would_be_alone),
        RUN(test_scalesim__failures_name_the_layer_and_its_line),
        RUN(test_scalesim__odd_names_do_no_harm),
    };
    return RUN_ALL(tests);
}
