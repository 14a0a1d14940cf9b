/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <orrery/lab/model.h>

#include <sys/stat.h>

static orr_model read_text(const char *text)
{
    orr_model m;
    orr_error err;
    CHECK_OK(
        orr_model_parse((orr_span){(const uint8_t *)text, strlen(text)}, "my/model.yml", &m, &err),
        &err);
    return m;
}

TEST(test_model_file__what_is_written_reads_back_the_same)
{
    char a[ORR_MODEL_TEXT], b[ORR_MODEL_TEXT];
    for (size_t i = 0; orr_model_at(i); i++) {
        const size_t n = orr_model_text(orr_model_at(i), a, sizeof a);
        CHECK(n == strlen(a));
        const orr_model m = read_text(a);
        CHECK_EQ_U(orr_model_text(&m, b, sizeof b), n);
        CHECK_TEXT(b, a);
        const size_t json = orr_model_json(&m, b, sizeof b);
        CHECK_EQ_U(json, strlen(b));
        const orr_model again = read_text(b);
        CHECK_EQ_U(orr_model_text(&again, b, sizeof b), n);
        CHECK_TEXT(b, a);
    }
}

TEST(test_model_file__what_is_written)
{
    char text[ORR_MODEL_TEXT];
    orr_model_text(orr_model_find("gpt2"), text, sizeof text);
    CHECK_TEXT(text, "format: orrery-model\nversion: 1\nname: \"gpt2\"\nlayers: 12\nhidden: 768\n"
                     "vocab: 50257\nmax_positions: 1024\nis_tied: true\nposition: learned\n"
                     "position_rows: 1024\nnorm: layer\nblock_norms: 2\nheads: 12\nkv_heads: 12\n"
                     "head_dim: 64\nhas_qkv_bias: true\nhas_output_bias: true\nffn: 3072\n"
                     "has_ffn_bias: true\n");
    orr_model_json(orr_model_find("llama-3-8b"), text, sizeof text);
    CHECK_TEXT(text,
               "{\"format\": \"orrery-model\", \"version\": 1, \"name\": \"llama-3-8b\", "
               "\"layers\": 32, \"hidden\": 4096, \"vocab\": 128256, \"max_positions\": 8192, "
               "\"block_norms\": 2, \"heads\": 32, \"kv_heads\": 8, \"head_dim\": 128, "
               "\"ffn\": 14336, \"is_gated\": true}");
}

TEST(test_model_file__text_is_counted_when_it_does_not_fit)
{
    char all[ORR_MODEL_TEXT], few[20];
    const size_t n = orr_model_text(orr_model_at(0), all, sizeof all);
    CHECK_EQ_U(orr_model_text(orr_model_at(0), few, sizeof few), n);
    CHECK_TEXT(few, "format: orrery-mode");
    CHECK_EQ_U(orr_model_text(orr_model_at(0), NULL, 0), n);
}

TEST(test_model_file__what_is_usual_need_not_be_said)
{
    const orr_model m = read_text("layers: 2\nhidden: 64\nheads: 4\nffn: 128\nvocab: 100\n"
                                  "position: learned\nmax_positions: 32\n");
    CHECK_TEXT(m.name, "model");
    CHECK(m.kv_heads == 4 && m.head_dim == 16 && m.block_norms == 2 && m.position_rows == 32);
    CHECK(m.norm == ORR_MODEL_RMS_NORM && !m.is_gated && !m.is_tied);
}

TEST(test_model_file__starts_from_a_preset)
{
    const orr_model m = read_text("from: Llama-3-8B\nname: short\nlayers: 4\nis_tied: true\n"
                                  "norm: layer-no-bias\nqk_norm: all-heads\n");
    CHECK_TEXT(m.name, "short");
    CHECK(m.layers == 4 && m.hidden == 4096 && m.vocab == 128256 && m.is_tied && m.is_gated);
    CHECK(m.norm == ORR_MODEL_LAYER_NORM_NO_BIAS && m.qk_norm == ORR_MODEL_QK_NORM_ALL_HEADS);
}

TEST(test_model_file__json_of_ours_says_so)
{
    const orr_model m =
        read_text(" {\"format\": \"orrery-model\", \"version\": 1, \"from\": \"gpt2\",\n"
                  "\"is_tied\": false}");
    CHECK(m.layers == 12 && !m.is_tied);
}

/* ---- errors ---- */

static void refuse(const char *text, const char *words)
{
    orr_model m;
    orr_error err;
    CHECK_CODE(orr_model_parse((orr_span){(const uint8_t *)text, strlen(text)}, "m.yml", &m, &err),
               ORR_EINPUT, &err);
    CHECK_SAYS(&err, words);
}

TEST(test_model_file__errors_name_the_place)
{
    refuse("", "m.yml:1:1: expected a map of keys and values");
    refuse("- 1\n", "m.yml:1:1: expected a map of keys and values");
    refuse("layers: 2\nlayer: 3\n", "m.yml:2:1: unknown key \"layer\"");
    refuse("layers: 2\nlayers: 3\n", "m.yml:2:1: duplicate key \"layers\"");
    refuse("format: orrery-topology\n", "format: \"orrery-topology\" is not orrery-model");
    refuse("version: 2\n", "version: \"2\" is not a whole number from 1 to 1");
    refuse("from: gpt4\n", "m.yml:1:7: from: no model is called \"gpt4\"; did you mean gpt2?");
    refuse("from: zzzzzzzzz\n", "from: no model is called \"zzzzzzzzz\"");
    refuse("from: [gpt2]\n", "from: expected the name of a model");
    refuse("from: gpt2\nname: \"a\\\"b\"\n", "m.yml:2:7: name: expected 1 to 63 plain characters");
    refuse("from: gpt2\nname: [a]\n", "name: expected 1 to 63 plain characters");
    refuse("from: gpt2\nhidden: -1\n", "m.yml:2:9: hidden: \"-1\" is not a whole number from 0 to");
    refuse("from: gpt2\nhidden: 3000000000\n", "hidden: \"3000000000\" is not a whole number");
    refuse("from: gpt2\nis_tied: maybe\n", "is_tied: \"maybe\" is not false or true");
    refuse("from: gpt2\nnorm: batch\n", "norm: \"batch\" is not rms or layer or layer-no-bias");
    refuse("from: gpt2\nkv_heads: 5\n", "m.yml:2:11: kv_heads: 5 does not divide");
    refuse("layers: 3\nhidden: 8\nvocab: 4\n", "m.yml:1:1: heads: expected at least 1");
    refuse("layers: 3\nhidden: 9\nvocab: 4\nheads: 2\n", "head_dim: expected at least 1");
    refuse("from: gpt2\nffn: [", "not valid YAML");
}

/* ---- loading ---- */

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    fputs(text, f);
    CHECK_EQ(fclose(f), 0);
}

TEST(test_model_file__loads_presets_files_and_folders)
{
    static const char config[] = "{\"model_type\": \"llama\", \"hidden_size\": 64, "
                                 "\"num_hidden_layers\": 6, \"num_attention_heads\": 4, "
                                 "\"vocab_size\": 100, \"intermediate_size\": 128}";
    orr_model m;
    orr_error err;
    CHECK(mkdir("checkpoint", 0777) == 0 || access("checkpoint", W_OK) == 0);
    write_text("checkpoint/config.json", config);
    write_text("gpt2", "from: gpt2-xl\n");
    CHECK_OK(orr_model_load("GPT2", &m, &err), &err);
    CHECK_TEXT(m.name, "gpt2");
    CHECK_EQ_U(m.layers, 12);
    CHECK_OK(orr_model_load("./gpt2", &m, &err), &err);
    CHECK_EQ_U(m.layers, 48);
    CHECK_OK(orr_model_load("checkpoint", &m, &err), &err);
    CHECK_TEXT(m.name, "checkpoint");
    CHECK_OK(orr_model_load("checkpoint/", &m, &err), &err);
    CHECK_OK(orr_model_load("checkpoint/config.json", &m, &err), &err);
    CHECK_EQ_U(m.layers, 6);
    CHECK_TEXT(m.name, "checkpoint");
}

TEST(test_model_file__neither_model_nor_file)
{
    orr_model m;
    orr_error err;
    CHECK_CODE(orr_model_load("lama-3-8b", &m, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "'lama-3-8b'; did you mean llama-3-8b?");
    CHECK_CODE(orr_model_load("something-else", &m, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "orrery model --list");
    CHECK_CODE(orr_model_load("no/such/file", &m, &err), ORR_EIO, &err);
    CHECK_CODE(orr_model_load("none.yml", &m, &err), ORR_EIO, &err);
    CHECK_SAYS(&err, "none.yml");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_model_file__what_is_written_reads_back_the_same),
        RUN(test_model_file__what_is_written),
        RUN(test_model_file__text_is_counted_when_it_does_not_fit),
        RUN(test_model_file__what_is_usual_need_not_be_said),
        RUN(test_model_file__starts_from_a_preset),
        RUN(test_model_file__json_of_ours_says_so),
        RUN(test_model_file__errors_name_the_place),
        RUN(test_model_file__loads_presets_files_and_folders),
        RUN(test_model_file__neither_model_nor_file),
    };
    return RUN_ALL(tests);
}
