# SPDX-License-Identifier: Apache-2.0
# One sequence of Llama 3 70B over 8 H100: engines give 60 to 95 tokens/s.  The estimate said 184 and the run 133.
orrery -q serve llama-3-70b --tp 8 -p 1024 -n 64 -o s.orr | grep -o '[0-9.]* tokens/s' |
    awk '{print "estimate:", ($1 >= 60 && $1 <= 95 ? "as engines give" : $1 " tokens/s")}'
orrery -q run s.orr --machine dgx-h100 --json |
    sed -n 's/.*"simulated_ns": \([0-9]*\).*/\1/p' | awk '{t = 64e9 / $1; print "simulated:", (t >= 60 && t <= 95 ? "as engines give" : t " tokens/s")}'
