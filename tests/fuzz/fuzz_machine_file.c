/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_machine_file.c - any bytes as a machine file, and as changes of a machine that is built in.  What is refused must have a place and words; what
 * is taken is written and read again, and has dimensions for all of its devices. */
#include <orrery/lab/machine.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void read_again(const orr_machine *m)
{
    char text[3000], again[3000];
    orr_machine copy;
    orr_error err;
    const size_t n = orr_machine_text(m, text, sizeof text);
    require(n < sizeof text);
    require(orr_machine_parse((orr_span){(const uint8_t *)text, n}, "again", &copy, &err) ==
            ORR_OK);
    require(orr_machine_text(&copy, again, sizeof again) == n && memcmp(text, again, n) == 0);
}

static void make_dims(const orr_machine *m)
{
    orr_net_config c;
    orr_error err;
    uint64_t ranks = 1;
    require(orr_machine_dims(m, &c, &err) == ORR_OK);
    require(c.dims >= 1 && c.dims <= ORR_NET_DIMS);
    for (uint32_t k = 0; k < c.dims; k++) {
        require(c.npus[k] >= 1 && c.bandwidth[k] > 0 && c.latency_ns[k] >= 0);
        ranks *= c.npus[k];
    }
    require(ranks == orr_machine_devices(m));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_machine m, part;
    orr_error err;
    char text[600] = "trainium2:2,";
    const size_t n = strlen(text);
    if (size < sizeof text - n) {
        memcpy(text + n, data, size);
        text[n + size] = 0;
        if (orr_machine_find(text, &m, &err) == ORR_OK)
            make_dims(&m);
        else
            require(err.message[0]);
    }
    if (orr_machine_parse((orr_span){data, size}, "machine.yml", &m, &err)) {
        require(err.message[0] && err.where.path[0]);
        return 0;
    }
    require(m.nodes && m.devices && m.chip[0] && m.name[0]);
    read_again(&m);
    make_dims(&m);
    for (uint32_t ranks = 1; ranks <= 64; ranks *= 2)
        if (orr_machine_fit(&m, ranks, &part, &err) == ORR_OK) {
            require(orr_machine_devices(&part) == ranks);
            make_dims(&part);
        }
    return 0;
}
