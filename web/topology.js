// SPDX-License-Identifier: Apache-2.0
// topology.js - the network: its dimensions as small drawings, its links by utilization.
//
// Few links are drawn as lines between nodes on a circle; many as a matrix, sender by receiver, in which each cell
// shows its busiest link.

import {el, svg} from './dom.js';
import {cssColour, cssText, heatColour, mixColours} from './palette.js';
import {heatBar} from './bars.js';
import {listOf, missingPanel, panel} from './panel.js';
import {sortableTable} from './table.js';
import {countOf, countText, isKnown, rateText, shareText, sizeText, timeText} from './units.js';
/** @import {Dimension, NetLink, NetNode, Run, Topology} from './types.js' */

const NODES_DRAWN = 96;
const LINKS_DRAWN = 400;
const DOTS_MOST = 16;
const MATRIX_SIDE = 420;

/** Positions on a circle, clockwise from the top. @param {number} count @param {number} k @param {number} radius @param {number} centre */
function onCircle(count, k, radius, centre) {
    const angle = k / count * 2 * Math.PI - Math.PI / 2;
    return {x: centre + radius * Math.cos(angle), y: centre + radius * Math.sin(angle)};
}

/** The shape of a dimension, from its name: "Ring 8", "Switch 32", "FullyConnected 4". @param {string} name */
function shapeOf(name) {
    const word = name.toLowerCase();
    if (word.includes('switch')) return 'switch';
    if (word.includes('full') || word.includes('crossbar') || word.includes('mesh')) return 'full';
    return word.includes('ring') || word.includes('torus') ? 'ring' : 'line';
}

/** @param {Dimension} dimension */
function dimensionDrawing(dimension) {
    const size = Math.max(2, isKnown(dimension.size) ? dimension.size : 4);
    const count = Math.min(size, DOTS_MOST);
    const shape = shapeOf(dimension.name);
    const colour = isKnown(dimension.utilisation) ? heatColour(dimension.utilisation) : 'var(--text-faint)';
    const dots = Array.from({length: count}, (_, k) => onCircle(count, k, 42, 56));
    /** @param {{x: number, y: number}} a @param {{x: number, y: number}} b */
    const line = (a, b) => svg('line', {x1: a.x.toFixed(1), y1: a.y.toFixed(1), x2: b.x.toFixed(1), y2: b.y.toFixed(1), stroke: colour, 'stroke-width': shape === 'full' ? 1.2 : 3});
    const middle = {x: 56, y: 56};
    const lines = shape === 'switch' ? dots.map((dot) => line(dot, middle))
        : shape === 'full' ? dots.flatMap((a, k) => dots.slice(k + 1).map((b) => line(a, b)))
            : dots.slice(shape === 'line' ? 1 : 0).map((dot, k) => line(dot, dots[shape === 'line' ? k : (k + 1) % count]));
    return svg('svg', {viewBox: '0 0 112 112', class: 'dimension-drawing', 'aria-hidden': 'true'}, ...lines,
        shape === 'switch' ? svg('rect', {x: 45, y: 45, width: 22, height: 22, rx: 5, class: 'net-switch'}) : null,
        ...dots.map((dot) => svg('circle', {cx: dot.x.toFixed(1), cy: dot.y.toFixed(1), r: 5, class: 'net-rank'})),
        size > count ? svg('text', {x: 56, y: shape === 'switch' ? 84 : 60, 'text-anchor': 'middle', class: 'axis'}, `${countText(size)}`) : null);
}

/** @param {Dimension} dimension @param {number} number */
function dimensionCard(dimension, number) {
    return el('div', {class: 'dimension'}, dimensionDrawing(dimension), el('div', {},
        el('b', {}, dimension.name), el('div', {class: 'faint'}, `dimension ${number}${isKnown(dimension.size) ? `, ${countOf(dimension.size, 'place')}` : ''}`),
        el('dl', {class: 'small-facts'},
            el('dt', {}, 'bandwidth'), el('dd', {}, rateText(dimension.bandwidth_Bps)),
            el('dt', {}, 'latency'), el('dd', {}, timeText(dimension.latency_ns)),
            el('dt', {}, 'in use'), el('dd', {}, shareText(dimension.utilisation)))));
}

/** Few links: lines bent towards the centre, so that both directions are visible. @param {Topology} topology */
function linkDrawing(topology) {
    const nodes = listOf(topology.nodes);
    const ranks = nodes.filter((node) => node.kind !== 'switch').sort((a, b) => nodeNumber(a) - nodeNumber(b));
    const switches = nodes.filter((node) => node.kind === 'switch');
    const places = new Map(ranks.map((node, k) => /** @type {[number, {x: number, y: number}]} */ ([node.id, onCircle(ranks.length, k, 190, 210)])));
    placeSwitches(switches.map((node) => node.id), listOf(topology.links), places);
    const links = listOf(topology.links).map((link) => {
        const from = places.get(link.from);
        const to = places.get(link.to);
        if (!from || !to) return null;
        const bend = {x: (from.x + to.x) / 2 + (to.y - from.y) * 0.12, y: (from.y + to.y) / 2 - (to.x - from.x) * 0.12};
        return svg('path', {
            d: `M${from.x.toFixed(1)} ${from.y.toFixed(1)}Q${bend.x.toFixed(1)} ${bend.y.toFixed(1)} ${to.x.toFixed(1)} ${to.y.toFixed(1)}`,
            fill: 'none', stroke: heatColour(link.utilisation ?? 0), 'stroke-width': 1 + 3.5 * (link.utilisation ?? 0),
        }, svg('title', {}, linkWords(topology, link)));
    });
    return svg('svg', {viewBox: '0 0 420 420', class: 'net', role: 'img', 'aria-label': 'Links between ranks and switches, coloured by use'},
        ...links, ...nodes.map((node) => netNode(node, places.get(node.id) ?? {x: 0, y: 0}, Math.min(11, 420 / Math.max(1, ranks.length)))));
}

/** @param {NetNode} node @param {{x: number, y: number}} at @param {number} radius */
function netNode(node, at, radius) {
    const isSwitch = node.kind === 'switch';
    const size = isSwitch ? Math.min(9, radius) : radius;
    const shape = isSwitch ? svg('rect', {x: at.x - size, y: at.y - size, width: 2 * size, height: 2 * size, rx: size / 2.2, class: 'net-switch'})
        : svg('circle', {cx: at.x, cy: at.y, r: size, class: 'net-rank'});
    const name = isSwitch || size < 6 ? null : svg('text', {x: at.x, y: at.y + size * 0.34, 'text-anchor': 'middle', class: 'net-text', 'font-size': size * 0.95}, String(nodeNumber(node)));
    return svg('g', {}, shape, name, svg('title', {}, nodeName(node)));
}

/** A switch is inside the circle, near the ranks it connects; switches that connect ranks all around share the centre.
 *  @param {number[]} switches @param {NetLink[]} links @param {Map<number, {x: number, y: number}>} places */
function placeSwitches(switches, links, places) {
    const means = switches.map((id) => {
        const ends = links.flatMap((link) => (link.from === id ? [places.get(link.to)] : link.to === id ? [places.get(link.from)] : [])).filter((end) => end !== undefined);
        const mean = (/** @type {'x' | 'y'} */ axis) => ends.reduce((sum, end) => sum + end[axis] - 210, 0) / Math.max(1, ends.length);
        return {id, x: mean('x'), y: mean('y')};
    });
    const central = means.filter(({x, y}) => Math.hypot(x, y) < 60);
    for (const {id, x, y} of means) places.set(id, {x: 210 + x * 0.72, y: 210 + y * 0.72});
    central.forEach(({id}, k) => places.set(id, central.length === 1 ? {x: 210, y: 210} : onCircle(central.length, k, Math.min(70, 14 + 5 * central.length), 210)));
}

/** The number at the end of its label: for a rank, the rank. @param {NetNode} node */
function nodeNumber(node) {
    const digits = /\d+$/.exec(node.label ?? '');
    return digits ? Number(digits[0]) : node.id;
}

/** @param {NetNode} node */
function nodeName(node) {
    return node.label && !/^\d+$/.test(node.label) ? node.label : `${node.kind} ${node.label ?? node.id}`;
}

/** @type {WeakMap<Topology, Map<number, string>>} */
const namesOfNodes = new WeakMap();

/** @param {Topology} topology @param {number} id */
function nameOf(topology, id) {
    let names = namesOfNodes.get(topology);
    if (!names) namesOfNodes.set(topology, names = new Map(listOf(topology.nodes).map((node) => [node.id, nodeName(node)])));
    return names.get(id) ?? String(id);
}

/** @param {Topology} topology @param {NetLink} link */
function linkWords(topology, link) {
    return `${nameOf(topology, link.from)} \u2192 ${nameOf(topology, link.to)}: in use ${shareText(link.utilisation)}, ${sizeText(link.bytes)} at ${rateText(link.bandwidth_Bps)}`;
}

/** Many links: a matrix of cells. @param {Topology} topology @param {HTMLElement} words */
function linkMatrix(topology, words) {
    const links = listOf(topology.links);
    /* Ranks first, then switches, each by number. */
    const keys = new Map(listOf(topology.nodes).map((node) => [node.id, nodeNumber(node) + (node.kind === 'switch' ? 1e9 : 0)]));
    const ids = [...new Set(links.flatMap((link) => [link.from, link.to]))].sort((a, b) => (keys.get(a) ?? a) - (keys.get(b) ?? b) || a - b);
    const place = new Map(ids.map((id, k) => [id, k]));
    const side = Math.min(ids.length, MATRIX_SIDE);
    /** @type {(NetLink | undefined)[]} */
    const cells = new Array(side * side);
    for (const link of links) {
        const column = Math.floor(/** @type {number} */ (place.get(link.from)) / ids.length * side);
        const row = Math.floor(/** @type {number} */ (place.get(link.to)) / ids.length * side);
        const before = cells[row * side + column];
        if (!before || (before.utilisation ?? 0) < (link.utilisation ?? 0)) cells[row * side + column] = link;
    }
    const canvas = el('canvas', {class: 'matrix', role: 'img', width: MATRIX_SIDE, height: MATRIX_SIDE, 'aria-label': `Use of ${countOf(links.length, 'link')}: from left to right the senders, from top to bottom the receivers`});
    drawMatrix(canvas, cells, side);
    canvas.addEventListener('recolour', () => drawMatrix(canvas, cells, side));
    canvas.addEventListener('pointermove', (event) => {
        const box = canvas.getBoundingClientRect();
        const column = Math.floor((event.clientX - box.left) / box.width * side);
        const link = cells[Math.floor((event.clientY - box.top) / box.height * side) * side + column];
        words.textContent = link ? linkWords(topology, link) : '\u00a0';
    });
    return canvas;
}

/** @param {HTMLCanvasElement} canvas @param {(NetLink | undefined)[]} cells @param {number} side */
function drawMatrix(canvas, cells, side) {
    const context = canvas.getContext('2d');
    if (!context) return;
    const [low, high] = [cssColour('--heat-low'), cssColour('--heat-high')];
    const step = MATRIX_SIDE / side;
    context.fillStyle = cssText(cssColour('--paper'));
    context.fillRect(0, 0, MATRIX_SIDE, MATRIX_SIDE);
    cells.forEach((link, k) => {
        if (!link) return;
        context.fillStyle = cssText(mixColours(high, low, Math.min(1, link.utilisation ?? 0)));
        context.fillRect(k % side * step, Math.floor(k / side) * step, Math.max(1, step - (step > 5 ? 1 : 0)), Math.max(1, step - (step > 5 ? 1 : 0)));
    });
}

/** @param {Run} run */
export function topologyPanel(run) {
    const topology = run.topology ?? {};
    const dimensions = listOf(topology.dimensions);
    const links = listOf(topology.links);
    if (dimensions.length === 0 && links.length === 0) return missingPanel('topology', 'Network', 'A timeline does not contain the network. It is known when traces are simulated for the report: orrery run --report, or orrery report TRACES.');
    const left = isKnown(topology.links_left_out) && topology.links_left_out > 0 ? ` The ${countOf(topology.links_left_out, 'least used link')} are not shown.` : '';
    const readout = el('p', {class: 'hint readout'}, '\u00a0');
    const isFew = listOf(topology.nodes).length <= NODES_DRAWN && listOf(topology.nodes).length > 0 && links.length <= LINKS_DRAWN;
    return panel('topology', 'Network', `Colour shows how much of the time, or of the bandwidth, was in use.${left}`,
        el('div', {class: 'heat-legend', 'aria-hidden': 'true'}, '0\u00a0%', el('span', {class: 'heat-scale'}), '100\u00a0%'),
        dimensions.length > 0 ? el('div', {class: 'dimensions'}, ...dimensions.map(dimensionCard)) : null,
        links.length > 0 ? el('div', {class: 'net-place'}, el('div', {class: 'net-picture'}, isFew ? linkDrawing(topology) : linkMatrix(topology, readout),
            isFew ? null : el('p', {class: 'faint'}, 'across: from; down: to'), isFew ? null : readout), linkTable(topology, links)) : null);
}

/** @param {Topology} topology @param {NetLink[]} links */
function linkTable(topology, links) {
    const sorted = [...links].sort((a, b) => (b.utilisation ?? -1) - (a.utilisation ?? -1));
    return sortableTable('Links, the busiest first', [
        {title: 'From', key: (row) => row.from, show: (row) => nameOf(topology, row.from)},
        {title: 'To', key: (row) => row.to, show: (row) => nameOf(topology, row.to)},
        {title: 'In use', isNumber: true, key: (row) => row.utilisation, show: (row) => el('span', {class: 'with-bar'}, heatBar(row.utilisation ?? 0), shareText(row.utilisation))},
        {title: 'Busy', isNumber: true, key: (row) => row.busy_ns, show: (row) => timeText(row.busy_ns)},
        {title: 'Moved', isNumber: true, key: (row) => row.bytes, show: (row) => sizeText(row.bytes), exact: (row) => `${countText(row.bytes)} B`},
        {title: 'Bandwidth', isNumber: true, key: (row) => row.bandwidth_Bps, show: (row) => rateText(row.bandwidth_Bps)},
    ], sorted, {first: 10});
}
