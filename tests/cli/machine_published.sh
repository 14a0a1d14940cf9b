# SPDX-License-Identifier: Apache-2.0
# Whole systems as their makers publish them, against the sum of the parts of the built-in machines: within 3 %, which is
# what rounding of the published figure and memory that software cannot use take.  Makers count gigabytes of HBM as 2^30.
python3 - <<'E'
import json, subprocess
# machine, what, published, where.  PFLOP/s dense: data sheets with sparsity are halved; FP8 is twice 16 bits on these chips.
TB, GIB = 1e12, 2**30
published = [
    ("dgx-a100", "pflops", 5.0 / 2, "DGX A100 data sheet: 5 petaFLOPS AI, with sparsity"),
    ("dgx-a100", "memory", 640 * GIB, "same: 640 GB"),
    ("dgx-a100", "scale_up", 4.8 * TB, "same: 6 NVSwitches, 4.8 TB/s in both directions"),
    ("dgx-h100", "pflops", 32 / 4, "DGX H100 data sheet: 32 petaFLOPS FP8, with sparsity"),
    ("dgx-h100", "memory", 640 * GIB, "same: 640 GB"),
    ("dgx-h100", "scale_up", 7.2 * TB, "same: 7.2 TB/s in both directions"),
    ("hgx-h200", "memory", 1128 * GIB, "HGX H200: 1,128 GB"),
    ("hgx-h200", "memory_rate", 38.4 * TB, "same: 8 x 4.8 TB/s"),
    ("dgx-b200", "pflops", 72 / 4, "DGX B200 data sheet: 72 petaFLOPS FP8 training, with sparsity"),
    ("dgx-b200", "memory", 1440 * GIB, "same: 1,440 GB"),
    ("dgx-b200", "memory_rate", 64 * TB, "same: 64 TB/s"),
    ("dgx-b200", "scale_up", 14.4 * TB, "same: 14.4 TB/s in both directions"),
    ("gb200-nvl72", "pflops", 360 / 2, "GB200 NVL72: 360 petaFLOPS FP16/BF16, with sparsity"),
    ("gb200-nvl72", "memory", 13.4e3 * GIB, "same: up to 13.4 TB"),
    ("gb200-nvl72", "memory_rate", 576 * TB, "same: 576 TB/s"),
    ("gb200-nvl72", "scale_up", 130 * TB, "same: 130 TB/s in both directions"),
    ("mi300x", "pflops", 10.4, "MI300X platform data sheet: 10.4 petaFLOPS FP16/BF16"),
    ("mi300x", "memory", 1536 * GIB, "same: 1.5 TB"),
    ("mi300x", "scale_up", 0.896 * 8 * TB, "same: 896 GB/s per GPU in both directions"),
    ("tpu-v4:1024", "pflops", 1.1e3, "cloud.google.com/tpu/docs/v4: 1.1 exaFLOPS per pod of 4,096"),
    ("tpu-v4:1024", "memory", 4096 * 32 * GIB, "same: 32 GiB"),
    ("tpu-v5p:2240", "pflops", 8960 * 0.459, "cloud.google.com/tpu/docs/v5p: pod of 8,960 chips, 459 TFLOPS each"),
    ("tpu-v5p:1", "scale_up", 4 * 4800e9 / 8 * 2, "same: 4,800 Gb/s per chip and direction"),
    ("trainium2", "pflops", 20.8 / 2, "aws.amazon.com/ec2/instance-types/trn2: 20.8 petaflops FP8; 16 bits a little more than half"),
    ("trainium2", "memory", 1536 * GIB, "same: 1.5 TB"),
    ("trainium2", "memory_rate", 46 * TB, "same: 46 TB/s"),
    ("trainium2", "nics", 3.2e12 / 8, "same: 3.2 Tb/s"),
    ("dgx-h100", "nics", 8 * 400e9 / 8, "DGX H100 user guide: 8 x 400 Gb/s"),
]
for machine, what, value, where in published:
    m = json.loads(subprocess.run(["orrery", "machine", "show", machine, "--json"], capture_output=True, text=True, check=True).stdout)
    n = m["devices"]
    ours = {"pflops": m["peak_tflops"] * n / 1e3, "memory": m["memory_bytes"] * n, "memory_rate": m["memory_GBps"] * n * 1e9,
            "scale_up": 2 * m["scale_up_GBps"] * n * 1e9, "nics": m["nics_per_node"] * m["nic_GBps"] * 1e9 * m["nodes"]}[what]
    off = ours / value - 1
    print(f"{machine:13} {what:11} {off * 100:+5.1f} %{'' if abs(off) <= 0.03 else '  WRONG'}  {where}")
E
