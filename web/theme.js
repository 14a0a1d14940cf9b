// SPDX-License-Identifier: Apache-2.0
// theme.js - light, dark, or the system's setting.

import {el} from './dom.js';

const THEMES = ['system', 'light', 'dark'];

const CONDITIONS = {system: '(prefers-color-scheme: dark)', light: 'not all', dark: 'all'};

/** The rule of report.css with the dark colours: the theme changes only its condition. */
function findDarkRule() {
    for (const sheet of document.styleSheets) {
        for (const rule of sheet.cssRules) {
            if (rule instanceof CSSMediaRule && rule.media.mediaText === CONDITIONS.system) return rule;
        }
    }
    return undefined;
}

/** @param {string} theme @param {CSSMediaRule | undefined} darkRule */
function applyTheme(theme, darkRule) {
    if (theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    if (darkRule) darkRule.media.mediaText = CONDITIONS[/** @type {keyof typeof CONDITIONS} */ (theme)];
}

/** Browsers may deny storage to local files; then the choice lasts as long as the page. @param {string} [theme] */
function remember(theme) {
    try {
        if (theme) localStorage.setItem('orrery-theme', theme);
        return localStorage.getItem('orrery-theme') ?? 'system';
    } catch {
        return theme ?? 'system';
    }
}

/** A button that cycles through the themes; the canvases are redrawn. @param {() => void} onChange */
export function themeButton(onChange) {
    const darkRule = findDarkRule();
    let theme = THEMES.includes(remember()) ? remember() : 'system';
    const button = el('button', {type: 'button', id: 'theme', class: 'quiet no-print', onclick: () => {
        theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
        remember(theme);
        show();
        onChange();
    }});
    const show = () => {
        applyTheme(theme, darkRule);
        const sign = theme === 'light' ? '\u2600' : theme === 'dark' ? '\u263e' : '\u25d0';
        button.replaceChildren(el('span', {'aria-hidden': 'true'}, sign), ` ${theme}`);
        button.title = `Colours: ${theme}; press for the next (T)`;
        button.setAttribute('aria-label', button.title);
    };
    show();
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', onChange);
    /* Paper is white: canvases are drawn in the light colours while the page is printed. */
    window.addEventListener('beforeprint', () => {
        applyTheme('light', darkRule);
        onChange();
    });
    window.addEventListener('afterprint', () => {
        applyTheme(theme, darkRule);
        onChange();
    });
    return button;
}
