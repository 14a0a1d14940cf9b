// SPDX-License-Identifier: Apache-2.0
// operators.js - the spans of the timeline by name: count, total time and self time.
//
// The self time of a span is its length minus that of the spans nested in it on its track, as in a profiler.  Cost: one
// pass over the spans, made in slices after the timeline is drawn.

import {el} from './dom.js';
import {smallBar} from './bars.js';
import {kindClass} from './palette.js';
import {panel} from './panel.js';
import {sortableTable} from './table.js';
import {countOf, countText, timeExact, timeText} from './units.js';
/** @import {Timeline} from './columns.js' */
/** @import {Column} from './table.js' */

/** @typedef {{name: string, kind: string, count: number, own: number, total: number, longest: number}} Operator  times in ns */

/** Self time of each span of a track: nested spans are subtracted from the enclosing one. @param {Timeline} timeline
 *  @param {number} track @param {Float64Array} own */
function ownTimes(timeline, track, own) {
    /** @type {number[]} spans that are open here, outermost first */
    const open = [];
    for (let k = timeline.first[track]; k < timeline.first[track + 1]; k++) {
        const end = timeline.start[k] + timeline.length[k];
        own[k] = timeline.length[k];
        while (open.length > 0 && endOf(timeline, open[open.length - 1]) <= timeline.start[k]) open.pop();
        const around = open[open.length - 1];
        if (around !== undefined && endOf(timeline, around) >= end) own[around] -= timeline.length[k];
        open.push(k);
    }
}

/** @param {Timeline} timeline @param {number} span */
function endOf(timeline, span) {
    return timeline.start[span] + timeline.length[span];
}

/** Names that differ only in numbers are merged: mb0.layer12.mlp becomes mb*.layer*.mlp. @param {string} name */
export function folded(name) {
    return name.replace(/\d+/g, '*');
}

/** For each text the index of its merged name. @param {string[]} texts @param {boolean} isFolded */
function namesOfTexts(texts, isFolded) {
    /** @type {Map<string, number>} */
    const numbers = new Map();
    const names = texts.map((text) => (isFolded ? folded(text) : text));
    names.forEach((name) => { if (!numbers.has(name)) numbers.set(name, numbers.size); });
    return {of: Uint32Array.from(names, (name) => numbers.get(name) ?? 0), names: [...numbers.keys()]};
}

/** @param {Timeline} timeline @param {boolean} isFolded @returns {Generator<void, Operator[]>} largest self time first */
export function* operatorsOf(timeline, isFolded) {
    const own = new Float64Array(timeline.count);
    const {of, names} = namesOfTexts(timeline.meta.texts, isFolded);
    /** @type {Map<number, Operator>} by name and kind */
    const found = new Map();
    // Spans of kind "other" are annotations, unless all spans are.
    const other = timeline.meta.kinds.indexOf('other');
    const hasWork = timeline.kind.some((kind) => kind !== other);
    for (let track = 0; track < timeline.meta.tracks.length; track++) {
        ownTimes(timeline, track, own);
        for (let k = timeline.first[track]; k < timeline.first[track + 1]; k++) {
            if (hasWork && timeline.kind[k] === other) continue;
            const key = of[timeline.name[k]] * 256 + timeline.kind[k];
            let operator = found.get(key);
            if (!operator) {
                found.set(key, operator = {name: names[of[timeline.name[k]]] ?? '', kind: timeline.meta.kinds[timeline.kind[k]] ?? 'other',
                    count: 0, own: 0, total: 0, longest: 0});
            }
            operator.count++;
            operator.own += own[k] * timeline.tickNs;
            operator.total += timeline.length[k] * timeline.tickNs;
            operator.longest = Math.max(operator.longest, timeline.length[k] * timeline.tickNs);
        }
        yield;
    }
    return [...found.values()].sort((a, b) => b.own - a.own || b.count - a.count);
}

/** @param {Operator[]} operators @param {(name: string) => void} find */
export function operatorTable(operators, find) {
    const most = Math.max(1, ...operators.slice(0, 1).map((one) => one.own));
    /** @param {string} title @param {string} meaning @param {(row: Operator) => number} of @returns {Column<Operator>} */
    const time = (title, meaning, of) => ({title, meaning, isNumber: true, key: of, show: (row) => timeText(of(row)), exact: (row) => timeExact(of(row))});
    return sortableTable('Spans by name', [
        {title: 'Name', key: (row) => row.name, show: (row) => el('span', {class: 'chip'}, el('i', {class: `swatch kind-${kindClass(row.kind)}`, title: row.kind}),
            el('button', {type: 'button', class: 'link', title: `${row.name}\nFind them in the timeline`, onclick: () => find(row.name)}, row.name || '(no name)'))},
        {title: 'Kind', key: (row) => row.kind, show: (row) => row.kind},
        {title: 'Count', isNumber: true, key: (row) => row.count, show: (row) => `${countText(row.count)}\u00a0\u00d7`},
        {title: 'Self', isNumber: true, meaning: 'without the spans inside it on its track', key: (row) => row.own, exact: (row) => timeExact(row.own),
            show: (row) => el('span', {class: 'with-bar'}, smallBar(row.own / most, row.kind), timeText(row.own))},
        time('Total', 'the sum of the lengths', (row) => row.total),
        time('Mean', 'of the lengths', (row) => row.total / row.count),
        time('Longest', 'of the lengths', (row) => row.longest),
    ], operators, {first: 10});
}

/** The panel; the table is filled when the events are decoded. @param {number} ranks  that are drawn */
export function operatorsPanel(ranks) {
    return panel('operators', 'Operators', `The spans of the timeline by name, summed over the ${countOf(ranks, 'rank')} drawn.`);
}
