# SPDX-License-Identifier: Apache-2.0
# room: chakra
# A task graph: a message, and a dependency that leads to another device without one.
cat >tasks.dot <<'END'
digraph taskgraph {
  node0 [color=red,label="{device_id=0|Dense|Forward|COMP_NODE|simulated_run_time=0.001}",shape=record];
  node1 [label="{device_id=4|Comm|Comm|COMM_SEND_RECV_NODE|src_device_id=0|dst_device_id=1|comm_size=64|run_time=1}"];
  node2 [label="{device_id=1|Dense|Backward|COMP_NODE|simulated_run_time=0.0025}"];
  node3 [label="{device_id=0|Barrier|Barrier|COMP_NODE|simulated_run_time=0}"];
  node0 -> node1 -> node2 -> node3;
}
END
orrery convert flexflow tasks.dot --frequency 1000 -o tasks.orr
orrery check tasks.orr
orrery convert flexflow tasks.dot -o tasks.jsonl -q
cat tasks.0.jsonl tasks.1.jsonl
orrery convert flexflow tasks.dot --frequency 1000 --compat -o old
et_converter --input_type FlexFlow --input_filename tasks.dot --output_filename same --npu_frequency 1000 --num_dims 1
cmp old.0.et same.0.et && cmp old.1.et same.1.et && ls
