/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_link_device.c - any bytes as a device trace, beside a host trace that is fine. */
#include "fuzz_link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char other[] =
    "{\"schema\":\"1.1.1-chakra.0.0.4\",\"pid\":77,\"time\":\"2026-01-01 00:00:00\",\"start_ts\":1,\"nodes\":"
    "[{\"id\":5,\"name\":\"aten::t\",\"ctrl_deps\":4,\"inputs\":{\"values\":[],\"shapes\":[],\"types\":[]},\"out"
    "puts\":{\"values\":[],\"shapes\":[],\"types\":[]},\"attrs\":[{\"name\":\"rf_id\",\"type\":\"uint64\",\"value"
    "\":3},{\"name\":\"fw_parent\",\"type\":\"uint64\",\"value\":0},{\"name\":\"seq_id\",\"type\":\"int64\",\"value"
    "\":-1},{\"name\":\"scope\",\"type\":\"uint64\",\"value\":0},{\"name\":\"tid\",\"type\":\"uint64\",\"value\":1},"
    "{\"name\":\"fw_tid\",\"type\":\"uint64\",\"value\":0},{\"name\":\"op_schema\",\"type\":\"string\",\"value\":\"\""
    "}]},{\"id\":4,\"name\":\"aten::linear\",\"ctrl_deps\":2,\"inputs\":{\"values\":[[1,1,0,4,4,\"cuda:0\"]],"
    "\"shapes\":[[4]],\"types\":[\"Tensor(float)\"]},\"outputs\":{\"values\":[[1,1,0,4,4,\"cuda:0\"]],\"shap"
    "es\":[[4]],\"types\":[\"Tensor(float)\"]},\"attrs\":[{\"name\":\"rf_id\",\"type\":\"uint64\",\"value\":2},{"
    "\"name\":\"fw_parent\",\"type\":\"uint64\",\"value\":0},{\"name\":\"seq_id\",\"type\":\"int64\",\"value\":-1},"
    "{\"name\":\"scope\",\"type\":\"uint64\",\"value\":0},{\"name\":\"tid\",\"type\":\"uint64\",\"value\":1},{\"name"
    "\":\"fw_tid\",\"type\":\"uint64\",\"value\":0},{\"name\":\"op_schema\",\"type\":\"string\",\"value\":\"\"}]},{\""
    "id\":8,\"name\":\"record_param_comms\",\"ctrl_deps\":6,\"inputs\":{\"values\":[[1,1,0,8,4,\"cuda:0\"]],"
    "\"shapes\":[[8]],\"types\":[\"Tensor(float)\"]},\"outputs\":{\"values\":[[1,1,0,8,4,\"cuda:0\"]],\"shap"
    "es\":[[8]],\"types\":[\"Tensor(float)\"]},\"attrs\":[{\"name\":\"rf_id\",\"type\":\"uint64\",\"value\":5},{"
    "\"name\":\"fw_parent\",\"type\":\"uint64\",\"value\":0},{\"name\":\"seq_id\",\"type\":\"int64\",\"value\":-1},"
    "{\"name\":\"scope\",\"type\":\"uint64\",\"value\":0},{\"name\":\"tid\",\"type\":\"uint64\",\"value\":2},{\"name"
    "\":\"fw_tid\",\"type\":\"uint64\",\"value\":0},{\"name\":\"op_schema\",\"type\":\"string\",\"value\":\"\"},{\"na"
    "me\":\"collective_name\",\"type\":\"string\",\"value\":\"allreduce\"},{\"name\":\"dtype\",\"type\":\"string\""
    ",\"value\":\"Float\"},{\"name\":\"in_msg_nelems\",\"type\":\"uint64\",\"value\":8},{\"name\":\"out_msg_nele"
    "ms\",\"type\":\"uint64\",\"value\":8},{\"name\":\"pg_name\",\"type\":\"string\",\"value\":\"0\"},{\"name\":\"pg_"
    "size\",\"type\":\"uint64\",\"value\":2}]},{\"id\":6,\"name\":\"c10d::allreduce_\",\"ctrl_deps\":3,\"inputs"
    "\":{\"values\":[[1,1,0,8,4,\"cuda:0\"]],\"shapes\":[[8]],\"types\":[\"Tensor(float)\"]},\"outputs\":{\"v"
    "alues\":[[1,1,0,8,4,\"cuda:0\"]],\"shapes\":[[8]],\"types\":[\"Tensor(float)\"]},\"attrs\":[{\"name\":\""
    "rf_id\",\"type\":\"uint64\",\"value\":4},{\"name\":\"fw_parent\",\"type\":\"uint64\",\"value\":0},{\"name\":\""
    "seq_id\",\"type\":\"int64\",\"value\":-1},{\"name\":\"scope\",\"type\":\"uint64\",\"value\":0},{\"name\":\"tid"
    "\",\"type\":\"uint64\",\"value\":2},{\"name\":\"fw_tid\",\"type\":\"uint64\",\"value\":0},{\"name\":\"op_schem"
    "a\",\"type\":\"string\",\"value\":\"\"}]},{\"id\":9,\"name\":\"aten::item\",\"ctrl_deps\":2,\"inputs\":{\"valu"
    "es\":[],\"shapes\":[],\"types\":[]},\"outputs\":{\"values\":[],\"shapes\":[],\"types\":[]},\"attrs\":[{\"n"
    "ame\":\"rf_id\",\"type\":\"uint64\",\"value\":6},{\"name\":\"fw_parent\",\"type\":\"uint64\",\"value\":0},{\"n"
    "ame\":\"seq_id\",\"type\":\"int64\",\"value\":-1},{\"name\":\"scope\",\"type\":\"uint64\",\"value\":0},{\"name"
    "\":\"tid\",\"type\":\"uint64\",\"value\":1},{\"name\":\"fw_tid\",\"type\":\"uint64\",\"value\":0},{\"name\":\"op"
    "_schema\",\"type\":\"string\",\"value\":\"\"}]},{\"id\":2,\"name\":\"[pytorch|profiler|execution_trace|t"
    "hread]\",\"ctrl_deps\":1,\"inputs\":{\"values\":[],\"shapes\":[],\"types\":[]},\"outputs\":{\"values\":[]"
    ",\"shapes\":[],\"types\":[]},\"attrs\":[{\"name\":\"rf_id\",\"type\":\"uint64\",\"value\":0},{\"name\":\"fw_p"
    "arent\",\"type\":\"uint64\",\"value\":0},{\"name\":\"seq_id\",\"type\":\"int64\",\"value\":-1},{\"name\":\"sco"
    "pe\",\"type\":\"uint64\",\"value\":0},{\"name\":\"tid\",\"type\":\"uint64\",\"value\":1},{\"name\":\"fw_tid\",\""
    "type\":\"uint64\",\"value\":0},{\"name\":\"op_schema\",\"type\":\"string\",\"value\":\"\"}]},{\"id\":3,\"name\""
    ":\"[pytorch|profiler|execution_trace|thread]\",\"ctrl_deps\":1,\"inputs\":{\"values\":[],\"shapes\":"
    "[],\"types\":[]},\"outputs\":{\"values\":[],\"shapes\":[],\"types\":[]},\"attrs\":[{\"name\":\"rf_id\",\"ty"
    "pe\":\"uint64\",\"value\":0},{\"name\":\"fw_parent\",\"type\":\"uint64\",\"value\":0},{\"name\":\"seq_id\",\"t"
    "ype\":\"int64\",\"value\":-1},{\"name\":\"scope\",\"type\":\"uint64\",\"value\":0},{\"name\":\"tid\",\"type\":\""
    "uint64\",\"value\":2},{\"name\":\"fw_tid\",\"type\":\"uint64\",\"value\":0},{\"name\":\"op_schema\",\"type\":"
    "\"string\",\"value\":\"\"}]},{\"id\":1,\"name\":\"[pytorch|profiler|execution_trace|process]\",\"ctrl_d"
    "eps\":1,\"inputs\":{\"values\":[],\"shapes\":[],\"types\":[]},\"outputs\":{\"values\":[],\"shapes\":[],\"t"
    "ypes\":[]},\"attrs\":[{\"name\":\"rf_id\",\"type\":\"uint64\",\"value\":0},{\"name\":\"fw_parent\",\"type\":\""
    "uint64\",\"value\":0},{\"name\":\"seq_id\",\"type\":\"int64\",\"value\":-1},{\"name\":\"scope\",\"type\":\"uin"
    "t64\",\"value\":0},{\"name\":\"tid\",\"type\":\"uint64\",\"value\":0},{\"name\":\"fw_tid\",\"type\":\"uint64\","
    "\"value\":0},{\"name\":\"op_schema\",\"type\":\"string\",\"value\":\"\"}]}],\"finish_ts\":2}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_span mine = {data, size}, fine = {(const uint8_t *)other, sizeof other - 1};
    link_every_way(&fine, &mine, false);
    return 0;
}
