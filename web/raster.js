// SPDX-License-Identifier: Apache-2.0
// raster.js - a rectangle of pixels that is filled directly and copied to the canvas at once.
//
// Why not fillRect: a dense timeline has some hundred thousand rectangles per frame, most of them a pixel wide. Writing
// 32-bit pixels keeps every frame within a few milliseconds, whatever its content.

import {mixColours, packColour} from './palette.js';
/** @import {Rgb} from './palette.js' */

export class Raster {
    constructor() {
        this.width = 0;
        this.height = 0;
        this.image = new ImageData(1, 1);
        this.pixels = new Uint32Array(this.image.data.buffer);
    }

    /** @param {number} width @param {number} height  device pixels */
    resize(width, height) {
        if (width === this.width && height === this.height) return;
        this.width = width;
        this.height = height;
        this.image = new ImageData(width, height);
        this.pixels = new Uint32Array(this.image.data.buffer);
    }

    /** @param {number} colour */
    clear(colour) {
        this.pixels.fill(colour);
    }

    /** Whole pixels, clipped to the raster. @param {number} left @param {number} top @param {number} right
     *  @param {number} bottom @param {number} colour */
    rect(left, top, right, bottom, colour) {
        const x0 = left < 0 ? 0 : left;
        const x1 = right > this.width ? this.width : right;
        const y0 = top < 0 ? 0 : top;
        const y1 = bottom > this.height ? this.height : bottom;
        if (x0 >= x1) return;
        for (let y = y0, at = y0 * this.width; y < y1; y++, at += this.width) this.pixels.fill(colour, at + x0, at + x1);
    }

    /** One column of pixels. @param {number} x @param {number} top @param {number} bottom @param {number} colour */
    column(x, top, bottom, colour) {
        const y0 = top < 0 ? 0 : top;
        const y1 = bottom > this.height ? this.height : bottom;
        for (let y = y0, at = y0 * this.width + x; y < y1; y++, at += this.width) this.pixels[at] = colour;
    }
}

/** Colours of the kinds, and each of them in 17 strengths over the background. */
export class Inks {
    /** @param {Rgb[]} kinds @param {Rgb} paper */
    constructor(kinds, paper) {
        this.paper = packColour(paper);
        this.solid = Uint32Array.from(kinds, packColour);
        this.edge = Uint32Array.from(kinds, (colour) => packColour(mixColours(colour, paper, 0.62)));
        this.strength = kinds.map((colour) =>
            Uint32Array.from({length: 17}, (_, k) => packColour(mixColours(colour, paper, k / 16))));
    }
}
