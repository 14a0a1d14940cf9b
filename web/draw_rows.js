// SPDX-License-Identifier: Apache-2.0
// draw_rows.js - paints the rows of a timeline into the raster: span by span, or by how busy each pixel is.
//
// Three ways, depending on how much of the row is visible:
//   few spans     each is a box; narrower than a pixel, a column as strong as it is wide
//   many spans    from the levels: a pixel's column is stacked by kind, as high as the share
//   not built yet one sample a pixel, found by bisection: right enough for the first second

import {levelFor} from './levels.js';
import {spansBefore} from './rows.js';
/** @import {Levels} from './levels.js' */
/** @import {Inks, Raster} from './raster.js' */
/** @import {Row} from './rows.js' */
/** @import {Search, TimelineView} from './view.js' */

const DIM = 4;  /* strength, out of 16, of spans that do not match a search */
const SOFT = 6; /* of receives: they mostly wait, and the message arrives at their end */

/**
 * @typedef {object} RowPen
 * @property {Raster} raster
 * @property {Inks} inks
 * @property {TimelineView} view
 * @property {number} scale        device pixels per CSS pixel
 * @property {number[]} order      kinds in stacking order, from the bottom
 * @property {number} soft         the kind of receives, or -1
 */

/** @param {RowPen} pen @param {Row} row @param {number} top @param {number} bottom  device pixels */
export function drawRow(pen, row, top, bottom) {
    const {view} = pen;
    const {timeline} = view;
    const first = Math.max(0, spansBefore(timeline, row, view.from) - 1);
    const last = spansBefore(timeline, row, view.to);
    if (last - first <= pen.raster.width * 0.75 || (row.isReady && !row.levels)) {
        drawSpans(pen, row, first, last, top, bottom);
    } else if (row.levels) {
        drawShares(pen, row.levels, top, bottom);
    } else {
        drawSamples(pen, row, top, bottom);
    }
    if (view.search) drawMatches(pen, row, first, last, top, bottom);
}

/** @param {RowPen} pen @param {Row} row @param {number} first @param {number} last
 *  @param {number} top @param {number} bottom */
function drawSpans(pen, row, first, last, top, bottom) {
    const {raster, inks, view} = pen;
    const {timeline} = view;
    const perTick = raster.width / (view.to - view.from);
    for (let k = first; k < last; k++) {
        const span = row.spans[k];
        const kind = timeline.kind[span];
        const left = (timeline.start[span] - view.from) * perTick;
        const width = timeline.length[span] * perTick;
        const isDim = view.search !== null && !view.search.isMatch[timeline.name[span]];
        if (left + width < 0) continue;
        if (width < 1.5) {
            const x = Math.floor(left);
            const strength = isDim ? DIM : Math.max(5, Math.ceil(width * 16));
            if (x >= 0 && x < raster.width) raster.column(x, top, bottom, inks.strength[kind][Math.min(16, strength)]);
            continue;
        }
        const x0 = Math.round(left);
        const x1 = Math.max(x0 + 1, Math.round(left + width));
        const isSoft = kind === pen.soft;
        raster.rect(x0, top, x1, bottom, isDim ? inks.strength[kind][DIM] : isSoft ? inks.strength[kind][SOFT] : inks.solid[kind]);
        if (x1 - x0 <= 3) continue;
        if (isSoft && !isDim) raster.rect(x1 - 2, top, x1, bottom, inks.solid[kind]);
        else raster.rect(x1 - 1, top, x1, bottom, isDim ? inks.paper : inks.edge[kind]);
    }
}

/** @param {RowPen} pen @param {Levels} levels @param {number} top @param {number} bottom */
function drawShares(pen, levels, top, bottom) {
    const {raster, view} = pen;
    const perPixel = (view.to - view.from) / raster.width;
    const level = levelFor(levels, perPixel);
    const bin = levels.bin * 2 ** level;
    const shares = pen.order.filter((kind) => levels.kinds.includes(kind))
        .map((kind) => ({kind, bins: levels.share[level][levels.kinds.indexOf(kind)]}));
    const isStrip = bottom - top <= 6 * pen.scale;
    for (let x = 0; x < raster.width; x++) {
        const from = Math.floor((view.from + x * perPixel) / bin);
        const to = Math.max(from + 1, Math.min(Math.floor((view.from + (x + 1) * perPixel) / bin), from + 4));
        if (isStrip) stripColumn(pen, shares, from, to, x, top, bottom);
        else stackColumn(pen, shares, from, to, x, top, bottom);
    }
}

/** The mean of a range of bins. @param {Uint8Array} bins @param {number} from @param {number} to */
function meanShare(bins, from, to) {
    let sum = 0;
    for (let k = from; k < to; k++) sum += bins[k] ?? 0;
    return sum / (to - from);
}

/** @param {RowPen} pen @param {{kind: number, bins: Uint8Array}[]} shares @param {number} from @param {number} to
 *  @param {number} x @param {number} top @param {number} bottom */
function stackColumn(pen, shares, from, to, x, top, bottom) {
    const isDim = pen.view.search !== null;
    let y = bottom;
    for (const {kind, bins} of shares) {
        const share = meanShare(bins, from, to);
        if (share === 0) continue;
        const high = Math.max(1, Math.round(share / 255 * (bottom - top)));
        const up = Math.max(top, y - high);
        pen.raster.column(x, up, y, isDim ? pen.inks.strength[kind][DIM] : pen.inks.solid[kind]);
        y = up;
    }
}

/** A thin row has no room for a stack: show the strongest kind, at the strength of all together.
 *  @param {RowPen} pen @param {{kind: number, bins: Uint8Array}[]} shares @param {number} from @param {number} to
 *  @param {number} x @param {number} top @param {number} bottom */
function stripColumn(pen, shares, from, to, x, top, bottom) {
    let total = 0;
    let most = -1;
    let best = 0;
    for (const {kind, bins} of shares) {
        const share = meanShare(bins, from, to);
        total += share;
        if (share > most) {
            most = share;
            best = kind;
        }
    }
    if (total === 0) return;
    const strength = pen.view.search ? DIM : Math.max(3, Math.min(16, Math.ceil(total / 255 * 16)));
    pen.raster.column(x, top, bottom, pen.inks.strength[best][strength]);
}

/** @param {RowPen} pen @param {Row} row @param {number} top @param {number} bottom */
function drawSamples(pen, row, top, bottom) {
    const {raster, inks, view} = pen;
    const {timeline} = view;
    const perPixel = (view.to - view.from) / raster.width;
    for (let x = 0; x < raster.width; x++) {
        const tick = view.from + (x + 0.5) * perPixel;
        const span = row.spans[spansBefore(timeline, row, tick) - 1];
        if (span === undefined || timeline.start[span] + timeline.length[span] < tick) continue;
        raster.column(x, top, bottom, inks.solid[timeline.kind[span]]);
    }
}

/** Draws matches of a search at full strength: at most one column or box per pixel. @param {RowPen} pen
 *  @param {Row} row @param {number} first @param {number} last @param {number} top @param {number} bottom */
function drawMatches(pen, row, first, last, top, bottom) {
    const {raster, inks, view} = pen;
    const {timeline} = view;
    const search = /** @type {Search} */ (view.search);
    const perTick = raster.width / (view.to - view.from);
    let drawn = -1;
    for (let k = first; k < last; k++) {
        const span = row.spans[k];
        if (!search.isMatch[timeline.name[span]]) continue;
        const x = Math.max(0, Math.floor((timeline.start[span] - view.from) * perTick));
        const end = Math.max(x + 1, Math.round((timeline.start[span] + timeline.length[span] - view.from) * perTick));
        if (end <= drawn) continue;
        raster.rect(Math.max(x, drawn), top, end, bottom, inks.solid[timeline.kind[span]]);
        drawn = end;
    }
}

/** The area under a step function; of several samples in one pixel the largest is drawn. @param {RowPen} pen
 *  @param {Row} row @param {number} top @param {number} bottom @param {number} line @param {number} area */
export function drawCounter(pen, row, top, bottom, line, area) {
    const {raster, view} = pen;
    const {at, value} = view.timeline.counters[row.counter];
    const most = counterMost(view, row.counter);
    const perPixel = (view.to - view.from) / raster.width;
    let k = samplesBefore(at, view.from);
    let before = bottom;
    for (let x = 0; x < raster.width; x++) {
        const end = view.from + (x + 1) * perPixel;
        let high = k > 0 ? value[k - 1] : 0;
        while (k < at.length && at[k] < end) high = Math.max(high, value[k++]);
        const y = bottom - Math.round(Math.max(0, high) / most * (bottom - top - 2 * pen.scale));
        raster.column(x, y, bottom, area);
        raster.column(x, Math.min(y, before), Math.max(y, before) + 1, line);
        before = y;
    }
}

/** @param {Float64Array} at @param {number} tick */
function samplesBefore(at, tick) {
    let low = 0;
    let high = at.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (at[middle] < tick) low = middle + 1;
        else high = middle;
    }
    return low;
}

/** @type {WeakMap<Float64Array, number>} */
const largestValues = new WeakMap();

/** @param {TimelineView} view @param {number} counter */
export function counterMost(view, counter) {
    const {value} = view.timeline.counters[counter];
    let most = largestValues.get(value);
    if (most === undefined) {
        most = value.reduce((a, b) => Math.max(a, b), 0) || 1;
        largestValues.set(value, most);
    }
    return most;
}

/** The value at a tick. @param {TimelineView} view @param {number} counter @param {number} tick */
export function counterAt(view, counter, tick) {
    const {at, value} = view.timeline.counters[counter];
    const k = samplesBefore(at, tick + 1e-9);
    return k > 0 ? value[k - 1] : 0;
}
