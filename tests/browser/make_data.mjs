// SPDX-License-Identifier: Apache-2.0
// make_data.mjs - documents for the page's tests, from a seed: small, large, hostile, unknown, compared, stalled.
//
//     node make_data.mjs NAME > report.html       one of SAMPLES below
//
// The figures hang together the way those of a run do (parts add up to the total, spans lie inside the run), but
// they describe no machine.

import {deflateSync} from 'node:zlib';

export const KINDS = ['other', 'host', 'compute', 'memory', 'send', 'receive', 'collective', 'phase'];
export const HOSTILE = '</script><img src=x onerror="document.body.dataset.hacked=1">';

/** A small generator of numbers: the same ones everywhere. @param {number} seed */
function randomFrom(seed) {
    let state = seed >>> 0;
    return () => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return state / 2 ** 32;
    };
}

/** Bytes that grow: LEB128 numbers. */
class Varints {
    constructor() {
        this.bytes = new Uint8Array(1 << 16);
        this.length = 0;
    }

    /** @param {number} value */
    put(value) {
        if (this.length + 10 > this.bytes.length) {
            const more = new Uint8Array(this.bytes.length * 2);
            more.set(this.bytes);
            this.bytes = more;
        }
        while (value >= 128) {
            this.bytes[this.length++] = (value % 128) | 128;
            value = Math.floor(value / 128);
        }
        this.bytes[this.length++] = value;
    }

    done() {
        return this.bytes.subarray(0, this.length);
    }
}

/**
 * @typedef {{start: number, length: number, name: string, kind: string, group?: string, size?: number, id?: number, peer?: number, isOpen?: boolean}} Span
 * @typedef {{rank: number | null, name: string, spans: Span[]}} Track
 * @typedef {{rank: number | null, name: string, unit: string, samples: [number, number][]}} Counter
 */

/** The events as they stand in a file. @param {string} script @param {Track[]} tracks @param {Counter[]} counters
 *  @param {{from: Span, to: Span}[]} arrows  @param {{start_ns?: number}} [options] */
export function packTimeline(script, tracks, counters, arrows, options = {}) {
    /** @type {Map<string, number>} */
    const texts = new Map([['', 0]]);
    /** @param {string} text */
    const textOf = (text) => {
        let number = texts.get(text);
        if (number === undefined) texts.set(text, number = texts.size);
        return number;
    };
    const names = ['first', 'start', 'length', 'name', 'kind', 'group', 'size', 'id', 'peer', 'arrows', 'samples'];
    const columns = Object.fromEntries(names.map((name) => [name, new Varints()]));
    /** @type {Map<Span, number>} */
    const numbers = new Map();
    let end = 1;
    for (const track of tracks) {
        track.spans.sort((a, b) => a.start - b.start || b.length - a.length);
        columns.first.put(track.spans.length);
        let before = 0;
        for (const span of track.spans) {
            if (arrows.length > 0) numbers.set(span, numbers.size);
            columns.start.put(span.start - before);
            before = span.start;
            columns.length.put(span.length);
            columns.name.put(textOf(span.name));
            columns.group.put(textOf(span.group ?? ''));
            columns.size.put(span.size ?? 0);
            columns.id.put(span.id === undefined ? 0 : span.id + 1);
            columns.peer.put(span.peer === undefined ? 0 : span.peer + 1);
            end = Math.max(end, span.start + span.length);
        }
    }
    const kinds = Uint8Array.from(tracks.flatMap((track) => track.spans), (span) => KINDS.indexOf(span.kind) | (span.isOpen ? 128 : 0));
    for (const {from, to} of arrows) {
        columns.arrows.put(/** @type {number} */ (numbers.get(from)));
        columns.arrows.put(/** @type {number} */ (numbers.get(to)));
        columns.arrows.put(from.start + from.length);
        columns.arrows.put(Math.max(0, to.start - from.start - from.length));
    }
    counters.forEach((counter, k) => {
        let before = 0;
        for (const [at, value] of counter.samples) {
            columns.samples.put(k);
            columns.samples.put(at - before);
            columns.samples.put(value >= 0 ? 2 * value : -2 * value - 1);
            before = at;
        }
    });
    const parts = [Buffer.from('ORT1')];
    for (const name of names) {
        const bytes = name === 'kind' ? kinds : columns[name].done();
        const length = Buffer.alloc(4);
        length.writeUInt32LE(bytes.length);
        parts.push(length, Buffer.from(bytes));
    }
    const start_ns = options.start_ns ?? 0;
    return {
        base64: deflateSync(Buffer.concat(parts)).toString('base64'),
        meta: {
            script, tick_ps: 1000, start_ns, end_ns: start_ns + end, spans: kinds.length, left_out: 0, texts: [...texts.keys()], kinds: KINDS,
            tracks: tracks.map(({rank, name}) => ({rank, name})), counters: counters.map(({rank, name, unit}) => ({rank, name, unit})),
        },
    };
}

/** A pipeline of 4 stages, each of 2 ranks: forward and backward passes of micro-batches, reduced at the end.
 *  @param {number} speed  of compute @param {string} [evil]  goes into names */
function trainingStep(speed, evil = '') {
    const random = randomFrom(7);
    const [stages, width, batches, layers] = [4, 2, 8, 6];
    /** @type {Track[]} */
    const tracks = [];
    /** @type {Counter[]} */
    const counters = [];
    /** @type {{from: Span, to: Span}[]} */
    const arrows = [];
    /** @type {Span[][]} */
    const sends = [];
    /** @type {{rank: number, track: number, span: Span}[]} */
    const lasts = [];
    const slot = 400000 / speed;
    for (let rank = 0; rank < stages * width; rank++) {
        const stage = Math.floor(rank / width);
        /** @type {Track} */
        const compute = {rank, name: 'compute', spans: []};
        /** @type {Track} */
        const network = {rank, name: 'network', spans: []};
        /** @type {[number, number][]} */
        const memory = [[0, 12 * 2 ** 30]];
        let held = 12 * 2 ** 30;
        sends[rank] = [];
        for (let batch = 0; batch < 2 * batches; batch++) {
            const isBack = batch >= batches;
            const at = Math.round(slot * (isBack ? batches + stages + 2 * (batch - batches) + (stages - 1 - stage) * 2 : batch + stage));
            const each = Math.round(slot * (isBack ? 1.85 : 0.9) / layers);
            for (let layer = 0; layer < layers; layer++) {
                compute.spans.push({start: at + layer * each, length: Math.round(each * (0.72 + 0.2 * random())),
                    name: `${evil}layer${stage * layers + layer}.${isBack ? 'backward' : layer % 2 ? 'mlp' : 'attention'}`, kind: layer === 3 && !isBack ? 'memory' : 'compute', id: batch * layers + layer});
                if (layer % 2 === 1) {
                    const spans = compute.spans;
                    network.spans.push({start: at + layer * each + Math.round(each * 0.6), length: Math.round(each * 0.55), name: `${evil}all-reduce`, kind: 'collective', group: `tp ${stage}`, size: 33554432, id: 5000 + batch * layers + layer});
                    arrows.push({from: spans[spans.length - 1], to: network.spans[network.spans.length - 1]});
                }
            }
            const send = {start: at + layers * each, length: Math.round(slot * 0.08), name: `${evil}send activations`, kind: 'send', size: 16777216, peer: (rank + width) % (stages * width), id: 9000 + batch};
            network.spans.push(send);
            sends[rank].push(send);
            held += (isBack ? -1 : 1) * 2 ** 30 * 1.5;
            memory.push([at, held]);
        }
        const end = Math.round(slot * (3 * batches + 3 * stages));
        const reduce = {start: end, length: Math.round(slot * 2.6), name: `${evil}reduce-scatter gradients`, kind: 'collective', group: `dp ${stage}`, size: 2 ** 30, id: 9999};
        network.spans.push(reduce);
        for (let part = 0; part < 6; part++) {
            network.spans.push({start: end + Math.round(slot * 0.42 * part), length: Math.round(slot * 0.4), name: `phase ${part}`, kind: 'phase', size: 2 ** 30 / 6});
        }
        compute.spans.push({start: end + Math.round(slot * 2.7), length: Math.round(slot * 0.8), name: `${evil}optimizer`, kind: 'compute', id: 10000});
        arrows.push({from: reduce, to: compute.spans[compute.spans.length - 1]});
        tracks.push({rank, name: 'host', spans: [{start: 0, length: Math.round(slot * 0.6), name: 'launch', kind: 'host'}]}, compute, network);
        lasts.push({rank, track: tracks.length - 2, span: compute.spans[0]});
        counters.push({rank, name: 'memory', unit: 'bytes', samples: memory});
    }
    counters.push({rank: null, name: 'links in use', unit: 'links', samples: Array.from({length: 200}, (_, k) => [Math.round(k * slot * 0.2), Math.round(6 + 6 * Math.sin(k / 5) + 3 * random())])});
    return {tracks, counters, arrows};
}

/** @param {number} total */
function criticalPathOf(total) {
    const random = randomFrom(3);
    const steps = [];
    let at = 0;
    for (let k = 0; at < total * 0.98; k++) {
        const kind = k % 5 === 3 ? 'collective' : k % 11 === 7 ? 'send' : k % 9 === 5 ? 'idle' : 'compute';
        const length = Math.min(total - at, Math.round(total / 60 * (0.4 + random())));
        steps.push({rank: k % 8, name: kind === 'idle' ? 'waiting' : `${kind} ${k}`, kind, start_ns: at, end_ns: at + length,
            why: k === 0 ? 'the first to start' : kind === 'collective' ? 'rank 3, the last to join' : 'its inputs', track: null});
        at += length;
    }
    const kinds = [...new Set(steps.map((step) => step.kind))];
    const by_kind = kinds.map((kind) => {
        const ns = steps.filter((step) => step.kind === kind).reduce((sum, step) => sum + step.end_ns - step.start_ns, 0);
        return {kind, ns, share: ns / total};
    });
    return {total_ns: total, by_kind, steps, steps_left_out: 0};
}

/** Steps that are spans of this timeline: those of rank 0, in order. @param {Track[]} tracks */
function pathAlong(tracks) {
    const track = tracks.findIndex((one) => one.rank === 0 && one.name === 'compute');
    const network = tracks.findIndex((one) => one.rank === 0 && one.name === 'network');
    const last = tracks[network].spans.filter((span) => span.kind === 'collective').slice(-1).map((span) => ({span, track: network}));
    const all = [...tracks[track].spans.map((span) => ({span, track})), ...last].sort((a, b) => a.span.start - b.span.start);
    return all.map(({span, track: number}) => ({
        rank: 0, name: span.name, kind: span.kind, start_ns: span.start, end_ns: span.start + span.length, why: 'the step before it', track: number}));
}

/** @param {string} name @param {number} speed @param {number} number @param {{evil?: string, kind?: string}} [options] */
function fullRun(name, speed, number, options = {}) {
    const evil = options.evil ?? '';
    const {tracks, counters, arrows} = trainingStep(speed, evil);
    const {meta, base64} = packTimeline(`events-${number}`, tracks, counters, arrows);
    const total = meta.end_ns;
    const stages = [0, 1, 2, 3];
    const path = criticalPathOf(total);
    const run = {
        name: `${evil}${name}`, kind: options.kind ?? 'simulated',
        headline: {time_ns: total, ranks: 8, tokens_per_s: 32768 / (total / 1e9), mfu: 0.41 * speed / 1.2, exposed_comm_ns: total * 0.17, exposed_comm_share: 0.17, events: meta.spans,
            sentence: `${evil}Pipeline bubbles cost 21 % of the step: stage 0 waits for gradients of stage 3; the data-parallel reduce-scatter adds 8 % that nothing hides.`},
        breakdown: stages.map((stage) => ({name: `${evil}ranks ${2 * stage}-${2 * stage + 1} (stage ${stage})`, ranks: `${2 * stage}-${2 * stage + 1}`, count: 2, total_ns: total,
            compute_ns: total * (0.52 + 0.03 * stage), comm_exposed_ns: total * (0.19 - 0.01 * stage), comm_overlapped_ns: total * 0.09, memory_ns: total * 0.05, host_ns: total * 0.01, idle_ns: total * (0.23 - 0.02 * stage)})),
        timeline: meta,
        critical_path: {...path, steps: pathAlong(tracks)},
        collectives: [
            {type: 'all-reduce', group: `${evil}tensor parallel`, group_ranks: 2, count: 384, size_bytes: 33554432, time_ns: total * 0.0011, total_ns: total * 0.42, algorithm_Bps: 152e9, bus_Bps: 152e9, exposed_share: 0.21},
            {type: 'reduce-scatter', group: 'data parallel', group_ranks: 2, count: 4, size_bytes: 2 ** 30, time_ns: total * 0.061, total_ns: total * 0.061, algorithm_Bps: 41e9, bus_Bps: 20.5e9, exposed_share: 0.94},
            {type: 'all-gather', group: 'data parallel', group_ranks: 2, count: 4, size_bytes: 2 ** 29, time_ns: total * 0.03, total_ns: total * 0.03, algorithm_Bps: 44e9, bus_Bps: 22e9, exposed_share: null},
        ],
        topology: ringAndSwitch(evil),
        memory: {capacity_bytes: 80 * 2 ** 30, series: stages.map((stage) => memorySeries(`${evil}ranks ${2 * stage}-${2 * stage + 1}`, total, 62 - 9 * stage))},
        pipeline: {bubble_share: 0.214, stages: stages.map((stage) => ({name: `${evil}stage ${stage}`, ranks: `${2 * stage}-${2 * stage + 1}`, busy_ns: total * (0.72 + 0.03 * stage), bubble_ns: total * (0.28 - 0.03 * stage), bubble_share: 0.28 - 0.03 * stage}))},
        what_if: [
            {change: 'compute x 2', time_ns: total * 0.66, gain_share: 0.34, how: 'simulated again'}, {change: 'network bandwidth x 2', time_ns: total * 0.87, gain_share: 0.13, how: 'simulated again'},
            {change: 'network latency / 2', time_ns: total * 0.985, gain_share: 0.015, how: 'from the critical path'}, {change: 'memory bandwidth x 2', time_ns: total, gain_share: 0, how: 'from the critical path'}],
        stall: null,
        inputs: [{what: 'traces', path: `${evil}step.orr`, hash: 'a3f1c0d29b7e4415', bytes: 482113}, {what: 'network', path: 'net.yml', hash: '09bb61e5d2c7f8a0', bytes: 811}],
        options: [{name: '--network', value: 'aware'}, {name: '--compute', value: '312TF'}],
        notes: [`${evil}Ranks 1, 3, 5 and 7 are like the rank before them.`],
    };
    return {run, events: {id: `events-${number}`, base64}};
}

/** Flows on a packet network: 10 columns of 10 us and one of 5 us. @param {string} evil */
function flowsRun(evil = '') {
    const columns = Array.from({length: 11}, (_, k) => k);
    const link = (/** @type {string} */ name, /** @type {number[]} */ values) => ({
        name: `${evil}${name}`, bandwidth_Bps: 12.5e9, bytes: 1036000, busy_ns: 82880, utilisation: 0.78, pauses: 3, paused_ns: 21000, paused_share: 0.2, longest_queue_bytes: 518000, values});
    const flowClass = (/** @type {number} */ above, /** @type {number | null} */ upTo, /** @type {number} */ slow) => ({
        above_bytes: above, up_to_bytes: upTo, flows: 100, bytes: 3e6, fct_ns: Array.from({length: 41}, (_, k) => 2000 * (1 + above / 9000) * 1.1 ** k),
        fct_p99_ns: 80000, slowdown_p50: 1 + slow / 4, slowdown_p95: 1 + slow / 2, slowdown_p99: slow, slowdown_max: 2 * slow});
    return {
        name: `${evil}flows`, kind: 'flows', headline: {time_ns: 105000, events: 6005, sentence: `${evil}The busiest link was in use 78 % of the time.`},
        fabric: {
            figures: {hosts: 16, switches: 3, links: 20, flows: 301, flows_done: 301, data_packets: 9000, data_bytes: 9e6, retransmitted_bytes: 5000, pauses: 12, paused_ports: 3, dropped: 4, trimmed: 1, lost: 0},
            end_ns: 105000, column_ns: 10000, columns: 11,
            links: {rows: [link('switch3.3 -> 2', columns.map((k) => (k < 8 ? 1 : 0))), link('0.1 -> switch3', columns.map((k) => k / 10)), link('1.1 -> switch3', columns.map(() => 0.5))], left_out: 37, rest: columns.map(() => 0.05)},
            queues: {rows: [link('switch3.3 -> 2', columns.map((k) => 51800 * Math.min(k, 10 - k))), link('switch3.1 -> 0', columns.map((k) => (k === 4 ? 48 : 0)))], left_out: 0},
            pauses: {rows: [link('0.1 -> switch3', columns.map((k) => (k % 2 ? 0.4 : 0)))], left_out: 0}, paused_ports: columns.map((k) => (k % 2 ? 1.2 : 0)),
            flow_times: {all: {...flowClass(0, null, 9), flows: 301}, by_size: [flowClass(0, 4096, 9), flowClass(4096, 65536, 5), flowClass(16777216, null, 2)]},
            notes: [`${evil}longest chain of pauses, 2:`, '  host 0 port 1 (to switch 3) was paused because of'],
        },
        topology: {dimensions: [], nodes: [{id: 0, kind: 'rank', label: '0'}, {id: 1, kind: 'switch', label: `${evil}switch3`}], links: [{from: 0, to: 1, bandwidth_Bps: 12.5e9, bytes: 1, utilisation: 0.5, busy_ns: 100}], links_left_out: 0},
        inputs: [{what: 'flows', path: `${evil}flow.txt`, hash: 'a3f1c0d29b7e4415', bytes: 40}], options: [], notes: [],
    };
}

/** @param {string} name @param {number} total @param {number} peak */
function memorySeries(name, total, peak) {
    const t_ns = Array.from({length: 120}, (_, k) => total * k / 120);
    const bytes = t_ns.map((_, k) => Math.round(2 ** 30 * (18 + (peak - 18) * Math.sin(Math.PI * (k + 0.5) / 120) ** 0.7 - (k % 4) * 1.1)));
    return {name, peak_bytes: Math.max(...bytes), t_ns, bytes};
}

/** @param {string} evil */
function ringAndSwitch(evil) {
    const nodes = [...Array.from({length: 8}, (_, id) => ({id, kind: 'rank', label: `${evil}rank ${id}`})), {id: 8, kind: 'switch', label: `${evil}switch 0`}];
    const links = [];
    for (let rank = 0; rank < 8; rank++) {
        links.push({from: rank, to: (rank + 1) % 8, bandwidth_Bps: 300e9, bytes: 9e9 + rank * 1e9, utilisation: 0.35 + 0.08 * rank, busy_ns: 9e6 + rank * 1e6});
        links.push({from: rank, to: 8, bandwidth_Bps: 50e9, bytes: 2e9, utilisation: 0.12 + 0.03 * (rank % 3), busy_ns: 4e6});
        links.push({from: 8, to: rank, bandwidth_Bps: 50e9, bytes: 2e9, utilisation: 0.12, busy_ns: 4e6});
    }
    return {dimensions: [{name: `${evil}Ring 2`, size: 2, bandwidth_Bps: 300e9, latency_ns: 500, utilisation: 0.71}, {name: 'FullyConnected 8', size: 8, bandwidth_Bps: 100e9, latency_ns: 700, utilisation: 0.33}, {name: 'Switch 128', size: 128, bandwidth_Bps: 50e9, latency_ns: 1000, utilisation: 0.14}], nodes, links, links_left_out: 0};
}

/** @param {number} ranks */
function wideTopology(ranks) {
    const random = randomFrom(11);
    const links = [];
    for (let from = 0; from < ranks; from++) {
        for (const step of [1, 2, 4, 8, 16, 32, 64]) links.push({from, to: (from + step) % ranks, bandwidth_Bps: 50e9, bytes: 1e9, utilisation: random() * (1 - step / 90), busy_ns: 1e6});
    }
    return {dimensions: [{name: 'Torus 16', size: 16, bandwidth_Bps: 50e9, latency_ns: 500, utilisation: 0.6}], nodes: Array.from({length: ranks}, (_, id) => ({id, kind: 'rank', label: null})), links, links_left_out: 1234};
}

/** Many short spans on many ranks. @param {number} spans @param {number} ranks */
function manySpans(spans, ranks) {
    const random = randomFrom(5);
    const each = Math.floor(spans / ranks / 2);
    const names = Array.from({length: 400}, (_, k) => `op_${k}_kernel`);
    /** @type {Track[]} */
    const tracks = [];
    for (let rank = 0; rank < ranks; rank++) {
        for (const name of ['compute', 'network']) {
            let at = Math.round(1000 * random());
            const list = Array.from({length: each}, (_, k) => {
                const busy = Math.sin(k / each * 40) > -0.4;
                const start = at + Math.round(busy ? 60 * random() : 1500 * random());
                const length = Math.round(150 + 900 * random() ** 3);
                at = start + length;
                return {start, length, name: name === 'network' ? (k % 7 ? 'all-reduce' : 'send') : names[Math.floor(random() * 400)],
                    kind: name === 'network' ? (k % 7 ? 'collective' : 'send') : k % 13 === 0 ? 'memory' : 'compute', size: k % 64 * 1024, id: k};
            });
            tracks.push({rank, name, spans: list});
        }
    }
    return packTimeline('events-0', tracks, [], []);
}

/** @param {object} run @param {{id: string, base64: string}[]} events @param {string} title */
function single(run, events, title) {
    return {doc: {format: 1, program: 'orrery 0.1.0', title, made_from: 'orrery run step.orr --network net.yml --report report.html', runs: [run]}, events};
}

/** @type {Record<string, () => {doc: object, events: {id: string, base64: string}[]}>} */
export const SAMPLES = {
    small() {
        const {run, events} = fullRun('step.orr on net.yml', 1, 0);
        return single(run, [events], 'Training step of a 7B model on 8 ranks');
    },
    hostile() {
        const {run, events} = fullRun('step.orr on net.yml', 1, 0, {evil: HOSTILE});
        const sample = single({...run, stall: {title: `${HOSTILE}stall`, lines: [HOSTILE, `rank 0 waits for ${HOSTILE}`]}}, [events], `${HOSTILE}title`);
        return {...sample, doc: {...sample.doc, program: HOSTILE, made_from: HOSTILE, runs: [{...run, stall: sample.doc.runs[0].stall}, {...run, name: `${HOSTILE}second`}], comparison: {rows: [{name: HOSTILE, kind: HOSTILE, ns: [1, 2]}]}}};
    },
    flows() {
        return single(flowsRun(), [], 'flow.txt on topology.txt');
    },
    hostile_flows() {
        return single(flowsRun(HOSTILE), [], HOSTILE);
    },
    flows_without_time() {
        const run = flowsRun();
        const bare = (/** @type {any} */ list) => ({...list, rows: list.rows.map((/** @type {any} */ row) => ({...row, values: null})), rest: null});
        return single({...run, fabric: {...run.fabric, column_ns: null, columns: 0, paused_ports: null, links: bare(run.fabric.links), queues: bare(run.fabric.queues), pauses: bare(run.fabric.pauses)}}, [], 'Time was passed over');
    },
    nothing() {
        const keys = ['headline', 'breakdown', 'timeline', 'critical_path', 'collectives', 'topology', 'memory', 'pipeline', 'what_if', 'stall', 'inputs', 'options', 'notes'];
        return single({name: 'a run of which nothing is known', kind: 'simulated', ...Object.fromEntries(keys.map((key) => [key, null]))}, [], 'Nothing is known');
    },
    bare() {
        return {doc: {format: 1, runs: [{name: 'bare'}]}, events: []};
    },
    stall() {
        const {run, events} = fullRun('ring.orr on net.yml', 1, 0);
        return single({...run, stall: {title: 'The run came to a halt at 12.4 ms: ranks 0, 1 and 2 wait for each other',
            lines: ['rank 0, node 17 "recv grad": waits for a message of 4 MiB with tag 3 from rank 2', 'rank 2, node 11 "recv grad": waits for a message of 4 MiB with tag 3 from rank 1', 'rank 1, node 14 "all-reduce": waits for rank 0 to join group "dp 0"']}}, [events], 'A run that stalled');
    },
    compare() {
        const runs = [fullRun('measured on the cluster', 1, 0, {kind: 'measured'}), fullRun('simulated, congestion aware', 1.08, 1), fullRun('simulated, twice the network', 1.31, 2)];
        const base = runs.map(({run}) => run.headline.time_ns);
        const rows = ['all-reduce', 'reduce-scatter', 'layer.attention', 'layer.mlp', 'send activations', 'optimizer'].map((name, k) => ({
            name, kind: k < 2 ? 'collective' : k === 4 ? 'send' : 'compute', ns: base.map((ns, run) => ns * (0.3 - 0.04 * k) * (1 + (k % 2 ? 0.03 : -0.12) * run))}));
        return {doc: {format: 1, program: 'orrery 0.1.0', title: 'Measured against simulated', made_from: 'orrery report a.json b.orr c.orr', runs: runs.map(({run}) => run), comparison: {rows}}, events: runs.map(({events}) => events)};
    },
    million() {
        const {meta, base64} = manySpans(1000000, 64);
        const {run} = fullRun('a million spans', 1, 0);
        const total = meta.end_ns;
        return single({...run, timeline: meta, topology: wideTopology(256), critical_path: criticalPathOf(total), headline: {...run.headline, time_ns: total, ranks: 64, events: meta.spans}}, [{id: 'events-0', base64}], 'A million spans');
    },
};
