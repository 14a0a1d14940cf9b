// SPDX-License-Identifier: Apache-2.0
// levels.js - level of detail: how busy a row is in each slice of time, for each kind, at every zoom.
//
//     level 0   |3|0|7|8|8|2|0|0|     share of a bin, in 255ths; as many bins as the row has spans
//     level 1   | 2 | 8 | 5 | 0 |     each bin the mean of two
//     level 2   |   5   |   3   |
//
// Drawing a row of any size then takes one or two bins per pixel.  Shares are rounded up, so that even the shortest
// span is visible.  Cost: one pass over the spans of a row; at most two bytes per span and kind.

/** @import {Timeline} from './columns.js' */
/** @import {Row} from './rows.js' */

const BINS_LEAST = 1024;
const BINS_MOST = 1 << 20;

/**
 * @typedef {object} Levels
 * @property {number[]} kinds       kinds in the row
 * @property {number} bin           ticks of a bin of level 0
 * @property {Uint8Array[][]} share share[level][place of the kind][bin]
 */

/** Rows with fewer spans are drawn span by span. @param {number} spans */
export function needsLevels(spans) {
    return spans > 512;
}

/** Adds one span to its bins. @param {Float32Array} bins @param {number} bin @param {number} start @param {number} end */
function addBusy(bins, bin, start, end) {
    const from = Math.min(bins.length - 1, Math.floor(start / bin));
    const to = Math.min(bins.length - 1, Math.floor(end / bin));
    if (from === to) {
        bins[from] += Math.max(end - start, bin * 1e-3);
        return;
    }
    bins[from] += (from + 1) * bin - start;
    for (let k = from + 1; k < to; k++) bins[k] += bin;
    bins[to] += end - to * bin;
}

/** @param {Float32Array} bins @param {number} bin @returns {Uint8Array} */
function asShares(bins, bin) {
    const shares = new Uint8Array(bins.length);
    for (let k = 0; k < bins.length; k++) shares[k] = Math.min(255, Math.ceil(bins[k] / bin * 255 - 1e-3));
    return shares;
}

/** @param {Uint8Array} fine @returns {Uint8Array} */
function halve(fine) {
    const coarse = new Uint8Array(fine.length >> 1);
    for (let k = 0; k < coarse.length; k++) coarse[k] = (fine[2 * k] + fine[2 * k + 1] + 1) >> 1;
    return coarse;
}

/** @param {Timeline} timeline @param {Uint32Array} spans @returns {Levels} */
export function buildLevels(timeline, spans) {
    let count = BINS_LEAST;
    while (count < spans.length && count < BINS_MOST) count *= 2;
    const bin = timeline.extent / count;
    /** @type {Map<number, Float32Array>} */
    const busy = new Map();
    for (let k = 0; k < spans.length; k++) {
        const span = spans[k];
        let bins = busy.get(timeline.kind[span]);
        if (!bins) busy.set(timeline.kind[span], bins = new Float32Array(count));
        addBusy(bins, bin, timeline.start[span], timeline.start[span] + timeline.length[span]);
    }
    const kinds = [...busy.keys()].sort((a, b) => a - b);
    const share = [kinds.map((kind) => asShares(/** @type {Float32Array} */ (busy.get(kind)), bin))];
    while (share[share.length - 1][0].length > 64) share.push(share[share.length - 1].map(halve));
    return {kinds, bin, share};
}

/** The coarsest level whose bins are no wider than this many ticks. @param {Levels} levels @param {number} ticks */
export function levelFor(levels, ticks) {
    let level = 0;
    while (level + 1 < levels.share.length && levels.bin * 2 ** (level + 1) <= ticks) level++;
    return level;
}

/** Utilization of all rows together, for the minimap: bins of each kind, as a share of the number of tracks. Only the
 * top lane counts, since lower lanes are nested in it. Receives are left out: they mostly wait and would hide the rest.
 *  @param {Timeline} timeline @param {Row[]} rows @param {number} bins
 *  @returns {Generator<void, Float32Array[]>} */
export function* busyOverall(timeline, rows, bins) {
    const bin = timeline.extent / bins;
    const out = timeline.meta.kinds.map(() => new Float32Array(bins));
    const top = rows.filter((row) => row.lane === 0 && row.counter < 0);
    const waiting = timeline.meta.kinds.indexOf('receive');
    for (const row of top) {
        for (let k = 0; k < row.spans.length; k++) {
            const span = row.spans[k];
            if (timeline.kind[span] !== waiting) addBusy(out[timeline.kind[span]] ?? out[0], bin, timeline.start[span], timeline.start[span] + timeline.length[span]);
            if (k % 65536 === 65535) yield;
        }
        yield;
    }
    const scale = 1 / (bin * Math.max(1, top.length));
    for (const series of out) for (let k = 0; k < bins; k++) series[k] *= scale;
    return out;
}
