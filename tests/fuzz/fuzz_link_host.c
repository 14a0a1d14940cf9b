/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_link_host.c - any bytes as a host trace, beside a device trace that is fine. */
#include "fuzz_link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char other[] =
    "{\"schemaVersion\":1,\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":0,\"world_size\":2,\"pg_config\""
    ":[{\"pg_name\":\"0\",\"pg_desc\":\"default_pg\",\"pg_size\":2,\"ranks\":[0,1]}]},\"traceEvents\":[{\"ph\":"
    "\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::linear\",\"pid\":77,\"tid\":71,\"ts\":1000000,\"dur\":13,\"args\":{\""
    "External id\":101,\"Record function id\":2}},{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::t\",\"pid\":"
    "77,\"tid\":71,\"ts\":1000003,\"dur\":5,\"args\":{\"External id\":102,\"Record function id\":3}},{\"ph\":"
    "\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":77,\"tid\":71,\"ts\":1000008,\"dur\":1,"
    "\"args\":{\"External id\":101,\"correlation\":2}},{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0"
    ",\"tid\":7,\"ts\":1000013,\"dur\":10,\"args\":{\"External id\":101,\"device\":0,\"stream\":7,\"correlatio"
    "n\":2}},{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"c10d::allreduce_\",\"pid\":77,\"tid\":72,\"ts\":1000000,\""
    "dur\":9,\"args\":{\"External id\":103,\"Record function id\":4}},{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":"
    "\"record_param_comms\",\"pid\":77,\"tid\":72,\"ts\":1000001,\"dur\":5,\"args\":{\"External id\":104,\"Rec"
    "ord function id\":5,\"Process Group Name\":\"0\",\"Collective name\":\"allreduce\",\"dtype\":\"Float\","
    "\"In msg nelems\":8,\"Out msg nelems\":8,\"Group size\":2}},{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name"
    "\":\"cudaLaunchKernelExC\",\"pid\":77,\"tid\":72,\"ts\":1000002,\"dur\":2,\"args\":{\"External id\":104,\""
    "correlation\":3}},{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce_Sum_f32_RING_LL("
    "x)\",\"pid\":0,\"tid\":20,\"ts\":1000008,\"dur\":30,\"args\":{\"External id\":104,\"device\":0,\"stream\":2"
    "0,\"correlation\":3,\"Process Group Name\":\"0\",\"Collective name\":\"allreduce\",\"dtype\":\"Float\",\""
    "In msg nelems\":8,\"Out msg nelems\":8,\"Group size\":2}},{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\""
    ":\"cudaDeviceSynchronize\",\"pid\":77,\"tid\":71,\"ts\":1000013,\"dur\":26,\"args\":{\"External id\":105"
    ",\"correlation\":4}},{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Context Sync\",\"pid\":0,\"tid\":0,\"ts\":"
    "1000013,\"dur\":26,\"args\":{\"External id\":105,\"correlation\":4,\"stream\":-1,\"device\":0}},{\"ph\":"
    "\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::item\",\"pid\":77,\"tid\":71,\"ts\":1000039,\"dur\":5,\"args\":{\"Ext"
    "ernal id\":106,\"Record function id\":6}},{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaMemcpyAs"
    "ync\",\"pid\":77,\"tid\":71,\"ts\":1000041,\"dur\":1,\"args\":{\"External id\":106,\"correlation\":5}},{\""
    "ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy DtoH\",\"pid\":0,\"tid\":7,\"ts\":1000043,\"dur\":20,\"arg"
    "s\":{\"External id\":106,\"device\":0,\"stream\":7,\"correlation\":5}},{\"ph\":\"X\",\"cat\":\"user_annota"
    "tion\",\"name\":\"ProfilerStep#0\",\"pid\":77,\"tid\":71,\"ts\":1000000,\"dur\":45,\"args\":{\"External id"
    "\":1,\"Record function id\":0}}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_span mine = {data, size}, fine = {(const uint8_t *)other, sizeof other - 1};
    link_every_way(&mine, &fine, true);
    return 0;
}
