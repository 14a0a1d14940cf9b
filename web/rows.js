// SPDX-License-Identifier: Apache-2.0
// rows.js - layout of a timeline: ranks, their tracks, and rows within a track.
//
//     rank 0 | compute  |==gemm==|  |==gemm==|        a block: one rank, open or closed
//            | stream   |====all-reduce====|          a lane of a track is a row;
//            |             |=phase=||=phase=|         spans that overlap go one lane down
//            | memory   /\__/\__                      a counter is a row of its own
//     rank 1 | ...                                    a closed block draws its rows as thin strips
//
// Invariant: within a row spans are in order and do not overlap (but for the last lane of a track with more
// than LANES_MOST at one time), so that what is visible is found by bisection.  Cost: one pass over the spans.

import {breathe} from './dom.js';
/** @import {Timeline} from './columns.js' */
/** @import {Levels} from './levels.js' */
/** @import {Maybe} from './types.js' */

const LANES_MOST = 32;
const COUNTER_HEIGHT = 34;
const BLOCK_GAP = 5;
const TRACK_GAP = 2;
const OPEN_HEIGHT_MOST = 60; /* rows: beyond this, only the first blocks are open initially */

/**
 * @typedef {object} Row
 * @property {number} track         or -1 for a counter
 * @property {number} counter       or -1 for spans
 * @property {number} lane
 * @property {Uint32Array} spans    in order of start
 * @property {Levels | null} levels   null: few spans, or not built yet
 * @property {boolean} isReady      levels are built, or not needed
 * @property {number} y             from the top of the content
 * @property {number} height
 */

/**
 * @typedef {object} Block
 * @property {Maybe} rank
 * @property {string} label
 * @property {Row[]} rows
 * @property {boolean} isOpen
 * @property {number} y
 * @property {number} height
 */

/** @typedef {{blocks: Block[], height: number, rowOfSpan: Uint32Array, rows: Row[]}} Scene */

/** Assigns the spans of a track to lanes: each to the first free one. @param {Timeline} timeline
 *  @param {number} track @returns {Uint32Array[]} */
function lanesOfTrack(timeline, track) {
    const from = timeline.first[track];
    const to = timeline.first[track + 1];
    const lane = new Uint8Array(to - from);
    /** @type {number[]} */
    const ends = [];
    /** @type {number[]} */
    const counts = [];
    for (let k = from; k < to; k++) {
        let free = 0;
        while (free < ends.length && ends[free] > timeline.start[k]) free++;
        if (free === LANES_MOST) free--;
        ends[free] = timeline.start[k] + timeline.length[k];
        counts[free] = (counts[free] ?? 0) + 1;
        lane[k - from] = free;
    }
    const lanes = counts.map((count) => new Uint32Array(count));
    const filled = new Uint32Array(counts.length);
    for (let k = from; k < to; k++) lanes[lane[k - from]][filled[lane[k - from]]++] = k;
    return lanes;
}

/** @param {Partial<Row>} part @returns {Row} */
function newRow(part) {
    return {track: -1, counter: -1, lane: 0, spans: new Uint32Array(0), levels: null, isReady: false, y: 0, height: 0, ...part};
}

/** @param {Maybe} rank */
function rankLabel(rank) {
    return typeof rank === 'number' ? `rank ${rank}` : 'job';
}

/** @param {Timeline} timeline @returns {Promise<Scene>} */
export async function buildScene(timeline) {
    /** @type {Map<number, Block>} */
    const blocks = new Map();
    /** @param {Maybe} rank */
    const blockOf = (rank) => {
        const key = typeof rank === 'number' ? rank : -1;
        let block = blocks.get(key);
        if (!block) blocks.set(key, block = {rank, label: rankLabel(rank), rows: [], isOpen: true, y: 0, height: 0});
        return block;
    };
    let since = performance.now();
    for (let track = 0; track < timeline.meta.tracks.length; track++) {
        const block = blockOf(timeline.meta.tracks[track].rank);
        const lanes = lanesOfTrack(timeline, track);
        lanes.forEach((spans, lane) => block.rows.push(newRow({track, lane, spans})));
        if (performance.now() - since < 12) continue;
        await breathe();
        since = performance.now();
    }
    (timeline.meta.counters ?? []).forEach((counter, k) => {
        if (timeline.counters[k].at.length > 0) blockOf(counter.rank).rows.push(newRow({counter: k, isReady: true}));
    });
    const sorted = [...blocks.entries()].sort(([a], [b]) => a - b).map(([, block]) => block);
    return sceneOfBlocks(timeline, sorted);
}

/** @param {Timeline} timeline @param {Block[]} blocks @returns {Scene} */
function sceneOfBlocks(timeline, blocks) {
    const rows = blocks.flatMap((block) => block.rows);
    const rowOfSpan = new Uint32Array(timeline.count);
    rows.forEach((row, number) => row.spans.forEach((span) => { rowOfSpan[span] = number; }));
    let open = 0;
    if (rows.length > OPEN_HEIGHT_MOST) {
        for (const block of blocks) block.isOpen = (open += block.rows.length) <= OPEN_HEIGHT_MOST / 3;
    }
    if (blocks.length > 0 && rows.length <= 4 * OPEN_HEIGHT_MOST) blocks[0].isOpen = true;
    const scene = {blocks, rows, rowOfSpan, height: 0};
    layoutScene(scene);
    return scene;
}

/** The more lanes a track has, the thinner they are. @param {number} lanes */
function laneHeight(lanes) {
    return lanes <= 4 ? 18 : lanes <= 8 ? 14 : lanes <= 16 ? 9 : 6;
}

/** Computes the position of each block and row; called again after a block is opened or closed. @param {Scene} scene */
export function layoutScene(scene) {
    let y = 2;
    for (const block of scene.blocks) {
        block.y = y;
        if (block.isOpen) layoutOpen(block);
        else layoutClosed(block);
        y += block.height + BLOCK_GAP;
    }
    scene.height = y;
}

/** @param {Block} block */
function layoutOpen(block) {
    /** @type {Map<number, number>} */
    const lanes = new Map();
    for (const row of block.rows) lanes.set(row.track, (lanes.get(row.track) ?? 0) + 1);
    let y = block.y;
    let track = -2;
    for (const row of block.rows) {
        if (row.track !== track && track !== -2) y += TRACK_GAP;
        track = row.track;
        row.y = y;
        row.height = row.counter >= 0 ? COUNTER_HEIGHT : laneHeight(lanes.get(row.track) ?? 1);
        y += row.height;
    }
    block.height = Math.max(18, y - block.y);
}

/** A closed block: every row is a strip; counters and the deepest lanes are dropped if there are many. @param {Block} block */
function layoutClosed(block) {
    const strips = block.rows.filter((row) => row.counter < 0);
    const height = strips.length <= 4 ? 4 : strips.length <= 8 ? 3 : 2;
    let y = block.y + 1;
    for (const row of block.rows) {
        row.y = y;
        row.height = row.counter < 0 && y - block.y < 40 ? height : 0;
        y += row.height;
    }
    block.height = Math.max(14, y - block.y + 1);
}

/** @param {Scene} scene @param {number} y @returns {Block | undefined} */
export function blockAt(scene, y) {
    return scene.blocks.find((block) => y >= block.y && y < block.y + block.height + BLOCK_GAP);
}

/** @param {Scene} scene @param {number} y @returns {Row | undefined} */
export function rowAt(scene, y) {
    return blockAt(scene, y)?.rows.find((row) => y >= row.y && y < row.y + row.height);
}

/** How many spans of the row start before this tick. @param {Timeline} timeline
 *  @param {Row} row @param {number} tick */
export function spansBefore(timeline, row, tick) {
    let low = 0;
    let high = row.spans.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (timeline.start[row.spans[middle]] < tick) low = middle + 1;
        else high = middle;
    }
    return low;
}
