# SPDX-License-Identifier: Apache-2.0
# What the table says and the traces do not is said on stderr, unless --quiet.
row='-1 10 ALLGATHER 64 20 REDUCESCATTER 128 30 ALLREDUCE 256 5'
printf 'DATA\n2\na %s\nb %s\n' "$row" "$row" >data.txt
orrery convert text data.txt --npus 2 -o data.orr
printf 'HYBRID_TRANSFORMER group: 2\n1\na %s\n' "$row" >t.txt
orrery convert text t.txt --npus 4 -o t.orr
orrery convert text t.txt --npus 4 -o t.orr --quiet
orrery convert text t.txt --dims 2x2 -o t.orr
