# SPDX-License-Identifier: Apache-2.0
# An option that would have no effect is refused, by every view.
orrery -q gen two_comp_nodes_dependent -o two
printf 'issue,r=0,t=0,n=1,x=a\ncallback,r=0,t=9,n=1,x=a\n' >run.csv
tell() {
    orrery view "$@" >out.txt 2>err.txt
    echo "$?: $(head -1 err.txt), $(wc -c <out.txt) bytes"
}
tell graphml two.0.et --around 1
tell graphml two.0.et --cluster layer
tell graphml two.0.et --limit 20
tell dot two.0.et --compat --collapse
tell svg two.0.et --compat --critical-path
tell svg two.0.et --layout
tell json two.0.et --compat
tell json two.0.et --text
tell dot two.0.et --format json
tell dot two.0.et --depth 3
tell timeline run.csv --rank 0
tell timeline run.csv --lenient
tell timeline run.csv --width 60
tell timeline run.csv --ascii
