// SPDX-License-Identifier: Apache-2.0
// timeline_panel.js - the timeline panel: search, minimap, canvas, details.
//
// It draws as soon as the events are decoded. Levels of detail and the minimap are built afterwards, a few milliseconds
// at a time; each row is redrawn more exactly once its levels exist.

import {breathe, el} from './dom.js';
import {writeAddress} from './address.js';
import {decodeTimeline} from './columns.js';
import {buildScene} from './rows.js';
import {buildLevels, busyOverall, needsLevels} from './levels.js';
import {TimelineView} from './view.js';
import {TimelinePainter} from './draw_timeline.js';
import {listenToHands} from './timeline_input.js';
import {Minimap} from './minimap.js';
import {detailOfSelection, hoverLines, kindChip} from './timeline_detail.js';
import {matchNumber, nextMatch, searchFor} from './search.js';
import {countOf, countText, isKnown} from './units.js';
import {operatorsOf, operatorsPanel, operatorTable} from './operators.js';
import {missingPanel, panel} from './panel.js';
/** @import {Place} from './timeline_input.js' */
/** @import {Address} from './address.js' */
/** @import {PathStep, Run, TimelineMeta} from './types.js' */

const SLICE_MS = 10;
const MAP_BINS = 600;
const NAMES_MANY = 80; /* with more names than this, names are merged initially */

/** Runs a generator in slices, so that the page stays responsive. @template T
 *  @param {Generator<void, T>} work @returns {Promise<T>} */
async function inSlices(work) {
    for (;;) {
        const until = performance.now() + SLICE_MS;
        do {
            const step = work.next();
            if (step.done) return step.value;
        } while (performance.now() < until);
        await breathe();
    }
}

/** @param {TimelineView} view @returns {Generator<void, void>} */
function* levelsOfRows(view) {
    for (const row of view.scene.rows) {
        if (row.isReady) continue;
        if (needsLevels(row.spans.length)) row.levels = buildLevels(view.timeline, row.spans);
        row.isReady = true;
        yield;
    }
}

/** The panel of a run's timeline; the view is made when the events are decoded. */
export class TimelinePanel {
    /** @param {TimelineMeta} meta @param {PathStep[]} steps @param {number} run  which one */
    constructor(meta, steps, run) {
        this.meta = meta;
        this.steps = steps;
        this.run = run;
        /** @type {Address | null} requested before the events were decoded */
        this.wanted = null;
        /** @type {TimelineView | null} */
        this.view = null;
        /** @type {TimelinePainter | null} */
        this.painter = null;
        /** @type {Minimap | null} */
        this.map = null;
        this.isAsked = false;
        this.canvas = el('canvas', {
            class: 'timeline-canvas', tabindex: 0, role: 'application', 'aria-describedby': 'timeline-hint',
            'aria-label': `Timeline of ${countOf(meta.spans, 'span')} on ${countOf(meta.tracks.length, 'track')}. ` +
                'W and S zoom, A and D move, brackets go from span to span.',
        });
        this.frame = el('div', {class: 'timeline-frame'}, this.canvas);
        this.mapPlace = el('div', {class: 'minimap-place'});
        this.detail = el('div', {class: 'timeline-detail', 'aria-live': 'polite'});
        this.tip = el('div', {class: 'tip', hidden: true});
        this.status = el('p', {class: 'hint', id: 'timeline-hint', role: 'status'}, 'Reading the events \u2026');
        this.found = el('span', {class: 'found', role: 'status'});
        this.input = el('input', {
            type: 'search', id: 'timeline-search', placeholder: 'Find spans by name   ( / )', 'aria-label': 'Find spans by name',
            spellcheck: 'false', autocomplete: 'off', oninput: () => this.find(this.input.value), onkeydown: (/** @type {KeyboardEvent} */ event) => this.searchKey(event),
        });
        this.operators = operatorsPanel(new Set(meta.tracks.map((track) => track.rank)).size);
        this.element = panel('timeline', 'Timeline', this.subtitle(), this.toolbar(), this.mapPlace, this.frame, this.status, this.detail, this.tip);
    }

    subtitle() {
        const {meta} = this;
        const left = isKnown(meta.left_out) && meta.left_out > 0 ? `; ${countOf(meta.left_out, 'short span')} not shown` : '';
        const alike = isKnown(meta.ranks_left_out) && meta.ranks_left_out > 0 ? `; ${countOf(meta.ranks_left_out, 'identical rank')} not shown` : '';
        return `${countOf(meta.spans, 'span')} on ${countOf(meta.tracks.length, 'track')}${left}${alike}`;
    }

    toolbar() {
        /** @param {string} text @param {string} title @param {() => void} action */
        const button = (text, title, action) => el('button', {type: 'button', title, 'aria-label': title, onclick: action}, text);
        const used = new Set(this.meta.kinds);
        this.legend = el('div', {class: 'legend'}, ...[...used].map((kind) => kindChip(kind)));
        const path = el('label', {class: 'check', title: 'Underline the spans of the critical path, and join them'},
            el('input', {type: 'checkbox', id: 'show-path', onchange: (/** @type {Event} */ event) =>
                this.showPath(/** @type {HTMLInputElement} */ (event.target).checked)}), 'critical path');
        return el('div', {class: 'toolbar no-print'},
            el('div', {class: 'search'}, this.input,
                button('\u2191', 'Match before (Shift+Enter)', () => this.step(-1)),
                button('\u2193', 'Next match (Enter)', () => this.step(1)), this.found),
            el('div', {class: 'buttons'},
                this.steps.some((step) => typeof step.track === 'number') && path,
                button('+', 'Zoom in (W or +)', () => this.view?.zoom(this.view.width / 2, 0.6)),
                button('\u2212', 'Zoom out (S or \u2212)', () => this.view?.zoom(this.view.width / 2, 1 / 0.6)),
                button('All', 'Show the whole run (0)', () => this.view?.fit()),
                button('Fold', 'Open or close all ranks (C)', () => this.view?.toggleAll())),
            this.legend);
    }

    /** Decodes and draws; once. */
    async start() {
        const source = document.getElementById(this.meta.script);
        try {
            if (!source) throw new Error(`the file has no element "${this.meta.script}"`);
            const timeline = await decodeTimeline(this.meta, source.textContent ?? '');
            await breathe();
            await this.show(new TimelineView(timeline, await buildScene(timeline), () => this.requestDraw()));
        } catch (problem) {
            this.frame.remove();
            this.operators.remove();
            this.status.textContent = `The timeline cannot be drawn: ${problem instanceof Error ? problem.message : problem}.`;
            this.status.classList.add('problem');
        }
    }

    /** @param {TimelineView} view */
    async show(view) {
        this.view = view;
        this.painter = new TimelinePainter(this.canvas, view);
        this.map = new Minimap(view);
        this.mapPlace.replaceChildren(this.map.canvas);
        this.frame.style.height = `${Math.max(120, Math.min(view.scene.height + 40, 560))}px`;
        this.showUsedKinds(view);
        view.onSelect.push(() => this.showDetail());
        view.onWindow.push(() => {
            this.tip.hidden = true;
            this.sayWindow(view);
        });
        listenToHands(this.canvas, view, (event, place) => this.showTip(event, place));
        new ResizeObserver(() => this.resize()).observe(this.frame);
        this.resize();
        this.sayWindow(view);
        this.showDetail();
        this.status.textContent = '';
        if (this.wanted) this.goTo(this.wanted);
        view.onWindow.push(() => this.noteAddress());
        view.onSelect.push(() => this.noteAddress());
        document.documentElement.dataset.timeline = 'interactive';
        await inSlices(levelsOfRows(view));
        this.requestDraw();
        this.map.setBusy(await inSlices(busyOverall(view.timeline, view.scene.rows, MAP_BINS)));
        await this.showOperators(view);
        document.documentElement.dataset.timeline = 'complete';
    }

    /** What is shown, in ns, for scripts and tests. @param {TimelineView} view */
    sayWindow(view) {
        this.canvas.dataset.window = `${view.nsOf(view.from)} ${view.nsOf(view.to)}`;
    }

    /** @param {TimelineView} view */
    async showOperators(view) {
        const place = el('div');
        const fill = async () => {
            const operators = await inSlices(operatorsOf(view.timeline, box.checked));
            place.replaceChildren(operatorTable(operators, (name) => {
                this.input.value = name;
                this.find(name);
                this.element.scrollIntoView({block: 'start'});
                this.step(1);
            }));
        };
        const box = el('input', {type: 'checkbox', id: 'fold-names', onchange: fill});
        box.checked = this.meta.texts.length > NAMES_MANY;
        this.operators.append(el('label', {class: 'check no-print', title: 'mb0.layer12.mlp and mb1.layer3.mlp are both mb*.layer*.mlp'}, box, 'group names that differ only in numbers'), place);
        await fill();
    }

    /** @param {TimelineView} view  the legend lists only kinds that occur */
    showUsedKinds(view) {
        const used = new Uint8Array(this.meta.kinds.length);
        for (let k = 0; k < view.timeline.count; k++) used[view.timeline.kind[k]] = 1;
        this.legend?.replaceChildren(...this.meta.kinds.filter((_, k) => used[k]).map((kind) => kindChip(kind)));
    }

    /** @param {Address} address */
    goTo(address) {
        this.wanted = address;
        const {view} = this;
        if (!view || address.run !== this.run) return;
        const {tickNs, count} = view.timeline;
        if (address.span !== null && address.span >= 0 && address.span < count) view.reveal(address.span);
        if (address.from !== null && address.to !== null) view.setWindow(address.from / tickNs, address.to / tickNs);
    }

    noteAddress() {
        const {view} = this;
        if (!view) return;
        const isWhole = view.to - view.from >= view.timeline.extent;
        writeAddress({
            part: 'timeline', run: this.run, span: view.selected < 0 ? null : view.selected,
            from: isWhole ? null : view.nsOf(view.from), to: isWhole ? null : view.nsOf(view.to),
        });
    }

    resize() {
        this.view?.resize(this.frame.clientWidth, this.frame.clientHeight);
        this.map?.repaint();
    }

    requestDraw() {
        if (this.isAsked) return;
        this.isAsked = true;
        requestAnimationFrame(() => {
            this.isAsked = false;
            this.painter?.draw(window.devicePixelRatio || 1);
        });
    }

    /** Redraws after a change of the colour scheme or before printing. */
    recolour() {
        this.painter?.refreshColours();
        this.painter?.draw(window.devicePixelRatio || 1);
        this.map?.repaint();
    }

    showDetail() {
        if (!this.view) return;
        this.detail.replaceChildren(detailOfSelection(this.view, (text) => {
            this.input.value = text;
            this.find(text);
        }));
    }

    /** @param {PointerEvent | null} event @param {Place | null} place */
    showTip(event, place) {
        const lines = this.view && event && place && event.buttons === 0 ? hoverLines(this.view, place) : [];
        this.canvas.style.cursor = this.view && this.view.hover >= 0 ? 'pointer' : place?.area === 'gutter' ? 'pointer' : place?.area === 'ruler' ? 'col-resize' : 'grab';
        this.tip.hidden = lines.length === 0;
        if (!event || lines.length === 0) return;
        this.tip.replaceChildren(...lines.map((line, k) => el(k === 0 ? 'b' : 'div', {}, line)));
        const width = this.tip.offsetWidth;
        this.tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - width - 8)}px`;
        this.tip.style.top = `${event.clientY + 16 + this.tip.offsetHeight > window.innerHeight ? event.clientY - this.tip.offsetHeight - 8 : event.clientY + 16}px`;
    }

    /** @param {string} text */
    find(text) {
        if (!this.view) return;
        this.view.search = searchFor(this.view.timeline, text);
        this.showFound();
        this.view.redraw();
    }

    showFound() {
        const {view} = this;
        if (!view || !view.search) {
            this.found.textContent = '';
            return;
        }
        const number = matchNumber(view.timeline, view.search, view.selected);
        this.found.textContent = view.search.count === 0 ? 'no span has this name'
            : number > 0 ? `${countText(number)} of ${countText(view.search.count)}` : `${countOf(view.search.count, 'span')}`;
    }

    /** @param {1 | -1} step */
    step(step) {
        const {view} = this;
        if (!view || !view.search) return;
        const next = nextMatch(view.timeline, view.search, view.selected, step);
        if (next >= 0) view.reveal(next);
        this.showFound();
    }

    /** @param {KeyboardEvent} event */
    searchKey(event) {
        if (event.key === 'Enter') this.step(event.shiftKey ? -1 : 1);
        if (event.key !== 'Escape') return;
        this.input.value = '';
        this.find('');
        this.canvas.focus();
    }

    /** @param {boolean} isShown */
    showPath(isShown) {
        if (!this.view) return;
        const {view} = this;
        view.path = isShown ? this.steps.map((step) => view.spanOfStep(step)).filter((span) => span >= 0) : [];
        view.redraw();
    }

    /** From the critical path to its span. @param {PathStep} step */
    jumpTo(step) {
        const span = this.view ? this.view.spanOfStep(step) : -1;
        if (!this.view || span < 0) return;
        this.element.scrollIntoView({block: 'start'});
        this.view.reveal(span);
        this.canvas.focus({preventScroll: true});
    }
}

/** @param {Run} run */
export function missingTimeline(run) {
    return missingPanel('timeline', 'Timeline', run.kind === 'measured'
        ? 'The measurement has no spans.'
        : 'No timeline was recorded in this run; only totals are known. orrery run --report records one.');
}
