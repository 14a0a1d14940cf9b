// SPDX-License-Identifier: Apache-2.0
// timeline_input.js - input on the timeline: mouse, wheel and keys.
//
// The wheel zooms at the mouse.  Scrolling the page continues when the timeline moves under the mouse: a wheel movement
// that began outside scrolls the page until it pauses.

import {RULER_HEIGHT} from './view.js';
import {isTextField} from './dom.js';
import {blockAt, rowAt, spansBefore} from './rows.js';
/** @import {TimelineView} from './view.js' */

const REST_MS = 250;
const DRAG_LEAST = 3; /* pixels: less is a click */

/** @typedef {{x: number, y: number, area: 'gutter' | 'ruler' | 'plot' | 'bar'}} Place */

/** @param {TimelineView} view @param {number} x @param {number} y  from the top of the rows; a span, or -1 */
export function spanAt(view, x, y) {
    const row = rowAt(view.scene, y);
    if (!row || row.counter >= 0) return -1;
    const {timeline} = view;
    const slack = 2 * view.ticksPerPixel;
    const tick = view.tickAt(x);
    let best = -1;
    let least = slack;
    for (let k = spansBefore(timeline, row, tick + slack) - 1, tries = 0; k >= 0 && tries < 8; k--, tries++) {
        const span = row.spans[k];
        const end = timeline.start[span] + timeline.length[span];
        const away = Math.max(timeline.start[span] - tick, tick - end, 0);
        if (away === 0) return span;
        if (away < least) {
            least = away;
            best = span;
        }
    }
    return best;
}

/** @param {TimelineView} view @param {number} x */
function isOnBar(view, x) {
    return view.scene.height > view.height && x > view.width;
}

/** @param {HTMLCanvasElement} canvas @param {TimelineView} view @param {MouseEvent} event @returns {Place} */
export function placeOf(canvas, view, event) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left - view.gutter;
    const y = event.clientY - box.top;
    return {x, y: y - RULER_HEIGHT + view.scroll, area: x < 0 ? 'gutter' : y < RULER_HEIGHT ? 'ruler' : isOnBar(view, x) ? 'bar' : 'plot'};
}

/** When the page was last scrolled by a wheel outside of a timeline. */
let scrolledAt = -Infinity;

/** @param {HTMLCanvasElement} canvas @param {TimelineView} view */
function listenToWheel(canvas, view) {
    window.addEventListener('wheel', (event) => {
        if (event.target !== canvas) scrolledAt = event.timeStamp;
    }, {passive: true});
    canvas.addEventListener('wheel', (event) => {
        if (event.timeStamp - scrolledAt < REST_MS && !event.ctrlKey) {
            scrolledAt = event.timeStamp;
            return;
        }
        event.preventDefault();
        const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
        const place = placeOf(canvas, view, event);
        if (place.area === 'gutter') return view.scrollBy(event.deltaY * lines);
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            return view.pan((event.deltaX || event.deltaY) * lines);
        }
        view.zoom(place.x, Math.exp(Math.max(-1, Math.min(1, event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002)))));
    }, {passive: false});
}

/** Drags the content, or with Shift (or on the ruler) measures; a click selects.
 *  @param {HTMLCanvasElement} canvas @param {TimelineView} view */
function listenToDrag(canvas, view) {
    canvas.addEventListener('pointerdown', (event) => {
        if (event.button !== 0) return;
        const start = placeOf(canvas, view, event);
        const isMeasure = start.area === 'ruler' || event.shiftKey;
        const anchor = view.tickAt(start.x);
        let isDrag = false;
        let lastX = event.clientX;
        let lastY = event.clientY;
        canvas.setPointerCapture(event.pointerId);
        /** @param {PointerEvent} moved */
        const move = (moved) => {
            isDrag ||= Math.abs(moved.clientX - event.clientX) + Math.abs(moved.clientY - event.clientY) > DRAG_LEAST;
            if (!isDrag) return;
            if (start.area === 'bar') {
                view.scrollBy((moved.clientY - lastY) * view.scene.height / view.height);
            } else if (isMeasure) {
                const tick = view.tickAt(Math.max(0, Math.min(view.width, placeOf(canvas, view, moved).x)));
                view.setMeasure({from: Math.min(anchor, tick), to: Math.max(anchor, tick)});
            } else {
                if (start.area === 'plot') view.pan(lastX - moved.clientX);
                view.scrollBy(lastY - moved.clientY);
            }
            lastX = moved.clientX;
            lastY = moved.clientY;
        };
        const up = () => {
            canvas.removeEventListener('pointermove', move);
            if (!isDrag) clickAt(view, start);
        };
        canvas.addEventListener('pointermove', move);
        canvas.addEventListener('pointerup', up, {once: true});
    });
    canvas.addEventListener('dblclick', (event) => {
        if (placeOf(canvas, view, event).area === 'plot') view.zoomToSelection();
    });
}

/** @param {TimelineView} view @param {Place} place */
function clickAt(view, place) {
    if (place.area === 'gutter') {
        const block = blockAt(view.scene, place.y);
        if (block) view.toggle(block);
        return;
    }
    if (view.measure) view.setMeasure(null);
    if (place.area === 'plot') view.select(spanAt(view, place.x, place.y));
}

/** Keys of the timeline; true if the key was handled. @param {TimelineView} view @param {KeyboardEvent} event */
export function timelineKey(view, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const x = view.cursor >= 0 ? view.cursor : view.width / 2;
    const step = event.shiftKey ? 0.5 : 0.12;
    switch (event.key.length === 1 ? event.key.toLowerCase() : event.key) {
    case 'w': case '+': case '=': view.zoom(x, 0.75); return true;
    case 's': case '-': case '_': view.zoom(x, 1 / 0.75); return true;
    case 'a': case 'ArrowLeft': view.pan(-step * view.width); return true;
    case 'd': case 'ArrowRight': view.pan(step * view.width); return true;
    case 'ArrowUp': view.scrollBy(-40); return true;
    case 'ArrowDown': view.scrollBy(40); return true;
    case 'PageUp': view.scrollBy(-view.height * 0.9); return true;
    case 'PageDown': view.scrollBy(view.height * 0.9); return true;
    case '0': case 'Home': view.fit(); return true;
    case 'f': view.zoomToSelection(); return true;
    case '[': case ',': view.selectNeighbour(-1); return true;
    case ']': case '.': view.selectNeighbour(1); return true;
    case 'c': view.toggleAll(); return true;
    case 'e': view.toggleSelected(); return true;
    case 'Escape': view.setMeasure(null); view.select(-1); return true;
    default: return false;
    }
}

/** Letters work with any focus while the timeline is visible; arrow keys only when it has the focus.
 *  @param {HTMLCanvasElement} canvas @param {TimelineView} view */
function listenToKeys(canvas, view) {
    document.addEventListener('keydown', (event) => {
        if (!canvas.isConnected || event.defaultPrevented || isTextField(event.target)) return;
        const isFocused = document.activeElement === canvas;
        if (!isFocused && !(/^[wasdfec0+\-=[\],.]$/i.test(event.key) && isMostlyVisible(canvas))) return;
        if (timelineKey(view, event)) event.preventDefault();
    });
}

/** @param {Element} element */
function isMostlyVisible(element) {
    const box = element.getBoundingClientRect();
    const seen = Math.min(box.bottom, window.innerHeight) - Math.max(box.top, 0);
    return seen > Math.min(box.height, window.innerHeight) * 0.4;
}

/** @param {HTMLCanvasElement} canvas @param {TimelineView} view
 *  @param {(event: PointerEvent | null, place: Place | null) => void} onHover */
export function listenToHands(canvas, view, onHover) {
    listenToWheel(canvas, view);
    listenToDrag(canvas, view);
    listenToKeys(canvas, view);
    canvas.addEventListener('pointermove', (event) => {
        const place = placeOf(canvas, view, event);
        view.cursor = place.area === 'gutter' ? -1 : place.x;
        view.hover = place.area === 'plot' ? spanAt(view, place.x, place.y) : -1;
        onHover(event, place);
        view.redraw();
    });
    canvas.addEventListener('pointerleave', () => {
        view.cursor = -1;
        view.hover = -1;
        onHover(null, null);
        view.redraw();
    });
}
