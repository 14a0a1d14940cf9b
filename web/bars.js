// SPDX-License-Identifier: Apache-2.0
// bars.js - stacked bars: a total split into coloured parts, each with its name and value on hover.

import {el} from './dom.js';
import {heatColour, kindClass} from './palette.js';
import {shareText, timeText} from './units.js';

/** @typedef {{kind: string, name: string, ns: number, isHatched?: boolean}} Part */

/** Parts of one kind, such as types of collectives, get lighter from first to last.
 *  @param {{kind: string, isHatched?: boolean}[]} parts @returns {number[]} */
function tintsOf(parts) {
    return parts.map((part, k) => (part.isHatched ? 0 : Math.min(3, parts.slice(0, k).filter((one) => kindClass(one.kind) === kindClass(part.kind)).length)));
}

/** @param {Part[]} parts @param {number} whole  the length of a full bar, in ns */
export function stackedBar(parts, whole) {
    const known = parts.filter((part) => part.ns > 0);
    const tints = tintsOf(known);
    const words = known.map((part) => `${part.name} ${timeText(part.ns)}`).join(', ');
    return el('div', {class: 'bar', role: 'img', 'aria-label': words || 'nothing'}, ...known.map((part, k) => {
        const share = part.ns / whole;
        return el('span', {
            class: `piece kind-${kindClass(part.kind)} tint-${tints[k]}${part.isHatched ? ' hatched' : ''}`, style: `width:${(share * 100).toFixed(3)}%`,
            title: `${part.name}: ${timeText(part.ns)}, ${shareText(share)}`,
        }, share > 0.075 ? el('span', {class: 'piece-text'}, shareText(share)) : null);
    }));
}

/** @param {{kind: string, name: string, isHatched?: boolean}[]} parts */
export function barLegend(parts) {
    const tints = tintsOf(parts);
    return el('div', {class: 'legend'}, ...parts.map((part, k) => el('span', {class: 'chip'},
        el('i', {class: `swatch kind-${kindClass(part.kind)} tint-${tints[k]}${part.isHatched ? ' hatched' : ''}`}), part.name)));
}

/** A thin bar for tables: a share of the largest. @param {number} share @param {string} [kind] */
export function smallBar(share, kind) {
    const width = Math.max(0, Math.min(1, share)) * 100;
    return el('span', {class: 'small-bar', 'aria-hidden': 'true'},
        el('span', {class: kind ? `kind-${kindClass(kind)}` : 'accent', style: `width:${width.toFixed(2)}%`}));
}

/** The same, in the colour of a heat map. @param {number} share */
export function heatBar(share) {
    const width = Math.max(0, Math.min(1, share)) * 100;
    return el('span', {class: 'small-bar', 'aria-hidden': 'true'},
        el('span', {class: 'heat', style: `width:${width.toFixed(2)}%;--heat:${heatColour(share)}`}));
}

/** To the left or right of a middle line: faster, slower. @param {number} share  -1 to 1 */
export function swingBar(share) {
    const size = Math.max(-1, Math.min(1, share)) * 50;
    return el('span', {class: 'swing', 'aria-hidden': 'true'}, el('span', {
        class: size > 0 ? 'worse' : 'better', style: `left:${(size < 0 ? 50 + size : 50).toFixed(2)}%;width:${Math.abs(size).toFixed(2)}%`,
    }));
}
