// SPDX-License-Identifier: Apache-2.0
// minimap.js - the whole run in a strip: utilization of all tracks, by kind, and the part that the timeline shows.

import {el} from './dom.js';
import {MARGIN} from './view.js';
import {cssColour, cssText, kindClass, KINDS} from './palette.js';
/** @import {TimelineView} from './view.js' */

const MAP_HEIGHT = 46;

export class Minimap {
    /** @param {TimelineView} view */
    constructor(view) {
        this.view = view;
        this.canvas = el('canvas', {
            class: 'minimap', height: MAP_HEIGHT, role: 'img',
            'aria-label': 'The whole run: share of the tracks that are busy, by kind of work, without receives. Drag to move the window.',
        });
        /** @type {Float32Array[] | null} */
        this.busy = null;
        /* Independent of the window: painted once, then copied. */
        this.picture = el('canvas');
        view.onWindow.push(() => this.draw());
        this.listen();
    }

    listen() {
        const {canvas, view} = this;
        /** @param {PointerEvent} event */
        const tickAt = (event) => {
            const box = canvas.getBoundingClientRect();
            return (event.clientX - box.left - view.gutter) / view.width * view.timeline.extent;
        };
        canvas.addEventListener('pointerdown', (event) => {
            if (event.button !== 0) return;
            canvas.setPointerCapture(event.pointerId);
            const start = tickAt(event);
            const isInside = start >= view.from && start <= view.to && view.to - view.from < view.timeline.extent * 0.999;
            const offset = start - view.from;
            const width = view.to - view.from;
            /** @param {PointerEvent} moved */
            const move = (moved) => {
                const tick = tickAt(moved);
                if (isInside) view.setWindow(tick - offset, tick - offset + width);
                else view.setWindow(Math.min(start, tick), Math.max(start, tick));
            };
            canvas.addEventListener('pointermove', move);
            canvas.addEventListener('pointerup', (ended) => {
                canvas.removeEventListener('pointermove', move);
                if (!isInside && Math.abs(ended.clientX - event.clientX) < 3) view.setWindow(start - width / 2, start + width / 2);
            }, {once: true});
        });
        canvas.addEventListener('dblclick', () => view.fit());
    }

    /** @param {Float32Array[]} busy */
    setBusy(busy) {
        this.busy = busy;
        this.repaint();
    }

    /** A canvas of the right size, with x counted from the left of the plot. @param {HTMLCanvasElement} canvas */
    prepare(canvas) {
        const {view} = this;
        const scale = window.devicePixelRatio || 1;
        canvas.width = Math.round((view.gutter + view.width + MARGIN) * scale);
        canvas.height = Math.round(MAP_HEIGHT * scale);
        const context = canvas.getContext('2d');
        context?.scale(scale, scale);
        context?.translate(view.gutter, 0);
        return context;
    }

    /** After a change of size or colours. */
    repaint() {
        const context = this.prepare(this.picture);
        if (context && this.busy) this.drawBusy(context, this.busy);
        this.draw();
    }

    draw() {
        const {view} = this;
        const context = this.prepare(this.canvas);
        if (!context) return;
        if (this.busy) context.drawImage(this.picture, -view.gutter, 0, view.gutter + view.width + MARGIN, MAP_HEIGHT);
        this.drawWindow(context);
    }

    /** @param {CanvasRenderingContext2D} context @param {Float32Array[]} busy */
    drawBusy(context, busy) {
        const {view} = this;
        const kinds = view.timeline.meta.kinds.map(kindClass);
        const order = kinds.map((_, k) => k).sort((a, b) => KINDS.indexOf(kinds[a]) - KINDS.indexOf(kinds[b]));
        const bins = busy[0]?.length ?? 0;
        const sums = new Float32Array(bins);
        for (const series of busy) for (let k = 0; k < bins; k++) sums[k] += series[k];
        const most = sums.reduce((a, b) => Math.max(a, b), 0) || 1;
        const base = new Float32Array(bins);
        for (const kind of order) {
            context.fillStyle = cssText(cssColour(`--kind-${kinds[kind]}`));
            for (let k = 0; k < bins; k++) {
                const high = busy[kind][k] / most * (MAP_HEIGHT - 6);
                if (high <= 0) continue;
                const x = k / bins * view.width;
                context.fillRect(x, MAP_HEIGHT - 2 - base[k] - high, view.width / bins + 0.6, high);
                base[k] += high;
            }
        }
    }

    /** @param {CanvasRenderingContext2D} context */
    drawWindow(context) {
        const {view} = this;
        const left = view.from / view.timeline.extent * view.width;
        const right = view.to / view.timeline.extent * view.width;
        context.fillStyle = cssText(cssColour('--paper'));
        context.globalAlpha = 0.68;
        context.fillRect(0, 0, left, MAP_HEIGHT);
        context.fillRect(right, 0, view.width - right, MAP_HEIGHT);
        context.globalAlpha = 1;
        context.strokeStyle = cssText(cssColour('--accent'));
        context.lineWidth = 1.5;
        context.strokeRect(left + 0.75, 0.75, Math.max(2, right - left - 1.5), MAP_HEIGHT - 1.5);
    }
}
