// SPDX-License-Identifier: Apache-2.0
// stall.js - if a run stalled: who waits for whom, above all other panels.

import {el} from './dom.js';
import {listOf} from './panel.js';
/** @import {Run} from './types.js' */

/** @param {Run} run */
export function stallPanel(run) {
    if (!run.stall) return null;
    return el('section', {class: 'panel stall', id: 'stall', 'data-title': 'Stall', role: 'alert', 'aria-labelledby': 'stall-title'},
        el('h2', {id: 'stall-title'}, el('span', {class: 'stall-mark', 'aria-hidden': 'true'}, '!'), run.stall.title ? `Stalled: ${run.stall.title}` : 'The run deadlocked'),
        el('pre', {}, listOf(run.stall.lines).join('\n')));
}
