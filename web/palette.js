// SPDX-License-Identifier: Apache-2.0
// palette.js - one colour for each kind of work, the same in every panel and on the canvas.
//
// The colours are variables in report.css, one set per colour scheme.  They are those of Okabe and Ito, which
// colour-blind people can distinguish, lightened or darkened for the background.

/** Kinds in the order they are stacked and listed. */
export const KINDS = ['compute', 'collective', 'phase', 'send', 'receive', 'memory', 'host', 'other', 'waiting', 'bubble', 'idle'];

const COLLECTIVES = /^(all.?reduce|all.?gather|reduce.?scatter|all.?to.?all|broadcast|reduce|gather|scatter|barrier)/i;

/** A known kind: the type of a collective counts as its kind, messages are sends. @param {string | null | undefined} kind */
export function kindClass(kind) {
    if (!kind) return 'other';
    if (KINDS.includes(kind)) return kind;
    if (COLLECTIVES.test(kind)) return 'collective';
    return kind === 'message' ? 'send' : 'other';
}

/** For CSS and drawings. @param {string | null | undefined} kind */
export function kindColour(kind) {
    return `var(--kind-${kindClass(kind)})`;
}

/** @typedef {[number, number, number]} Rgb */

/** A colour of report.css, for the canvas. @param {string} variable @returns {Rgb} */
export function cssColour(variable) {
    const text = getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
    const hex = /^#([0-9a-f]{6})$/i.exec(text);
    if (!hex) return [128, 128, 128];
    const value = parseInt(hex[1], 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
}

/** @param {number} a @param {number} b @param {number} share */
function mixOne(a, b, share) {
    return Math.round(a * share + b * (1 - share));
}

/** @param {Rgb} a @param {Rgb} b @param {number} share  of a @returns {Rgb} */
export function mixColours(a, b, share) {
    return [mixOne(a[0], b[0], share), mixOne(a[1], b[1], share), mixOne(a[2], b[2], share)];
}

/** As the pixels of an ImageData read as 32-bit numbers. @param {Rgb} colour */
export function packColour([red, green, blue]) {
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** @param {Rgb} colour */
export function cssText([red, green, blue]) {
    return `rgb(${red} ${green} ${blue})`;
}

/** Black or white, whichever is read more easily on this (relative luminance of sRGB). @param {Rgb} colour */
export function inkOn(colour) {
    const [red, green, blue] = colour.map((value) => (value / 255) ** 2.2);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.24 ? '#10131a' : '#ffffff';
}

/** The colour of a share in a heat map: one hue from weak to strong, legible in both schemes.
 *  @param {number} share */
export function heatColour(share) {
    const clamped = Math.max(0, Math.min(1, share));
    return `color-mix(in oklab, var(--heat-high) ${(clamped * 100).toFixed(1)}%, var(--heat-low))`;
}
