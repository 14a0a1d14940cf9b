# SPDX-License-Identifier: Apache-2.0
# Samples that a constraint refuses are not kept: a thousand times as many tries take no more memory. room: nsight
spec() {
    cat >"$1.yaml" <<END
command: chip time h200
arguments: ["gemm bf16 m={a} n=8 k=8"]
variables:
  a: {from: 0.5, to: 1.5}
constraints:
  - a > 2
sample: {method: random, count: $2}
END
}
spec few 3
spec many 3000
orrery sweep many.yaml --dry-run
python3 - <<'END'
import resource, subprocess
def peak(name):
    subprocess.run(["orrery", "sweep", name, "--dry-run"], stderr=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # of the largest so far
few = peak("few.yaml")
more = peak("many.yaml") - few
print("no more memory" if more < 20000 else f"{more} kB more")
END
