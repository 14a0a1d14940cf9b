// SPDX-License-Identifier: Apache-2.0
// panel.js - shared by all panels: a heading that can be linked to, and a line that says why data are missing.

import {el} from './dom.js';
/** @import {Child} from './dom.js' */

/** @param {string} id @param {string} title @param {string} subtitle  one line of what it says @param {...Child} children */
export function panel(id, title, subtitle, ...children) {
    return el('section', {class: 'panel', id, 'aria-labelledby': `${id}-title`, 'data-title': title},
        el('div', {class: 'panel-head'},
            el('h2', {id: `${id}-title`}, el('a', {href: `#${id}`, class: 'anchor'}, title)),
            subtitle && el('p', {class: 'subtitle'}, subtitle)),
        ...children);
}

/** A panel without data says why, in one line. @param {string} id @param {string} title @param {string} why */
export function missingPanel(id, title, why) {
    return el('section', {class: 'panel missing', id, 'aria-labelledby': `${id}-title`, 'data-title': title, 'data-missing': true},
        el('h2', {id: `${id}-title`}, title), el('p', {class: 'hint'}, why));
}

/** Lists that may be missing. @template T @param {T[] | null | undefined} list @returns {T[]} */
export function listOf(list) {
    return Array.isArray(list) ? list : [];
}

/** "and 12 more", with a button that shows them. @param {number} count @param {string} noun @param {() => void} show */
export function moreButton(count, noun, show) {
    return el('button', {type: 'button', class: 'more no-print', onclick: show}, `Show ${count} more ${noun}`);
}
