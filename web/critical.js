// SPDX-License-Identifier: Apache-2.0
// critical.js - the critical path: the chain of operations that sets the run time.

import {el} from './dom.js';
import {barLegend, smallBar, stackedBar} from './bars.js';
import {kindClass} from './palette.js';
import {folded} from './operators.js';
import {listOf, missingPanel, panel} from './panel.js';
import {sortableTable} from './table.js';
import {kindChip} from './timeline_detail.js';
import {countOf, countText, isKnown, shareText, timeExact, timeText} from './units.js';
/** @import {Column} from './table.js' */
/** @import {PathStep, Run} from './types.js' */

const STRIP_STEPS = 2000;

/** The steps in sequence, each as wide as its duration. @param {PathStep[]} steps @param {(step: PathStep) => void} jump */
function pathStrip(steps, jump) {
    const from = Math.min(...steps.map((step) => step.start_ns));
    const whole = Math.max(1, Math.max(...steps.map((step) => step.end_ns)) - from);
    return el('div', {class: 'strip', 'aria-hidden': 'true'}, ...steps.map((step) => el('span', {
        class: `kind-${kindClass(step.kind)}`, onclick: () => jump(step),
        style: `left:${((step.start_ns - from) / whole * 100).toFixed(4)}%;width:${((step.end_ns - step.start_ns) / whole * 100).toFixed(4)}%`,
        title: `${step.name}: ${timeText(step.end_ns - step.start_ns)}${typeof step.rank === 'number' ? ` on rank ${step.rank}` : ''}`,
    })));
}

/** @param {Run} run @param {((step: PathStep) => void) | null} jump */
export function criticalPanel(run, jump) {
    const path = run.critical_path;
    const steps = listOf(path?.steps);
    if (!path || (steps.length === 0 && listOf(path.by_kind).length === 0)) {
        return missingPanel('critical', 'Critical path', 'A timeline has no dependencies. They are known when traces are simulated for the report: orrery run --report, or orrery report TRACES.');
    }
    const kinds = listOf(path.by_kind).filter((part) => part.ns > 0);
    const whole = isKnown(path.total_ns) && path.total_ns > 0 ? path.total_ns : Math.max(1, kinds.reduce((sum, part) => sum + part.ns, 0));
    const left = isKnown(path.steps_left_out) && path.steps_left_out > 0 ? `, ${countOf(path.steps_left_out, 'short step')} left out` : '';
    return panel('critical', 'Critical path', `The chain of operations that sets the run time. ${countOf(steps.length, 'step')}${left}.`,
        kinds.length > 0 ? el('div', {class: 'path-kinds'}, stackedBar(kinds.map((part) => ({kind: part.kind, name: part.kind, ns: part.ns})), whole),
            barLegend(kinds.map((part) => ({kind: part.kind, name: `${part.kind} ${timeText(part.ns)} (${shareText(part.share ?? part.ns / whole)})`})))) : null,
        steps.length > 0 ? pathStrip(steps.slice(0, STRIP_STEPS), jump ?? (() => {})) : null,
        steps.length > 0 ? partTable(partsOf(steps), whole) : null,
        steps.length > 0 ? el('h3', {}, 'Step by step') : null,
        steps.length > 0 ? stepTable(steps, whole, jump) : null);
}

/** @typedef {{name: string, kind: string, count: number, ns: number}} PathPart */

/** The steps by name without numbers, the largest total first. @param {PathStep[]} steps @returns {PathPart[]} */
function partsOf(steps) {
    /** @type {Map<string, PathPart>} */
    const parts = new Map();
    for (const step of steps) {
        const name = folded(step.name);
        let part = parts.get(`${step.kind} ${name}`);
        if (!part) parts.set(`${step.kind} ${name}`, part = {name, kind: step.kind, count: 0, ns: 0});
        part.count++;
        part.ns += step.end_ns - step.start_ns;
    }
    return [...parts.values()].sort((a, b) => b.ns - a.ns);
}

/** @param {PathPart[]} parts @param {number} whole */
function partTable(parts, whole) {
    const longest = Math.max(1, parts[0].ns);
    /** @type {Column<PathPart>[]} */
    const columns = [
        {title: 'What is on it', key: (part) => part.name, show: (part) => el('b', {}, part.name)},
        {title: 'Kind', key: (part) => part.kind, show: (part) => kindChip(part.kind)},
        {title: 'Steps', isNumber: true, key: (part) => part.count, show: (part) => `${countText(part.count)}\u00a0\u00d7`},
        {title: 'Total', isNumber: true, key: (part) => part.ns, show: (part) => timeText(part.ns), exact: (part) => timeExact(part.ns)},
        {title: 'Share', isNumber: true, key: (part) => part.ns, meaning: 'of the path',
            show: (part) => el('span', {class: 'with-bar'}, smallBar(part.ns / longest, part.kind), shareText(part.ns / whole))},
    ];
    return sortableTable('The critical path by operation', columns, parts, {first: 8});
}

/** @param {PathStep[]} steps @param {number} whole @param {((step: PathStep) => void) | null} jump */
function stepTable(steps, whole, jump) {
    const longest = Math.max(1, ...steps.map((step) => step.end_ns - step.start_ns));
    /** @type {Column<PathStep>[]} */
    const columns = [
        {title: 'Start', isNumber: true, key: (step) => step.start_ns, show: (step) => timeText(step.start_ns), exact: (step) => timeExact(step.start_ns)},
        {title: 'What', key: (step) => step.name, show: (step) => (jump && typeof step.track === 'number'
            ? el('button', {type: 'button', class: 'link', title: `${step.name}\nShow it in the timeline`, onclick: () => jump(step)}, step.name) : step.name)},
        {title: 'Kind', key: (step) => step.kind, show: (step) => kindChip(step.kind)},
        {title: 'Rank', isNumber: true, key: (step) => step.rank, show: (step) => (typeof step.rank === 'number' ? String(step.rank) : '')},
        {title: 'Duration', isNumber: true, key: (step) => step.end_ns - step.start_ns, show: (step) => timeText(step.end_ns - step.start_ns),
            exact: (step) => timeExact(step.end_ns - step.start_ns)},
        {title: 'Share', isNumber: true, key: (step) => step.end_ns - step.start_ns, meaning: 'of the path',
            show: (step) => el('span', {class: 'with-bar'}, smallBar((step.end_ns - step.start_ns) / longest, step.kind), shareText((step.end_ns - step.start_ns) / whole))},
        {title: 'Waited for', show: (step) => step.why ?? ''},
    ];
    return sortableTable('Steps of the critical path, in order of time', columns, steps, {first: 10});
}
