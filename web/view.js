// SPDX-License-Identifier: Apache-2.0
// view.js - the state of a timeline view: time window, scroll position, selection; and its changes.
//
// Times here are ticks from the start of the timeline.  x is counted from the left of the plot, y from the top of the
// rows, both in CSS pixels.  Every change goes through a method, which requests at most one redraw per frame.

import {layoutScene} from './rows.js';
import {firstAtOrAfter} from './columns.js';
/** @import {Arrows, Timeline} from './columns.js' */
/** @import {Block, Scene} from './rows.js' */
/** @import {PathStep} from './types.js' */

const TICKS_LEAST = 4; /* the closest zoom */
export const RULER_HEIGHT = 26;
export const MARGIN = 10; /* pixels right of the plot, where the scrollbar is */

/** @typedef {{text: string, isMatch: Uint8Array, count: number}} Search  isMatch: for each text */

/** @param {Arrows} arrows @param {number} span @returns {number[]} */
function arrowsOf(arrows, span) {
    const found = [];
    for (let k = 0; k < arrows.count && found.length < 200; k++) {
        if (arrows.from[k] === span || arrows.to[k] === span) found.push(k);
    }
    return found;
}

export class TimelineView {
    /** @param {Timeline} timeline @param {Scene} scene @param {() => void} redraw */
    constructor(timeline, scene, redraw) {
        this.timeline = timeline;
        this.scene = scene;
        this.redraw = redraw;
        this.from = 0;
        this.to = timeline.extent;
        this.scroll = 0;
        this.gutter = 190;
        this.width = 800;  /* of the plot */
        this.height = 300; /* of the rows */
        this.selected = -1;
        /** @type {number[]} arrows that end or begin at the selected span */
        this.arrows = [];
        this.hover = -1;
        this.cursor = -1; /* x of the mouse, or -1 */
        /** @type {{from: number, to: number} | null} */
        this.measure = null;
        /** @type {Search | null} */
        this.search = null;
        /** @type {number[]} spans of the critical path, in order; empty: not shown */
        this.path = [];
        /** @type {(() => void)[]} */
        this.onSelect = [];
        /** @type {(() => void)[]} */
        this.onWindow = [];
    }

    get ticksPerPixel() {
        return (this.to - this.from) / this.width;
    }

    /** @param {number} tick */
    xOf(tick) {
        return (tick - this.from) / (this.to - this.from) * this.width;
    }

    /** @param {number} x */
    tickAt(x) {
        return this.from + x * this.ticksPerPixel;
    }

    /** @param {number} tick  nanoseconds from the start of the timeline */
    nsOf(tick) {
        return tick * this.timeline.tickNs;
    }

    /** Moves the window, keeping it within the timeline and not too narrow. @param {number} from @param {number} to */
    setWindow(from, to) {
        const extent = this.timeline.extent;
        const width = Math.min(extent, Math.max(to - from, Math.min(TICKS_LEAST, extent)));
        this.from = Math.max(0, Math.min((from + to - width) / 2, extent - width));
        this.to = this.from + width;
        this.onWindow.forEach((call) => call());
        this.redraw();
    }

    /** Zooms; the tick at x keeps its position. @param {number} x @param {number} factor  below 1: closer */
    zoom(x, factor) {
        const at = this.tickAt(x);
        const width = Math.min(this.timeline.extent, Math.max((this.to - this.from) * factor, Math.min(TICKS_LEAST, this.timeline.extent)));
        const from = at - x / this.width * width;
        this.setWindow(from, from + width);
    }

    /** @param {number} pixels  to the right */
    pan(pixels) {
        const by = pixels * this.ticksPerPixel;
        this.setWindow(this.from + by, this.to + by);
    }

    fit() {
        this.setWindow(0, this.timeline.extent);
    }

    /** @param {number} pixels  down */
    scrollBy(pixels) {
        this.scroll = Math.max(0, Math.min(this.scroll + pixels, this.scene.height - this.height));
        this.redraw();
    }

    /** @param {number} width @param {number} height */
    resize(width, height) {
        this.gutter = width < 700 ? 120 : 190;
        this.width = Math.max(50, width - this.gutter - MARGIN);
        this.height = Math.max(40, height - RULER_HEIGHT);
        this.scrollBy(0);
    }

    /** @param {Block} block */
    toggle(block) {
        block.isOpen = !block.isOpen;
        layoutScene(this.scene);
        this.scrollBy(0);
    }

    /** Opens all ranks, or closes all when more are open than closed. */
    toggleAll() {
        const open = this.scene.blocks.filter((block) => block.isOpen).length;
        for (const block of this.scene.blocks) block.isOpen = open * 2 < this.scene.blocks.length;
        layoutScene(this.scene);
        this.scrollBy(0);
    }

    /** The rank of the selected span; without a selection the first. */
    toggleSelected() {
        const row = this.scene.rows[this.selected < 0 ? 0 : this.scene.rowOfSpan[this.selected]];
        const block = this.scene.blocks.find((one) => one.rows.includes(row));
        if (block) this.toggle(block);
    }

    /** @param {number} span  or -1 */
    select(span) {
        this.selected = span;
        this.arrows = span < 0 ? [] : arrowsOf(this.timeline.arrows, span);
        this.onSelect.forEach((call) => call());
        this.redraw();
    }

    /** @param {{from: number, to: number} | null} measure */
    setMeasure(measure) {
        this.measure = measure;
        this.onSelect.forEach((call) => call());
        this.redraw();
    }

    /** @param {number} span  its row is scrolled into view, its rank opened */
    showRow(span) {
        const row = this.scene.rows[this.scene.rowOfSpan[span]];
        const block = this.scene.blocks.find((one) => one.rows.includes(row));
        if (block && !block.isOpen) this.toggle(block);
        if (row.y < this.scroll || row.y + row.height > this.scroll + this.height) {
            this.scroll = Math.max(0, Math.min(row.y - this.height / 3, this.scene.height - this.height));
        }
    }

    /** Selects a span and brings it into view, zooming only when it could not be seen otherwise. @param {number} span */
    reveal(span) {
        this.showRow(span);
        const start = this.timeline.start[span];
        const length = this.timeline.length[span];
        const width = this.to - this.from;
        if (length > width || length / width * this.width < 4) {
            const around = Math.max(length * 8, TICKS_LEAST * 4);
            this.setWindow(start + length / 2 - around, start + length / 2 + around);
        } else if (start < this.from || start + length > this.to) {
            this.setWindow(start + length / 2 - width / 2, start + length / 2 + width / 2);
        }
        this.select(span);
    }

    /** Zooms to the selected span or the measured range. */
    zoomToSelection() {
        if (this.measure) return this.setWindow(this.measure.from, this.measure.to);
        if (this.selected < 0) return;
        const start = this.timeline.start[this.selected];
        const length = Math.max(this.timeline.length[this.selected], TICKS_LEAST);
        this.setWindow(start - length * 0.2, start + length * 1.2);
    }

    /** The span before or after the selected one, in its row. @param {number} step  1 or -1 */
    selectNeighbour(step) {
        if (this.selected < 0) return;
        const row = this.scene.rows[this.scene.rowOfSpan[this.selected]];
        const next = row.spans[row.spans.indexOf(this.selected) + step];
        if (next !== undefined) this.reveal(next);
    }

    /** @param {PathStep} step  its span, or -1 */
    spanOfStep(step) {
        const {timeline} = this;
        if (typeof step.track !== 'number' || step.track >= timeline.meta.tracks.length) return -1;
        const tick = (step.start_ns - timeline.meta.start_ns) / timeline.tickNs;
        const end = (step.end_ns - timeline.meta.start_ns) / timeline.tickNs;
        /* Fractions of a tick were rounded when the file was written. */
        let best = -1;
        for (let k = firstAtOrAfter(timeline, step.track, tick - 1.5); k < timeline.first[step.track + 1]; k++) {
            if (timeline.start[k] > tick + 1.5) break;
            if (timeline.meta.texts[timeline.name[k]] !== step.name) continue;
            const away = Math.abs(timeline.start[k] + timeline.length[k] - end);
            if (best < 0 || away < Math.abs(timeline.start[best] + timeline.length[best] - end)) best = k;
        }
        return best;
    }
}
