// SPDX-License-Identifier: Apache-2.0
// pipeline.js - the pipeline bubble: time in which a stage neither computes nor communicates.

import {el} from './dom.js';
import {barLegend, stackedBar} from './bars.js';
import {listOf, missingPanel, panel} from './panel.js';
import {isKnown, shareText, timeText} from './units.js';
/** @import {Run} from './types.js' */

/** @param {Run} run */
export function pipelinePanel(run) {
    const stages = listOf(run.pipeline?.stages).filter((stage) => (stage.busy_ns ?? 0) + (stage.bubble_ns ?? 0) > 0);
    if (stages.length === 0) return missingPanel('pipeline', 'Pipeline', 'No pipeline stages were found: groups of ranks that pass their work to the next.');
    const share = run.pipeline?.bubble_share;
    const whole = Math.max(1, ...stages.map((stage) => (stage.busy_ns ?? 0) + (stage.bubble_ns ?? 0)));
    return panel('pipeline', 'Pipeline', isKnown(share) ? `For ${shareText(share)} of the time a stage neither computes nor communicates: bubbles, waits for peers, idle.` : 'Time in which a stage waits for the others.',
        barLegend([{kind: 'compute', name: 'busy'}, {kind: 'idle', name: 'waits'}]),
        el('div', {class: 'groups'}, ...stages.map((stage) => el('div', {class: 'group'},
            el('div', {class: 'group-name'}, el('b', {}, stage.name), stage.ranks ? el('span', {class: 'faint'}, `ranks ${stage.ranks}`) : null),
            el('div', {class: 'group-bars'}, stackedBar([
                {kind: 'compute', name: 'busy', ns: stage.busy_ns ?? 0}, {kind: 'idle', name: 'waits', ns: stage.bubble_ns ?? 0}], whole)),
            el('div', {class: 'group-time'}, timeText((stage.busy_ns ?? 0) + (stage.bubble_ns ?? 0)))))));
}
