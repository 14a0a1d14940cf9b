# SPDX-License-Identifier: Apache-2.0
# Words of a process that is no worker of the sweep reach the terminal of rank 0 without control characters. room: nsight
cat >grid.yaml <<'END'
command: chip time h200
arguments: ["gemm bf16 m={a} n=8 k=8"]
variables:
  a: [1, 2]
END
export PMI_SIZE=2 PMI_JOBID=test
PMI_RANK=0 orrery sweep grid.yaml >out0.txt 2>err0.txt &
python3 - <<'END'
import glob, socket, struct, time
for _ in range(200):
    found = glob.glob("*-join-*")
    if found:
        break
    time.sleep(0.05)
token, port = open(found[0]).read().split("\n")[:2]
words = b"\x1b[31mred\x07"
with socket.create_connection(("127.0.0.1", int(port))) as s:
    s.sendall(struct.pack(">II", len(words), 4) + words)
    s.settimeout(10)
    try:
        s.recv(100)  # until it is left out
    except OSError:
        pass
END
PMI_RANK=1 orrery sweep grid.yaml >out1.txt 2>err1.txt
wait
grep 'gets no more points' err0.txt
