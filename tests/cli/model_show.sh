# SPDX-License-Identifier: Apache-2.0
# A dense model, and one with windows and four norms.
orrery model Llama-3-8B --seq 8192
orrery model gemma-2-9b --seq 8192 --square
