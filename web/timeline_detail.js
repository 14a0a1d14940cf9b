// SPDX-License-Identifier: Apache-2.0
// timeline_detail.js - text about the span at the mouse, the selected span, and the measured time range.

import {el} from './dom.js';
import {kindClass} from './palette.js';
import {countOf, counterText, countText, rateText, shareText, sizeText, timeExact, timeText} from './units.js';
import {counterAt} from './draw_rows.js';
import {rowAt} from './rows.js';
/** @import {Timeline} from './columns.js' */
/** @import {Place} from './timeline_input.js' */
/** @import {TimelineView} from './view.js' */

const NEIGHBOURS_MOST = 8;

/** A square of the kind's colour and the kind's name. @param {string} kind */
export function kindChip(kind) {
    return el('span', {class: 'chip'}, el('i', {class: `swatch kind-${kindClass(kind)}`}), kind);
}

/** @param {Timeline} timeline @param {number} span */
export function spanName(timeline, span) {
    return timeline.meta.texts[timeline.name[span]] || '(no name)';
}

/** "rank 3, compute" @param {Timeline} timeline @param {number} span */
function spanPlace(timeline, span) {
    const track = timeline.meta.tracks[timeline.track[span]];
    return typeof track.rank === 'number' ? `rank ${track.rank}, ${track.name}` : track.name;
}

/** @param {TimelineView} view @param {Place} place @returns {string[]} lines */
export function hoverLines(view, place) {
    const {timeline} = view;
    if (view.hover >= 0) {
        const span = view.hover;
        const lines = [
            spanName(timeline, span),
            `${timeline.meta.kinds[timeline.kind[span]]}, ${timeText(view.nsOf(timeline.length[span]))}` +
                (timeline.open[span] ? ', had not ended' : ''),
            `${spanPlace(timeline, span)}, at ${timeText(view.nsOf(timeline.start[span]))}`,
        ];
        if (timeline.size[span] > 0) lines.push(sizeText(timeline.size[span]));
        return lines;
    }
    const row = place.area === 'plot' ? rowAt(view.scene, place.y) : undefined;
    const counter = row && row.counter >= 0 ? timeline.meta.counters?.[row.counter] : undefined;
    if (!row || !counter) return [];
    return [counter.name, counterText(counterAt(view, row.counter, view.tickAt(place.x)), counter.unit)];
}

/** @param {TimelineView} view @param {number} span */
function facts(view, span) {
    const {timeline} = view;
    const length = view.nsOf(timeline.length[span]);
    const size = timeline.size[span];
    /** @type {[string, string | Node, string?][]} */
    const list = [
        ['kind', kindChip(timeline.meta.kinds[timeline.kind[span]] ?? 'other')],
        ['where', spanPlace(timeline, span)],
        ['start', timeText(view.nsOf(timeline.start[span])), timeExact(view.nsOf(timeline.start[span]))],
        [timeline.open[span] ? 'lasted, without ending' : 'lasted', timeText(length), timeExact(length)],
    ];
    if (size > 0) list.push(['size', sizeText(size), `${countText(size)} B`]);
    if (size > 0 && length > 0) list.push(['size / time', rateText(size / length * 1e9)]);
    if (timeline.group[span] > 0) list.push(['group', timeline.meta.texts[timeline.group[span]] ?? '']);
    if (timeline.peer[span] > 0) list.push(['peer', `rank ${timeline.peer[span] - 1}`]);
    if (timeline.id[span] > 0) list.push(['node', countText(timeline.id[span] - 1)]);
    return list;
}

/** @param {TimelineView} view @param {'from' | 'to'} side  which end the other span is at */
function neighbours(view, side) {
    const {arrows} = view.timeline;
    const here = side === 'from' ? arrows.to : arrows.from;
    return view.arrows.filter((arrow) => here[arrow] === view.selected).map((arrow) => arrows[side][arrow]);
}

/** @param {TimelineView} view @param {string} title @param {number[]} spans */
function neighbourList(view, title, spans) {
    if (spans.length === 0) return null;
    const buttons = spans.slice(0, NEIGHBOURS_MOST).map((span) => el('button', {
        type: 'button', class: 'link', onclick: () => view.reveal(span),
    }, `${spanName(view.timeline, span)} (${spanPlace(view.timeline, span)})`));
    const more = spans.length - NEIGHBOURS_MOST;
    return el('div', {class: 'neighbours'}, el('span', {class: 'label'}, title), ...buttons, more > 0 && `and ${countText(more)} more`);
}

/** @param {TimelineView} view @param {(text: string) => void} find */
export function detailOfSelection(view, find) {
    const {selected, timeline} = view;
    if (view.measure) return detailOfMeasure(view, view.measure);
    if (selected < 0) {
        return el('p', {class: 'hint'}, 'Click a span for its details. Drag to move, wheel to zoom, drag along the ruler (or with Shift) to measure; press ? for all keys.');
    }
    return el('div', {class: 'detail'},
        el('div', {class: 'detail-name'}, spanName(timeline, selected)),
        el('dl', {class: 'facts'}, ...facts(view, selected).map(([name, value, exact]) =>
            el('div', {}, el('dt', {}, name), el('dd', {title: exact ?? null}, value)))),
        neighbourList(view, 'waited for', neighbours(view, 'from')),
        neighbourList(view, 'let go on', neighbours(view, 'to')),
        el('div', {class: 'tools'},
            el('button', {type: 'button', onclick: () => view.zoomToSelection()}, 'Zoom to it'),
            el('button', {type: 'button', onclick: () => find(spanName(timeline, selected))}, 'Find all of this name')));
}

/** Time of each kind within a range, over the top lanes of all tracks. @param {TimelineView} view
 *  @param {{from: number, to: number}} measure */
function busyWithin(view, measure) {
    const {timeline, scene} = view;
    const busy = timeline.meta.kinds.map(() => 0);
    let spans = 0;
    for (const row of scene.rows) {
        if (row.lane > 0) continue;
        for (const span of row.spans) {
            const from = Math.max(measure.from, timeline.start[span]);
            const to = Math.min(measure.to, timeline.start[span] + timeline.length[span]);
            if (to <= from) continue;
            busy[timeline.kind[span]] += to - from;
            spans++;
        }
    }
    return {busy, spans};
}

/** @param {TimelineView} view @param {{from: number, to: number}} measure */
function detailOfMeasure(view, measure) {
    const {busy, spans} = busyWithin(view, measure);
    const tracks = view.scene.rows.filter((row) => row.lane === 0 && row.counter < 0).length;
    const whole = (measure.to - measure.from) * Math.max(1, tracks);
    const parts = busy.map((ticks, kind) => ({kind: view.timeline.meta.kinds[kind], ticks})).filter(({ticks}) => ticks > 0);
    parts.sort((a, b) => b.ticks - a.ticks);
    const length = view.nsOf(measure.to - measure.from);
    return el('div', {class: 'detail'},
        el('div', {class: 'detail-name', title: timeExact(length)}, `Measured: ${timeText(length)}`),
        el('dl', {class: 'facts'},
            el('div', {}, el('dt', {}, 'from'), el('dd', {}, timeText(view.nsOf(measure.from)))),
            el('div', {}, el('dt', {}, 'to'), el('dd', {}, timeText(view.nsOf(measure.to)))),
            el('div', {}, el('dt', {}, 'in it'), el('dd', {}, countOf(spans, 'span'))),
            ...parts.map(({kind, ticks}) => el('div', {}, el('dt', {}, kindChip(kind)),
                el('dd', {title: 'share of the time of all tracks'}, shareText(ticks / whole))))),
        el('div', {class: 'tools'}, el('button', {type: 'button', onclick: () => view.zoomToSelection()}, 'Zoom to it'),
            el('button', {type: 'button', onclick: () => view.setMeasure(null)}, 'Clear')));
}
