# SPDX-License-Identifier: Apache-2.0
# One rank in every form, in any order of files, compressed, and with only one of the two traces.
python3 "$ORR_ROOT/tests/golden/torch_inputs.py" plain . || exit 1
gzip -k host.json device.json
orrery link host.json device.json -o a.et || exit 1
orrery link -q device.json.gz host.json.gz -o b.et || exit 1
cmp a.et b.et && echo "any order, compressed: same bytes"
orrery link -q host.json device.json -o a.json && orrery convert -q pytorch a.json -o c.et && orrery check c.et
orrery link -q host.json device.json -o set.orr && orrery check set.orr
orrery link -q host.json -o host.et && orrery check host.et
orrery link -q device.json -o device.et && orrery check device.et
orrery link -q host.json device.json -o prefix && ls prefix.*
