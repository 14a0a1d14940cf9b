/* SPDX-License-Identifier: Apache-2.0 */
/* captured_step.h - a small captured step as text: a product, an addition in place, a view and an
 * attention. */
#ifndef ORR_TESTS_CAPTURED_STEP_H
#define ORR_TESTS_CAPTURED_STEP_H

#define TENSOR(shape, stride)                                       \
    "{\"shape\":" shape ",\"dtype\":\"float32\",\"stride\":" stride \
    ",\"offset\":0,\"storage\":0,\"device\":\"cpu\"}"

static const char step[] =
    "{\"format\":\"orrery-capture\",\"version\":1,\"torch\":\"2.11.0\",\"world_size\":1,\"step\":0,"
    "\"groups\":[{\"ranks\":[0],\"what\":\"world\",\"family\":0}],\"notes\":[],\"graphs\":[{\"rank\":0,"
    "\"ops\":[\"aten.mm.default\",\"aten.add_.Tensor\",\"aten.view.default\","
    "\"aten._scaled_dot_product_flash_attention_for_cpu.default\"],\"modules\":[],\"lines\":[],"
    "\"storages\":[512],\"kept\":[],\"tensors\":[" TENSOR("[4,8]", "[8,1]") "," TENSOR("[8,6]", "[6,1]") "," TENSOR(
        "[2,2,4,8]",
        "[64,32,8,1]") "],\"nodes\":["
                       "{\"op\":0,\"phase\":\"forward\",\"in\":[0,1],\"out\":[0]},"
                       "{\"op\":1,\"phase\":\"forward\",\"in\":[0,0],\"out\":[0],\"writes\":[0]},"
                       "{\"op\":2,\"phase\":\"forward\",\"in\":[0],\"out\":[0],\"view\":1},"
                       "{\"op\":3,\"phase\":\"forward\",\"in\":[2,2,2],\"out\":[2],\"args\":{\"is_causal\":true}}]}]}";

#endif
