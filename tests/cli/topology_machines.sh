# SPDX-License-Identifier: Apache-2.0
# Machines as NCCL, nvidia-smi and InfraGraph describe them: as topologies to run on, and to convert.
pci() {
    echo "<pci busid=\"$1\" class=\"0x060400\" link_speed=\"$2 GT/s PCIe\" link_width=\"16\">"
}
gpu() { # number, links
    pci "0000:0$1:00.0" 16.0
    echo "<gpu dev=\"$1\" sm=\"80\" rank=\"$1\" gdr=\"1\">$2</gpu></pci>"
}
nvswitch='<nvlink target="0000:c7:00.0" count="6" tclass="0x068000"/><nvlink target="0000:c8:00.0" count="6" tclass="0x068000"/>'
# Two sockets, a bridge each, NVSwitches; a NIC.
{
    echo '<system version="1">'
    for socket in 0 1; do
        echo "<cpu numaid=\"$socket\" arch=\"x86_64\" vendor=\"AuthenticAMD\">"
        pci "0000:a$socket:00.0" 16.0
        gpu $((2 * socket)) "$nvswitch"
        gpu $((2 * socket + 1)) "$nvswitch"
        echo '</pci><nic><net name="mlx5_0" dev="0" speed="200000" port="1" latency="0.000000"/></nic></cpu>'
    done
    echo '</system>'
} >a100.xml
# GPUs 0 and 1 joined directly, 2 and 3 by PCI only, on a second host.
{
    echo '<system version="1"><cpu numaid="0" host_hash="0x1" arch="x86_64" vendor="GenuineIntel">'
    gpu 0 '<nvlink target="0000:01:00.0" count="4" tclass="0x030200"/>'
    gpu 1 '<nvlink target="0000:00:00.0" count="4" tclass="0x030200"/>'
    echo '<nic><net name="a" dev="0" speed="100000" latency="1.5"/></nic></cpu><cpu numaid="0" host_hash="0x2">'
    gpu 2 ''
    gpu 3 ''
    echo '<nic><net name="b" dev="0" speed="100000"/></nic></cpu></system>'
} >pairs.xml
printf '\t\033[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\033[0m\n' >h100.txt
for i in 0 1 2 3; do
    row=GPU$i
    for k in 0 1 2 3; do
        [ $i = $k ] && row="$row\t X " || row="$row\tNV18"
    done
    printf "$row\tSYS\t0-47\t0\n"
done >>h100.txt
printf 'NIC0\tSYS\tSYS\tSYS\tSYS\t X \n\nLegend:\n\n  X    = Self\n' >>h100.txt
printf '\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\t X \tPIX\tNODE\tSYS\nGPU1\tPIX\t X \tNODE\tSYS\nGPU2\tNODE\tNODE\t X \tSYS\nGPU3\tSYS\tSYS\tSYS\t X \n' >pcie.txt
printf '\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\t X \tNV4\tNV2\tSYS\nGPU1\tNV4\t X \tPHB\tNV2\nGPU2\tNV2\tPHB\t X \tNV4\nGPU3\tSYS\tNV2\tNV4\t X \n' >mesh.txt
cat >racks.yaml <<'END'
name: two-hosts
devices:
  - name: server
    components:
      - {name: xpu, count: 2, choice: xpu, xpu: {}}
      - {name: nvsw, count: 1, choice: switch}
      - {name: nic, count: 2, choice: nic}
    links:
      - {name: nvlink, physical: {bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 450}, latency: {choice: ns, ns: 25}}}
      - {name: pcie, physical: {bandwidth: {gigatransfers_per_second: 32}}}
    edges:
      - {ep1: {component: xpu}, ep2: {component: "nvsw[0]"}, scheme: many2many, link: nvlink}
      - {ep1: {component: "xpu[0:2]"}, ep2: {component: "nic[:2]"}, scheme: one2one, link: pcie}
  - name: switch
    components:
      - {name: port, count: 4, choice: port}
      - {name: asic, count: 1, choice: switch}
    links: [{name: ic, physical: {bandwidth: {gigabits_per_second: 6400}}}]
    edges:
      - {ep1: {component: asic}, ep2: {component: port}, scheme: many2many, link: ic}
links:
  - {name: eth, physical: {bandwidth: {gigabits_per_second: 400}, latency: {us: 0.5}}}
instances:
  - {name: host, device: server, count: 2}
  - {name: rack, device: switch, count: 1}
edges:
  - {ep1: {instance: "host[0]", component: "nic[0:2]"}, ep2: {instance: "rack[0]", component: "port[0:2]"}, scheme: one2one, link: eth}
  - {ep1: {instance: "host[1]", component: nic}, ep2: {instance: rack, component: "port[2:4]"}, scheme: one2one, link: eth}
END
cat >tpu.json <<'END'
{"infrastructure": {"devices": [{"name": "board", "components": [{"name": "tpu", "count": 4, "choice": "xpu"}],
  "links": [{"name": "ici", "physical": {"bandwidth": {"gigabytes_per_second": 100}}}],
  "edges": [{"ep1": {"component": "tpu"}, "ep2": {"component": "tpu"}, "scheme": "ring", "link": "ici"}]}],
 "instances": [{"name": "b", "device": "board", "count": 1}]}}
END
printf '{"scheduling-policy": "LIFO", "preferred-dataset-splits": 1, "local-mem-bw": 1600, "all-reduce-implementation": ["ring"]}' >sys.json
orrery gen -q all_reduce --ranks 4 --comm-size 1048576 -o ar.orr
for file in a100.xml pairs.xml h100.txt pcie.txt mesh.txt racks.yaml tpu.json; do
    orrery gen topology --from $file -o out.yml 2>&1
    echo "$file: $(orrery run -q ar.orr -s sys.json -t $file | head -1), again $(orrery run -q ar.orr -s sys.json -t out.yml | head -1)"
    orrery run -q ar.orr -s sys.json -t $file -n packet | head -1
done
orrery gen topology --from racks.yaml -o - -f yaml
# What is wrong with them.
try() {
    orrery gen topology --from "$1" -o no.yml 2>&1
    echo "  status $?"
}
sed 's/rank="3"/rank="2"/' a100.xml >x.xml && try x.xml
sed 's/rank="3"/rank="7"/' a100.xml >x.xml && try x.xml
sed 's/<system/<graphs/; s/.system/\/graphs/' a100.xml >x.xml && try x.xml
sed 's/NV18/NVX/' h100.txt >x.txt && try x.txt
sed '3s/NV18/NV12/' h100.txt >x.txt && try x.txt
head -3 h100.txt >x.txt && try x.txt
sed 's/gigabits_per_second: 400/gigabits_per_second: 0/' racks.yaml >x.yaml && try x.yaml
sed 's/port\[2:4\]/port[2:5]/' racks.yaml >x.yaml && try x.yaml
sed 's/host\[1\]/host[2]/' racks.yaml >x.yaml && try x.yaml
sed 's/choice: nic/choice: device/' racks.yaml >x.yaml && try x.yaml
sed 's/link: ic/link: id/' racks.yaml >x.yaml && try x.yaml
sed 's/nic\[0:2\]/nic[0]/' racks.yaml >x.yaml && try x.yaml
sed 's/^edges:/connections:/' racks.yaml >x.yaml && try x.yaml
