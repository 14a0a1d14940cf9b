# SPDX-License-Identifier: Apache-2.0
# Pictures of fits: two points a row of nccl-tests and a dot for the legend; a point a step, at its height.
orrery nccl-tests --machine dgx-h100 -b 8K -e 64M -f 4 >reduce.txt
orrery nccl-tests --machine dgx-h100 -b 8K -e 64M -f 4 --op alltoall >alltoall.txt
orrery calibrate nccl -q reduce.txt alltoall.txt --machine dgx-h100 --plot nccl.svg | sed -n 1p
python3 - <<'PY'
import xml.dom.minidom
picture = xml.dom.minidom.parse("nccl.svg")
print(len(picture.getElementsByTagName("circle")), "circles,",
      [text.firstChild.data for text in picture.getElementsByTagName("text")][-2:])
PY
printf '900\n850\n220\n200\n210\n205\n215\n' >steps.txt
orrery calibrate steps -q steps.txt --predicted 190 --like h200 --plot steps.svg >/dev/null
# The picture goes from 187 to 223 ms (190 to 220 and a tenth), so 360 pixels are 36 ms; warm-up is at its top, 40.
python3 - <<'PY'
import xml.dom.minidom
picture = xml.dom.minidom.parse("steps.svg")
for circle in picture.getElementsByTagName("circle"):
    ms = 187 + (400 - float(circle.getAttribute("cy"))) / 10
    print(f"{ms:.1f} {circle.getAttribute('fill')}")
print(["%.1f" % (187 + (400 - float(line.getAttribute("y1"))) / 10) for line in picture.getElementsByTagName("line")])
PY
orrery calibrate steps -q steps.txt --predicted 190 --like h200 --plot no/steps.svg
