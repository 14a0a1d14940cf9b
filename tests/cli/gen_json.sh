# SPDX-License-Identifier: Apache-2.0
orrery gen compare_pipeline_parallel --ranks 3 --microbatches 2 -o 'a "b"' --json
ls
