# SPDX-License-Identifier: Apache-2.0
# Follows "How to add a network" of src/models/README.md in a scratch copy: one file, a row of the table, and a line of
# the build; then its name is in help, in errors and in a run.
set -e
mkdir toy
cat > toy/toy.c <<'END'
#include <orrery/network.h>

static orr_code toy_send(void *net, orr_net *n, const orr_message *m, orr_error *err)
{
    (void)net, (void)err;
    orr_net_deliver_after(n, 1000000, m->token); /* a microsecond, whatever the size */
    return ORR_OK;
}

const orr_net_ops orr__net_toy = {.name = "toy", .help = "a microsecond for every message", .send = toy_send};
END
sed -e 's/^static const orr_net_ops \*const networks\[\]/extern const orr_net_ops orr__net_toy;\n&/' \
    -e 's/^    &orr__net_packet,/&\n    \&orr__net_toy,/' "$ORR_ROOT/src/models/network/net_table.c" > toy/net_table.c
sed -i 's/#include "net_table.h"/#include "models\/network\/net_table.h"/' toy/net_table.c
flags=$(grep -q '^b_sanitize\|-fsanitize=address' "$ORR_BUILD/build.ninja" && echo -fsanitize=address,undefined || true)
for f in toy net_table; do
    ${CC:-cc} -std=c11 -D_GNU_SOURCE $flags -I"$ORR_ROOT/include" -I"$ORR_ROOT/src" -c toy/$f.c -o toy/$f.o
done
# Objects that come before the library stand in for its own table.
link=$(ninja -C "$ORR_BUILD" -t commands cli/orrery | tail -1 | sed "s|-o cli/orrery|-o $PWD/toy/orrery $PWD/toy/net_table.o $PWD/toy/toy.o|")
(cd "$ORR_BUILD" && eval "$link")

toy/orrery help networks
orrery -q gen all_reduce --ranks 4 -o a.orr
echo '{"scheduling-policy": "LIFO", "local-mem-bw": 100, "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"]}' >sys.json
printf 'topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >astra.yml
toy/orrery -q run a.orr -s sys.json -t astra.yml -n toy | sed -n '1p;$p'
toy/orrery run a.orr -s sys.json -t astra.yml -n tow 2>&1 || echo "status $?"
