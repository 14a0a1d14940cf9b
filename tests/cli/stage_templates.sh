# SPDX-License-Identifier: Apache-2.0
# room: stage
# A module of one's own: a norm of seven operations an element instead of five; all others are built in.
small="--dmodel 256 --dff 1024 --head 8 --kvhead 4 --batch 16 --seq 128 --dvocal 1000 --layers 1"
mkdir own
cat >own/layer_norm.csv <<'.'
id,require_grads,x1,x2,op_type,op_attr,x1_shape,x1_hidden,x2_shape,x2_hidden,grad_of
x,N,,,T,,"Batch/dp, Seq/(cp*tp), Dmodel",1,,,
y,N,x,,E,7,"Batch/dp, Seq/(cp*tp), Dmodel",1,,,
dy,N,,,T,,"Batch/dp, Seq/(cp*tp), Dmodel",1,,,y
dx,N,dy,,E,7,"Batch/dp, Seq/(cp*tp), Dmodel",1,,,x
.
echo '{"symbols": ["Batch", "dp", "Seq", "cp", "tp", "Dmodel"], "in_tensors": ["x", "dy"],
       "out_tensors": ["x", "y", "dx"]}' >own/layer_norm.json
orrery stage --compat -q --model-type gpt $small -o plain.et
orrery stage --compat -q --model-type gpt $small --templates own -o own.et
for f in plain own; do # 16 * 128 * 256 elements, 5 and 7 operations each
    orrery view json $f.et --format jsonl | grep -o 'input_norm.y@0_COMP.*num_ops","int64Val":"[0-9]*' | grep -o '[0-9]*$'
done
