// SPDX-License-Identifier: Apache-2.0
// help.js - a dialog with the keyboard shortcuts.

import {el} from './dom.js';

/** @type {[string, [string[], string][]][]} */
const HELP = [
    ['Everywhere', [
        [['?'], 'this help'], [['/'], 'find spans by name; * matches anything'], [['T'], 'colours: system, light, dark'],
        [['J', 'K'], 'next and previous panel'], [['Esc'], 'close, clear'],
    ]],
    ['Timeline', [
        [['W', '+'], 'zoom in'], [['S', '\u2212'], 'zoom out'], [['A', '\u2190'], 'move left (with Shift, far)'], [['D', '\u2192'], 'move right'],
        [['\u2191', '\u2193'], 'scroll the ranks'], [['0'], 'the whole run'], [['F'], 'zoom to the selection or the measured range'],
        [['[', ']'], 'span before, after'], [['E'], 'open or close the rank of the selected span'], [['C'], 'open or close all ranks'], [['Enter'], 'in the search: next match; with Shift, previous match'],
    ]],
    ['Mouse', [
        [['wheel'], 'zoom at the mouse; over the names: scroll'], [['drag'], 'move'], [['Shift', 'drag'], 'measure; also without Shift, on the ruler'],
        [['click'], 'details of a span; on a rank: open or close it'], [['2 clicks'], 'zoom to the span'],
    ]],
];

/** @returns {HTMLDialogElement} */
export function helpDialog() {
    const dialog = el('dialog', {id: 'help', 'aria-labelledby': 'help-title'},
        el('h2', {id: 'help-title'}, 'Keys and mouse'),
        el('div', {class: 'help-parts'}, ...HELP.map(([title, keys]) => el('div', {}, el('h3', {}, title), el('dl', {}, ...keys.flatMap(([names, meaning]) => [
            el('dt', {}, ...names.flatMap((name, k) => [k > 0 ? ' ' : null, el('kbd', {}, name)])), el('dd', {}, meaning)]))))),
        el('form', {method: 'dialog'}, el('button', {type: 'submit', class: 'primary', autofocus: true}, 'Close')));
    dialog.addEventListener('click', (event) => {
        if (event.target === dialog) dialog.close();
    });
    return dialog;
}
