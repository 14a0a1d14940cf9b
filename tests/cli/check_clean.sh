# SPDX-License-Identifier: Apache-2.0
# Traces without faults, as a prefix, a directory, one file and a set.
mkdir job
orrery -q gen data_parallel --ranks 4 -o job/step
orrery check job/step
orrery check job
orrery check job/step.2.et
orrery -q gen data_parallel --ranks 1024 -o job.orr
orrery check --strict job.orr
orrery -q gen compare_pipeline_parallel --ranks 4 -o pipe
orrery check pipe
orrery -q check pipe && echo "quiet: nothing is said"
