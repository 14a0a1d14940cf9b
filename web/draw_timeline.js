// SPDX-License-Identifier: Apache-2.0
// draw_timeline.js - one frame of the timeline: the rows' pixels first, then ruler, names, marks and arrows over them.

import {cssColour, cssText, inkOn, kindClass, KINDS, mixColours, packColour} from './palette.js';
import {counterMost, drawCounter, drawRow} from './draw_rows.js';
import {Inks, Raster} from './raster.js';
import {MARGIN, RULER_HEIGHT} from './view.js';
import {counterText, timeAt, timeText, timeTicks} from './units.js';
import {spansBefore} from './rows.js';
/** @import {Block, Row} from './rows.js' */
/** @import {TimelineView} from './view.js' */

const LABELS_MOST = 600;
const CHARACTER = 6.1; /* approximate width of a character at 11 px, in pixels */
const FONT = '11px Inter, "Segoe UI", system-ui, "Helvetica Neue", "Noto Sans", "Liberation Sans", sans-serif';

/**
 * @typedef {object} Colours
 * @property {Inks} inks
 * @property {string[]} ink         of texts on each kind
 * @property {string} paper
 * @property {string} text
 * @property {string} faint
 * @property {string} line
 * @property {string} accent
 * @property {number} area          of counters, packed
 * @property {number} areaLine
 * @property {number} grid          lines of time, packed
 * @property {number} stripe        behind every other block, packed
 */

/** The colours of the current scheme. @param {string[]} kinds  of the timeline @returns {Colours} */
export function readColours(kinds) {
    const paper = cssColour('--paper');
    const colours = kinds.map((kind) => cssColour(`--kind-${kindClass(kind)}`));
    const accent = cssColour('--accent');
    return {
        inks: new Inks(colours, paper),
        ink: colours.map(inkOn),
        paper: cssText(paper),
        text: cssText(cssColour('--text')),
        faint: cssText(cssColour('--text-faint')),
        line: cssText(cssColour('--line')),
        accent: cssText(accent),
        area: packColour(mixColours(accent, paper, 0.22)),
        areaLine: packColour(mixColours(accent, paper, 0.8)),
        grid: packColour(mixColours(cssColour('--line'), paper, 0.6)),
        stripe: packColour(mixColours(cssColour('--line'), paper, 0.28)),
    };
}

export class TimelinePainter {
    /** @param {HTMLCanvasElement} canvas @param {TimelineView} view */
    constructor(canvas, view) {
        this.canvas = canvas;
        this.view = view;
        this.raster = new Raster();
        const context = canvas.getContext('2d');
        if (!context) throw new Error('this browser gives no canvas to draw on');
        this.context = context;
        this.colours = readColours(view.timeline.meta.kinds);
        const kinds = view.timeline.meta.kinds.map(kindClass);
        this.order = kinds.map((_, k) => k).sort((a, b) => KINDS.indexOf(kinds[a]) - KINDS.indexOf(kinds[b]));
    }

    refreshColours() {
        this.colours = readColours(this.view.timeline.meta.kinds);
    }

    /** @param {number} scale  device pixels a CSS pixel */
    draw(scale) {
        const {view, canvas, context, colours} = this;
        const width = Math.round((view.gutter + view.width + MARGIN) * scale);
        const height = Math.round((RULER_HEIGHT + view.height) * scale);
        if (canvas.width !== width || canvas.height !== height) {
            canvas.width = width;
            canvas.height = height;
        }
        this.drawRows(scale);
        context.setTransform(1, 0, 0, 1, 0, 0);
        context.fillStyle = colours.paper;
        context.fillRect(0, 0, width, height);
        context.putImageData(this.raster.image, Math.round(view.gutter * scale), height - this.raster.height);
        context.setTransform(scale, 0, 0, scale, 0, 0);
        context.font = FONT;
        context.textBaseline = 'middle';
        this.drawGutter();
        this.drawRuler();
        context.save();
        context.beginPath();
        context.rect(view.gutter, RULER_HEIGHT, view.width, view.height);
        context.clip();
        context.translate(view.gutter, RULER_HEIGHT - view.scroll);
        this.drawLabels();
        this.drawPath();
        this.drawArrows();
        this.drawBox(view.hover, colours.text, 1);
        this.drawBox(view.selected, colours.accent, 2.5);
        context.restore();
        this.drawMeasure();
        this.drawCursor();
        this.drawScrollbar();
    }

    /** @returns {Block[]} */
    visibleBlocks() {
        const {scene, scroll, height} = this.view;
        return scene.blocks.filter((block) => block.y + block.height > scroll && block.y < scroll + height);
    }

    /** @returns {Row[]} */
    visibleRows() {
        const {scroll, height} = this.view;
        return this.visibleBlocks().flatMap((block) => block.rows)
            .filter((row) => row.height > 0 && row.y + row.height > scroll && row.y < scroll + height);
    }

    /** @param {number} scale */
    drawRows(scale) {
        const {view, raster, colours} = this;
        raster.resize(Math.round(view.width * scale), Math.round(view.height * scale));
        raster.clear(colours.inks.paper);
        /** @param {number} y */
        const device = (y) => Math.round((y - view.scroll) * scale);
        for (const block of this.visibleBlocks()) {
            if (view.scene.blocks.indexOf(block) % 2 === 0) continue;
            raster.rect(0, device(block.y - 2), raster.width, device(block.y + block.height + 3), colours.stripe);
        }
        for (const {at} of this.ticks()) {
            const x = Math.round(view.xOf(at / view.timeline.tickNs) * scale);
            raster.rect(x, 0, x + 1, raster.height, colours.grid);
        }
        const pen = {raster, inks: colours.inks, view, scale, order: this.order, soft: view.timeline.meta.kinds.indexOf('receive')};
        for (const row of this.visibleRows()) {
            const gap = row.height > 8 ? 1 : 0;
            if (row.counter >= 0) drawCounter(pen, row, device(row.y + 2), device(row.y + row.height - 1), colours.areaLine, colours.area);
            else drawRow(pen, row, device(row.y), device(row.y + row.height - gap));
        }
    }

    drawGutter() {
        const {view, context, colours} = this;
        context.save();
        context.beginPath();
        context.rect(0, RULER_HEIGHT, view.gutter - 6, view.height);
        context.clip();
        context.translate(0, RULER_HEIGHT - view.scroll);
        for (const block of this.visibleBlocks()) {
            const y = Math.min(Math.max(block.y, view.scroll), block.y + block.height - 14) + 8;
            context.fillStyle = colours.text;
            context.textAlign = 'left';
            context.fillText(`${block.isOpen ? '\u25be' : '\u25b8'} ${block.label}`, 4, y);
            if (block.isOpen) this.drawTrackNames(block);
        }
        context.restore();
        context.fillStyle = colours.line;
        context.fillRect(view.gutter - 1, 0, 1, RULER_HEIGHT + view.height);
    }

    /** @param {Block} block */
    drawTrackNames(block) {
        const {view, context, colours} = this;
        const {meta} = view.timeline;
        /* There is less room next to the name of the rank. */
        const [less, more] = [84, 24].map((taken) => Math.floor((view.gutter - taken) / CHARACTER));
        context.fillStyle = colours.faint;
        context.textAlign = 'right';
        for (const row of block.rows) {
            if (row.lane > 0) continue;
            const counter = row.counter >= 0 ? meta.counters?.[row.counter] : null;
            const name = counter ? counter.name : meta.tracks[row.track].name;
            const isFirst = row.y < Math.max(block.y, view.scroll) + 14;
            context.fillText(clippedInside(name, isFirst ? less : more), view.gutter - 10, row.y + Math.min(row.height, 18) / 2);
            if (!counter) continue;
            context.fillText(`\u2264 ${counterText(counterMost(view, row.counter), counter.unit)}`, view.gutter - 10, row.y + 25);
        }
    }

    ticks() {
        const {view} = this;
        return timeTicks(view.nsOf(view.from), view.nsOf(view.to), view.width / 110);
    }

    drawRuler() {
        const {view, context, colours} = this;
        context.textAlign = 'left';
        for (const {at, text} of this.ticks()) {
            const x = Math.round(view.gutter + view.xOf(at / view.timeline.tickNs)) + 0.5;
            context.fillStyle = colours.line;
            context.fillRect(x - 0.5, 18, 1, RULER_HEIGHT - 18);
            context.fillStyle = colours.faint;
            context.fillText(text, x + 4, 13);
        }
        context.fillStyle = colours.line;
        context.fillRect(0, RULER_HEIGHT - 1, view.gutter + view.width + MARGIN, 1);
    }

    /** Labels on spans that are wide enough, in rows that are high enough. */
    drawLabels() {
        const {view, context, colours} = this;
        const {timeline} = view;
        let left = LABELS_MOST;
        context.textAlign = 'left';
        for (const row of this.visibleRows()) {
            if (row.height < 13 || row.counter >= 0) continue;
            const first = Math.max(0, spansBefore(timeline, row, view.from) - 1);
            const last = spansBefore(timeline, row, view.to);
            if (last - first > view.width / 4) continue;
            for (let k = first; k < last && left > 0; k++) {
                const span = row.spans[k];
                const x0 = Math.max(0, view.xOf(timeline.start[span]));
                const x1 = Math.min(view.width, view.xOf(timeline.start[span] + timeline.length[span]));
                if (x1 - x0 < 26) continue;
                const isDim = view.search !== null && !view.search.isMatch[timeline.name[span]];
                const isSoft = timeline.meta.kinds[timeline.kind[span]] === 'receive';
                context.fillStyle = isDim ? colours.faint : isSoft ? colours.text : colours.ink[timeline.kind[span]];
                const room = Math.floor((x1 - x0 - 8) / CHARACTER);
                context.fillText(clipped(timeline.meta.texts[timeline.name[span]] ?? '', room), x0 + 4, row.y + row.height / 2);
                left--;
            }
        }
    }

    /** Where a span is drawn, from the left of the plot and the top of the rows. @param {number} span */
    boxOf(span) {
        const {view} = this;
        const row = view.scene.rows[view.scene.rowOfSpan[span]];
        const left = view.xOf(view.timeline.start[span]);
        const width = view.timeline.length[span] / view.ticksPerPixel;
        return {left, width: Math.max(width, 1.5), top: row.y, height: Math.max(row.height, 3), middle: row.y + row.height / 2};
    }

    /** @param {number} span @param {string} colour @param {number} width */
    drawBox(span, colour, width) {
        if (span < 0) return;
        const {context, view} = this;
        const box = this.boxOf(span);
        const left = Math.max(-4, box.left);
        const right = Math.min(view.width + 4, box.left + box.width);
        if (right < left) return;
        context.strokeStyle = colour;
        context.lineWidth = width;
        context.strokeRect(left, box.top - 0.5, Math.max(1, right - left), box.height);
    }

    /** The critical path: a bar under each of its spans, and lines from one row to the next. */
    drawPath() {
        const {view, context, colours} = this;
        context.fillStyle = colours.text;
        context.strokeStyle = colours.text;
        context.lineWidth = 1;
        context.globalAlpha = 0.85;
        context.beginPath();
        let before = null;
        for (const span of view.path) {
            const box = this.boxOf(span);
            const end = box.left + box.width;
            /* Short steps back and forth within a rank would clutter the drawing. */
            const isSeen = before !== null && before.top !== box.top && (Math.abs(before.top - box.top) > 60 || Math.max(before.width, box.width) > 8);
            if (before && isSeen && Math.max(before.left + before.width, box.left) > -50 && before.left < view.width + 50) {
                context.moveTo(before.left + before.width, before.middle);
                context.lineTo(box.left, box.middle);
            }
            if (box.left < view.width && end > 0) {
                const left = Math.max(-4, box.left);
                context.fillRect(left, box.top + box.height - 4, Math.max(1, Math.min(end, view.width + 4) - left), 3);
            }
            before = box;
        }
        context.stroke();
        context.globalAlpha = 1;
    }

    /** Arrows from the spans that released the selected one, and to those it released. */
    drawArrows() {
        const {view, context, colours} = this;
        context.strokeStyle = colours.accent;
        context.fillStyle = colours.accent;
        context.lineWidth = 1.5;
        view.arrows.slice(0, 64).forEach((arrow) => this.drawArrow(arrow));
    }

    /** @param {number} arrow */
    drawArrow(arrow) {
        const {view, context} = this;
        const {arrows} = view.timeline;
        const x0 = view.xOf(arrows.left[arrow]);
        const x1 = view.xOf(arrows.arrived[arrow]);
        const y0 = this.boxOf(arrows.from[arrow]).middle;
        const y1 = this.boxOf(arrows.to[arrow]).middle;
        const bend = Math.max(18, Math.abs(x1 - x0) / 3);
        context.beginPath();
        context.moveTo(x0, y0);
        context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
        context.stroke();
        context.beginPath();
        context.moveTo(x1 + 1, y1);
        context.lineTo(x1 - 7, y1 - 4);
        context.lineTo(x1 - 7, y1 + 4);
        context.fill();
    }

    drawMeasure() {
        const {view, context, colours} = this;
        if (!view.measure) return;
        const left = view.gutter + Math.max(0, view.xOf(view.measure.from));
        const right = view.gutter + Math.min(view.width, view.xOf(view.measure.to));
        if (right < left) return;
        context.globalAlpha = 0.14;
        context.fillStyle = colours.accent;
        context.fillRect(left, 0, right - left, RULER_HEIGHT + view.height);
        context.globalAlpha = 1;
        context.fillRect(left, 0, 1, RULER_HEIGHT + view.height);
        context.fillRect(right, 0, 1, RULER_HEIGHT + view.height);
        this.drawTag(timeText(view.nsOf(view.measure.to - view.measure.from)), (left + right) / 2, 12);
    }

    /** The time at the mouse. */
    drawCursor() {
        const {view, context, colours} = this;
        if (view.cursor < 0 || view.cursor > view.width) return;
        const x = Math.round(view.gutter + view.cursor);
        context.globalAlpha = 0.5;
        context.fillStyle = colours.text;
        context.fillRect(x, RULER_HEIGHT, 1, view.height);
        context.globalAlpha = 1;
        if (!view.measure) this.drawTag(timeAt(view.nsOf(view.tickAt(view.cursor)), view.nsOf(view.ticksPerPixel)), x, 12);
    }

    /** A small label, kept inside the plot. @param {string} text @param {number} x @param {number} y */
    drawTag(text, x, y) {
        const {view, context, colours} = this;
        const half = context.measureText(text).width / 2 + 6;
        const at = Math.max(view.gutter + half, Math.min(x, view.gutter + view.width - half));
        context.fillStyle = colours.accent;
        context.beginPath();
        context.roundRect(at - half, y - 9, 2 * half, 18, 4);
        context.fill();
        context.fillStyle = colours.paper;
        context.textAlign = 'center';
        context.fillText(text, at, y + 0.5);
    }

    drawScrollbar() {
        const {view, context, colours} = this;
        if (view.scene.height <= view.height) return;
        const length = Math.max(24, view.height * view.height / view.scene.height);
        const y = RULER_HEIGHT + view.scroll / (view.scene.height - view.height) * (view.height - length);
        context.globalAlpha = 0.45;
        context.fillStyle = colours.faint;
        context.beginPath();
        context.roundRect(view.gutter + view.width + 3, y, 5, length, 3);
        context.fill();
        context.globalAlpha = 1;
    }
}

/** Track names differ at their ends: shorten them in the middle. @param {string} text @param {number} room  characters */
export function clippedInside(text, room) {
    if (text.length <= room) return text;
    const head = Math.ceil((room - 1) * 0.5);
    return `${text.slice(0, head)}\u2026${text.slice(text.length - (room - 1 - head))}`;
}

/** @param {string} text @param {number} room  characters */
export function clipped(text, room) {
    if (text.length <= room) return text;
    return room < 2 ? '' : `${text.slice(0, room - 1)}\u2026`;
}
