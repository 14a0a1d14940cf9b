// SPDX-License-Identifier: Apache-2.0
// columns.js - the events of a timeline, from the text in the page to typed arrays.
//
//     base64 -> zlib -> "ORT1", then columns, each a length (u32, little endian) and its bytes
//
// Columns of variable-length numbers (LEB128) are small on disk and quick to read.  Decoding a million spans takes
// about a third of a second; the page can handle input between two columns.  A damaged file throws an error with a
// message.

import {breathe} from './dom.js';
/** @import {TimelineMeta} from './types.js' */

const MAGIC = 0x3154524f;

/**
 * @typedef {object} Timeline
 * @property {TimelineMeta} meta
 * @property {number} count             spans, by track, then start
 * @property {number} extent            ticks from the start of the timeline to its end
 * @property {number} tickNs
 * @property {Uint32Array} first        spans of track k: first[k] .. first[k + 1]
 * @property {Uint32Array} track        of each span
 * @property {Float64Array} start       ticks
 * @property {Float64Array} length      ticks
 * @property {Uint32Array} name         a text
 * @property {Uint8Array} kind          a kind of meta.kinds
 * @property {Uint8Array} open          1: it had not ended
 * @property {Uint32Array} group        a text
 * @property {Float64Array} size        bytes; 0: not known
 * @property {Float64Array} id          plus one; 0: none
 * @property {Float64Array} peer        plus one; 0: none
 * @property {Arrows} arrows
 * @property {{at: Float64Array, value: Float64Array}[]} counters
 */

/**
 * @typedef {object} Arrows
 * @property {number} count
 * @property {Uint32Array} from         spans
 * @property {Uint32Array} to
 * @property {Float64Array} left        ticks
 * @property {Float64Array} arrived
 */

/** @param {string} text @returns {Uint8Array} */
function bytesOfBase64(text) {
    const native = /** @type {{fromBase64?: (text: string) => Uint8Array}} */ (/** @type {unknown} */ (Uint8Array)).fromBase64;
    if (native) return native.call(Uint8Array, text);
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let k = 0; k < bytes.length; k++) bytes[k] = binary.charCodeAt(k);
    return bytes;
}

/** @param {Uint8Array} bytes @returns {Promise<Uint8Array>} */
async function inflate(bytes) {
    const stream = new Blob([/** @type {BlobPart} */ (bytes)]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads the columns in order. */
class ColumnReader {
    /** @param {Uint8Array} bytes */
    constructor(bytes) {
        this.bytes = bytes;
        this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        this.place = 0;
        if (this.word() !== MAGIC) throw new Error('the events do not begin with "ORT1"');
    }

    word() {
        if (this.place + 4 > this.bytes.length) throw new Error(`the events end early, at byte ${this.place}`);
        const value = this.view.getUint32(this.place, true);
        this.place += 4;
        return value;
    }

    /** @param {string} name @returns {Uint8Array} */
    column(name) {
        const length = this.word();
        if (this.place + length > this.bytes.length) throw new Error(`the column "${name}" ends early, at byte ${this.place}`);
        this.place += length;
        return this.bytes.subarray(this.place - length, this.place);
    }
}

/** Reads `out.length` numbers. @template {Float64Array | Uint32Array} T
 *  @param {Uint8Array} bytes @param {T} out @param {string} name @returns {T} */
function readNumbers(bytes, out, name) {
    let place = 0;
    for (let k = 0; k < out.length; k++) {
        let byte = bytes[place++];
        let value = byte & 127;
        let scale = 128;
        while (byte & 128) {
            byte = bytes[place++];
            value += (byte & 127) * scale;
            scale *= 128;
        }
        out[k] = value;
    }
    if (place !== bytes.length) throw new Error(`the column "${name}" has ${bytes.length} bytes, its ${out.length} numbers ${place}`);
    return out;
}

/** @param {Uint8Array} bytes  how many numbers are in it */
function countNumbers(bytes) {
    let count = 0;
    for (let k = 0; k < bytes.length; k++) count += bytes[k] < 128 ? 1 : 0;
    return count;
}

/** Starts were written as differences within a track. @param {Uint32Array} first @param {Float64Array} start */
function sumStarts(first, start) {
    for (let track = 0; track + 1 < first.length; track++) {
        let at = 0;
        for (let k = first[track]; k < first[track + 1]; k++) start[k] = at += start[k];
    }
}

/** @param {Uint8Array} bytes @param {number} spans @returns {Arrows} */
function readArrows(bytes, spans) {
    const flat = readNumbers(bytes, new Float64Array(countNumbers(bytes)), 'arrows');
    const count = Math.floor(flat.length / 4);
    const arrows = {
        count, from: new Uint32Array(count), to: new Uint32Array(count),
        left: new Float64Array(count), arrived: new Float64Array(count),
    };
    for (let k = 0; k < count; k++) {
        arrows.from[k] = flat[4 * k];
        arrows.to[k] = flat[4 * k + 1];
        arrows.left[k] = flat[4 * k + 2];
        arrows.arrived[k] = flat[4 * k + 2] + flat[4 * k + 3];
        if (flat[4 * k] >= spans || flat[4 * k + 1] >= spans) throw new Error(`arrow ${k} is of a span that does not exist`);
    }
    return arrows;
}

/** @param {Uint8Array} bytes @param {number} counters @returns {{at: Float64Array, value: Float64Array}[]} */
function readSamples(bytes, counters) {
    const flat = readNumbers(bytes, new Float64Array(countNumbers(bytes)), 'samples');
    const counts = new Uint32Array(counters);
    for (let k = 0; k + 2 < flat.length; k += 3) {
        if (flat[k] >= counters) throw new Error(`sample ${k / 3} is of a counter that does not exist`);
        counts[flat[k]]++;
    }
    const out = Array.from(counts, (count) => ({at: new Float64Array(count), value: new Float64Array(count)}));
    const filled = new Uint32Array(counters);
    for (let k = 0; k + 2 < flat.length; k += 3) {
        const series = out[flat[k]];
        const place = filled[flat[k]]++;
        series.at[place] = flat[k + 1] + (place > 0 ? series.at[place - 1] : 0);
        /* Zigzag: 0, -1, 1, -2, 2, ... */
        series.value[place] = flat[k + 2] % 2 === 0 ? flat[k + 2] / 2 : -(flat[k + 2] + 1) / 2;
    }
    return out;
}

/** @param {TimelineMeta} meta @param {Uint8Array} counts @returns {Uint32Array} */
function readFirst(meta, counts) {
    const first = new Uint32Array(meta.tracks.length + 1);
    const sizes = readNumbers(counts, new Uint32Array(meta.tracks.length), 'first');
    for (let k = 0; k < sizes.length; k++) first[k + 1] = first[k] + sizes[k];
    return first;
}

/** @param {TimelineMeta} meta @param {string} base64 @returns {Promise<Timeline>} */
export async function decodeTimeline(meta, base64) {
    const reader = new ColumnReader(await inflate(bytesOfBase64(base64.trim())));
    const first = readFirst(meta, reader.column('first'));
    const count = first[first.length - 1];
    const start = readNumbers(reader.column('start'), new Float64Array(count), 'start');
    sumStarts(first, start);
    await breathe();
    const length = readNumbers(reader.column('length'), new Float64Array(count), 'length');
    const name = readNumbers(reader.column('name'), new Uint32Array(count), 'name');
    await breathe();
    const flags = reader.column('kind');
    if (flags.length !== count) throw new Error(`the column "kind" has ${flags.length} bytes for ${count} spans`);
    const group = readNumbers(reader.column('group'), new Uint32Array(count), 'group');
    const size = readNumbers(reader.column('size'), new Float64Array(count), 'size');
    await breathe();
    const id = readNumbers(reader.column('id'), new Float64Array(count), 'id');
    const peer = readNumbers(reader.column('peer'), new Float64Array(count), 'peer');
    await breathe();
    const arrows = readArrows(reader.column('arrows'), count);
    const counters = readSamples(reader.column('samples'), meta.counters?.length ?? 0);
    const tickNs = meta.tick_ps / 1000;
    return {
        meta, count, first, start, length, name, group, size, id, peer, arrows, counters, tickNs,
        extent: Math.max(1, (meta.end_ns - meta.start_ns) / tickNs),
        kind: flags.map((flag) => flag & 127),
        open: flags.map((flag) => flag >> 7),
        track: tracksOfSpans(first),
    };
}

/** @param {Uint32Array} first @returns {Uint32Array} */
function tracksOfSpans(first) {
    const track = new Uint32Array(first[first.length - 1]);
    for (let k = 0; k + 1 < first.length; k++) track.fill(k, first[k], first[k + 1]);
    return track;
}

/** The position of the first span of a track that starts at or after this tick.
 *  @param {Timeline} timeline @param {number} track @param {number} tick */
export function firstAtOrAfter(timeline, track, tick) {
    let low = timeline.first[track];
    let high = timeline.first[track + 1];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (timeline.start[middle] < tick) low = middle + 1;
        else high = middle;
    }
    return low;
}
