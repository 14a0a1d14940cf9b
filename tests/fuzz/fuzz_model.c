/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_model.c - any bytes as a model: a config.json or a file of ours.  What is refused must have
 * a place and words; what is taken must be good, add up, and be the same model when it is written
 * and read again. */
#include <orrery/lab/model.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_counts(const orr_model *m)
{
    const orr_model_work step = {.tokens = 1, .past = 100};
    orr_model_counts n;
    orr_model_flops f;
    orr_error err;
    uint64_t sum = 0, cache, kept = 0;
    orr_model_count(m, &n);
    for (int p = 0; p < ORR_MODEL_PARTS; p++)
        sum += n.part[p];
    require(sum == n.total && n.active <= n.total && n.total <= 1ull << 60);
    if (orr_model_compute(m, &step, &f, &err))
        require(err.message[0]);
    else
        require(f.forward >= 2 * n.matmul && f.training == 3 * f.forward);
    for (uint64_t i = 0; i < m->layers; i++)
        kept |= orr_model_layer_kv(m, i) | orr_model_layer_state(m, i);
    if (orr_model_kv_cache(m, 4096, &cache, &err) == ORR_OK)
        require((cache > 0) == (kept > 0));
}

static void check_text(const orr_model *m)
{
    char a[ORR_MODEL_TEXT], b[ORR_MODEL_TEXT];
    orr_model again;
    orr_error err;
    const size_t yaml = orr_model_text(m, a, sizeof a);
    require(yaml < sizeof a);
    require(!orr_model_parse((orr_span){(const uint8_t *)a, yaml}, "a.yml", &again, &err));
    require(orr_model_text(&again, b, sizeof b) == yaml && memcmp(a, b, yaml) == 0);
    const size_t json = orr_model_json(m, a, sizeof a);
    require(json < sizeof a);
    require(!orr_model_parse((orr_span){(const uint8_t *)a, json}, "a.json", &again, &err));
    require(orr_model_json(&again, b, sizeof b) == json && memcmp(a, b, json) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_model m;
    orr_error err;
    if (orr_model_parse((orr_span){data, size}, "m/config.json", &m, &err)) {
        require(err.code == ORR_EINPUT && err.message[0] && err.where.path[0]);
        return 0;
    }
    require(orr_model_check(&m, &err) == ORR_OK);
    check_counts(&m);
    check_text(&m);
    return 0;
}
