# SPDX-License-Identifier: Apache-2.0
orrery gen compare_pipeline_parallel --ranks 1
