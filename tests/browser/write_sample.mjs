// SPDX-License-Identifier: Apache-2.0
// write_sample.mjs - one of the samples as a report file, to look at while working on the page:
//
//     node tests/browser/write_sample.mjs small > small.html

import {assemble} from './assemble.mjs';
import {SAMPLES} from './make_data.mjs';

const name = process.argv[2] ?? '';
const make = SAMPLES[name];
if (!make) {
    console.error(`write_sample: no sample "${name}"; there are: ${Object.keys(SAMPLES).join(' ')}`);
    process.exit(2);
}
process.stdout.write(assemble(new URL('../../web', import.meta.url).pathname, make()));
