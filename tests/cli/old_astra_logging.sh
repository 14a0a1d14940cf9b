# SPDX-License-Identifier: Apache-2.0
# room: astra_sim
# The logging file of ASTRA-sim: loggers with levels and sinks of their own.  The old program prints the same lines.
orrery gen -q data_parallel --ranks 2 --layers 1 --bucket 1 -o step
printf '{"scheduling-policy": "LIFO", "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"], ' >system.json
printf '"endpoint-delay": 10, "local-mem-bw": 2039, "peak-perf": 312, "roofline-enabled": 1}\n' >>system.json
printf 'topology: [ Switch ]\nnpus_count: [ 2 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n' >network.yml
printf '{"memory-type": "MEMORY_POOL", "remote-mem-latency": 100, "remote-mem-bw": 100}\n' >memory.json
run() {
    AstraSim_Analytical_Congestion_Unaware --workload-configuration=step --system-configuration=system.json \
        --network-configuration=network.yml --remote-memory-configuration=memory.json "$@"
}
cat >log.toml <<'END'
[[sink]]
name = "kept"
type = "basic_file_sink_mt"
filename = "logs/kept.log"

[[sink]]
name = "anew"
type = "basic_file_sink_mt"
filename = "logs/anew.log"
truncate = true
level = "critical"

[[sink]]
name = "console"
type = "stdout_sink_st"
level = "warn"

[[pattern]]
name = "short"
value = "%L|%-10n|%v"

[[logger]]
name = "workload"
sinks = ["kept"]
level = "debug"
pattern = "short"

[[logger]]
name = "statistics"
sinks = []
level = "warn"

[[logger]]
name = "system"
sinks = ["console", "anew", "kept"]
END
no_date() { sed 's/^\[2[^]]*\] //' "$@"; }
echo "- standard output"
run --logging-configuration=log.toml | no_date
echo "- log.log"
no_date log/log.log
echo "- err.log"
no_date log/err.log
echo "- kept.log, of two runs"
run --logging-configuration=log.toml >/dev/null 2>&1
no_date logs/kept.log
echo "- anew.log"
no_date logs/anew.log
grep -c '^\[20..-..-..T..:..:..[+-]..:..\] \[C\] <system>: ' logs/anew.log
echo "- with the file's own patterns"
rm logs/kept.log
run --logging-configuration=log.toml --no-compat >/dev/null
no_date logs/kept.log
echo "- without a file"
run --logging-configuration=empty >/dev/null
no_date log/log.log
