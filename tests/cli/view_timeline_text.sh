# SPDX-License-Identifier: Apache-2.0
# A log drawn in characters: 80 columns off a terminal, as many as wanted, ASCII unless the locale is UTF-8.
printf 'issue,x=0,x=0,x=1,x=COMP_NODE\nissue,x=1,x=500,x=1,x=COMM_COLL_NODE\n' > log.csv
printf 'callback,x=0,x=500,x=1,x=\ncallback,x=1,x=1000,x=1,x=\n' >> log.csv
LC_ALL=C orrery view timeline log.csv --text
LC_ALL=C.UTF-8 orrery view timeline log.csv --text --width 60
LC_ALL=C.UTF-8 orrery view timeline log.csv --text --width 60 --ascii --ranks 1 --from 250ns --to 750ns
