// SPDX-License-Identifier: Apache-2.0
// test_report_page.mjs - the report page in a real browser: it draws, it answers to hands and keys, names stay text.

import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {assemble} from './assemble.mjs';
import {HOSTILE, SAMPLES} from './make_data.mjs';
import {launchBrowser, nextFrame, openPage, samplePage, scratch, timelineDone, WEB, writePage} from './chromium.mjs';
import {check, checkEqual, checkNear, runAll, say, test} from './tap.mjs';

const browser = await launchBrowser();
const PANELS = ['headline', 'breakdown', 'whatif', 'timeline', 'critical', 'operators', 'collectives', 'topology', 'memory', 'pipeline', 'inputs'];

/** A page of a sample, closed afterwards; whatever it complained about fails the test.
 *  @param {string} name @param {(page: any) => Promise<void>} work @param {object} [options] */
async function onSample(name, work, options) {
    const {page, complaints, close} = await openPage(browser, samplePage(name), options);
    try {
        if (await page.locator('canvas.timeline-canvas').count() > 0) await timelineDone(page);
        await work(page);
        checkEqual(complaints, [], 'complaints of the page');
    } finally {
        await close();
    }
}

/** How many pixels of a canvas have this colour of report.css. @param {any} page @param {string} selector @param {string} variable */
function pixelsOf(page, selector, variable) {
    return page.evaluate(([canvasSelector, name]) => {
        const canvas = /** @type {HTMLCanvasElement} */ (document.querySelector(canvasSelector));
        /* A copy: to read the page's own canvas often would make it a slow one. */
        const copy = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height});
        const context = /** @type {CanvasRenderingContext2D} */ (copy.getContext('2d', {willReadFrequently: true}));
        context.drawImage(canvas, 0, 0);
        const wanted = parseInt(getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1), 16);
        const {data} = context.getImageData(0, 0, canvas.width, canvas.height);
        let count = 0;
        for (let k = 0; k < data.length; k += 4) count += (data[k] << 16 | data[k + 1] << 8 | data[k + 2]) === wanted ? 1 : 0;
        return count;
    }, [selector, variable]);
}

/** The window of time, in ns. @param {any} page */
async function windowOf(page) {
    await nextFrame(page);
    const [from, to] = (await page.locator('canvas.timeline-canvas').getAttribute('data-window')).split(' ').map(Number);
    return {from, to};
}

/** A place of the timeline's plot, by shares of its width and height. @param {any} page @param {number} x @param {number} y */
async function placeIn(page, x, y) {
    const canvas = page.locator('canvas.timeline-canvas');
    await canvas.scrollIntoViewIfNeeded();
    const box = await canvas.boundingBox();
    return {x: box.x + 190 + (box.width - 200) * x, y: box.y + box.height * y};
}

test('a report opens, and every part of it is there', () => onSample('small', async (page) => {
    checkEqual(await page.title(), 'Training step of a 7B model on 8 ranks');
    const ids = await page.$$eval('main > section', (/** @type {Element[]} */ list) => list.map((part) => part.id));
    checkEqual([...ids].sort(), [...PANELS].sort(), 'parts');
    checkEqual(await page.$$eval('#nav a', (/** @type {Element[]} */ list) => list.length), PANELS.length, 'links to parts');
    for (const id of PANELS) {
        const box = await page.locator(`#${id}`).boundingBox();
        check(box.height > 60, `the part ${id} is ${box.height} pixels high`);
    }
}));

test('the timeline and its map are painted, in the colours of the kinds', () => onSample('small', async (page) => {
    for (const kind of ['compute', 'collective', 'send', 'memory', 'phase', 'host']) {
        check(await pixelsOf(page, 'canvas.timeline-canvas', `--kind-${kind}`) > 50, `no ${kind} in the timeline`);
    }
    for (const kind of ['compute', 'collective']) check(await pixelsOf(page, 'canvas.minimap', `--kind-${kind}`) > 50, `no ${kind} in the map`);
}));

test('drawings hold lines, bars have widths, and figures have units', () => onSample('small', async (page) => {
    check(await page.locator('#memory svg path.line').count() === 4, 'four series of memory');
    check(await page.locator('#memory svg .capacity').count() === 1, 'the line of the capacity');
    checkEqual(await page.locator('#topology svg.net path').count(), 24, 'links');
    checkEqual(await page.locator('#topology .dimension').count(), 3, 'dimensions');
    const widths = await page.$$eval('#breakdown .groups .bar', (/** @type {Element[]} */ bars) => bars.slice(0, 1).map((bar) =>
        [...bar.children].reduce((sum, piece) => sum + piece.getBoundingClientRect().width, 0) / bar.getBoundingClientRect().width));
    checkNear(widths[0], 1, 0.01, 'pieces of a bar fill it');
    const text = await page.locator('main').innerText();
    check(!/\b(NaN|undefined|null|Infinity|\[object)\b/.test(text), 'a value was not made a text');
    check(/15\.8\s*ms/.test(text) && /152\s*GB\/s/.test(text) && /32\s*MiB/.test(text), 'units');
}));

test('the wheel zooms at the mouse', () => onSample('small', async (page) => {
    const at = await placeIn(page, 0.25, 0.5);
    await page.mouse.move(at.x, at.y);
    await page.waitForTimeout(300);
    await page.mouse.wheel(0, -350);
    await page.waitForFunction(() => !document.querySelector('canvas.timeline-canvas')?.getAttribute('data-window')?.startsWith('0 '));
    const {from, to} = await windowOf(page);
    /* exp(-350 * 0.002) of the whole run of 15.8 ms is left, and a quarter of that before the mouse. */
    const whole = 15.8e6;
    checkNear((to - from) / whole, Math.exp(-0.7), 0.01, 'width');
    checkNear((from + (to - from) * 0.25) / whole, 0.25, 0.01, 'time under the mouse');
}));

test('the keys W, S, A, D, +, -, 0 and the arrows move the window', () => onSample('small', async (page) => {
    await page.locator('canvas.timeline-canvas').focus();
    await page.keyboard.press('w');
    await page.keyboard.press('+');
    const zoomed = await windowOf(page);
    checkNear((zoomed.to - zoomed.from) / 15.8e6, 0.75 * 0.75, 0.01, 'two steps closer');
    await page.keyboard.press('d');
    const right = await windowOf(page);
    check(right.from > zoomed.from, 'D moves to later times');
    await page.keyboard.press('a');
    await page.keyboard.press('ArrowLeft');
    const left = await windowOf(page);
    check(left.from < zoomed.from, 'A and the left arrow move to earlier times');
    await page.keyboard.press('s');
    const wider = await windowOf(page);
    checkNear((wider.to - wider.from) / 15.8e6, 0.75, 0.01, 'a step back');
    await page.keyboard.press('0');
    const all = await windowOf(page);
    checkNear(all.to - all.from, 15.8e6, 0.1e6, '0 shows all');
}));

test('a drag moves, a drag on the ruler measures', () => onSample('small', async (page) => {
    await page.locator('canvas.timeline-canvas').focus();
    for (let k = 0; k < 4; k++) await page.keyboard.press('w');
    const before = await windowOf(page);
    const at = await placeIn(page, 0.5, 0.5);
    await page.mouse.move(at.x, at.y);
    await page.mouse.down();
    await page.mouse.move(at.x - 150, at.y, {steps: 5});
    await page.mouse.up();
    const after = await windowOf(page);
    const perPixel = (before.to - before.from) / ((await page.locator('canvas.timeline-canvas').boundingBox()).width - 200);
    checkNear(after.from - before.from, 150 * perPixel, 2 * perPixel, 'moved by');
    const ruler = await placeIn(page, 0.3, 0);
    await page.mouse.move(ruler.x, ruler.y + 10);
    await page.mouse.down();
    await page.mouse.move(ruler.x + 200, ruler.y + 10, {steps: 5});
    await page.mouse.up();
    check(/^Measured:/.test(await page.locator('.detail-name').innerText()), 'the measured time is said');
    check(/compute/.test(await page.locator('.timeline-detail').innerText()), 'and what was in it');
    await page.keyboard.press('Escape');
    checkEqual(await page.locator('.detail-name').count(), 0, 'Escape clears it');
}));

test('a search counts, steps forth and back, and dims the rest', () => onSample('small', async (page) => {
    const before = await pixelsOf(page, 'canvas.timeline-canvas', '--kind-compute');
    await page.keyboard.press('/');
    await page.keyboard.type('ALL-red');
    await nextFrame(page);
    /* 8 ranks, 16 passes, every second of 6 layers. */
    checkEqual((await page.locator('.found').innerText()).replace('\u00a0', ' '), '384 spans');
    check(await pixelsOf(page, 'canvas.timeline-canvas', '--kind-compute') < before / 4, 'compute is dimmed');
    check(await pixelsOf(page, 'canvas.timeline-canvas', '--kind-collective') > 50, 'what was found is not');
    await page.keyboard.press('Enter');
    checkEqual(await page.locator('.found').innerText(), '1 of 384');
    checkEqual(await page.locator('.detail-name').innerText(), 'all-reduce');
    await page.keyboard.press('Enter');
    checkEqual(await page.locator('.found').innerText(), '2 of 384');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.press('Shift+Enter');
    checkEqual(await page.locator('.found').innerText(), '384 of 384', 'around the start');
    await page.keyboard.press('Escape');
    checkEqual(await page.locator('.found').innerText(), '');
    await page.keyboard.press('/');
    await page.keyboard.type('no such thing');
    checkEqual(await page.locator('.found').innerText(), 'no span has this name');
}));

test('a span tells its details, and leads to the one it waited for', () => onSample('small', async (page) => {
    await page.keyboard.press('/');
    await page.keyboard.type('all-reduce');
    await page.keyboard.press('Enter');
    const detail = await page.locator('.timeline-detail').innerText();
    check(/rank 0, network/.test(detail) && /32\s*MiB/.test(detail) && /tp 0/.test(detail) && /waited for/.test(detail), detail);
    await page.locator('.neighbours button').first().click();
    checkEqual(await page.locator('.detail-name').innerText(), 'layer1.mlp');
    check(/let go on/.test(await page.locator('.timeline-detail').innerText()), 'and back');
    await page.locator('canvas.timeline-canvas').focus();
    await page.keyboard.press(']');
    checkEqual(await page.locator('.detail-name').innerText(), 'layer2.attention', 'the span after it');
}));

test('a click selects the span under the mouse; a click on a rank closes it', () => onSample('small', async (page) => {
    await page.locator('canvas.timeline-canvas').focus();
    const at = await placeIn(page, 0.93, 0);
    /* The reduce-scatter of rank 0 lies at 0.91 to 0.975 of the run, on its third row. */
    await page.mouse.click(at.x, at.y + 26 + 91);
    checkEqual(await page.locator('.detail-name').innerText(), 'reduce-scatter gradients');
    const box = await page.locator('canvas.timeline-canvas').boundingBox();
    const before = await pixelsOf(page, 'canvas.timeline-canvas', '--kind-phase');
    await page.mouse.click(box.x + 30, box.y + 26 + 50);
    await nextFrame(page);
    check(await pixelsOf(page, 'canvas.timeline-canvas', '--kind-phase') !== before, 'the rows have moved');
    await page.locator('button', {hasText: 'Fold'}).click();
    await nextFrame(page);
}));

test('the mouse over a span shows what it is', () => onSample('small', async (page) => {
    const at = await placeIn(page, 0.93, 0);
    await page.mouse.move(at.x, at.y + 26 + 91);
    await page.waitForSelector('.tip:not([hidden])');
    check(/reduce-scatter gradients/.test(await page.locator('.tip').innerText()), 'name');
}));

test('a step of the critical path leads to its span in the timeline', () => onSample('small', async (page) => {
    await page.locator('#critical button.link').nth(3).click();
    checkEqual(await page.locator('.detail-name').innerText(), 'layer3.mlp');
    await page.waitForFunction(() => /span=\d+/.test(location.hash), null, {timeout: 20000});
    await page.locator('#show-path').check();
    await nextFrame(page);
}));

test('operators are summed, and lead to their spans', () => onSample('small', async (page) => {
    checkEqual(await page.locator('#operators tbody tr').count(), 10);
    await page.locator('#fold-names').check();
    /* 8 ranks, 8 passes back, 6 layers each. */
    const row = page.locator('#operators tbody tr', {hasText: 'layer*.backward'});
    await row.waitFor();
    check(/compute\s+384/.test((await row.innerText()).replaceAll('\u00a0', ' ')), 'layers are one');
    await page.locator('#fold-names').uncheck();
    await row.waitFor({state: 'detached'});
    await page.locator('#operators th button', {hasText: 'Count'}).click();
    /* 8 ranks, 16 passes, every second of 6 layers. */
    check(/all-reduce\s+collective\s+384/.test((await page.locator('#operators tbody tr').first().innerText()).replaceAll('\u00a0', ' ')), 'the most frequent');
    await page.locator('#operators tbody button').first().click();
    checkEqual(await page.locator('.found').innerText(), '1 of 384');
    await page.locator('canvas.timeline-canvas').focus();
    const before = await pixelsOf(page, 'canvas.timeline-canvas', '--kind-collective');
    await page.keyboard.press('e');
    await nextFrame(page);
    check(await pixelsOf(page, 'canvas.timeline-canvas', '--kind-collective') !== before, 'E closes the rank of the span');
}));

test('an address brings the view back', async () => {
    const {page, complaints, close} = await openPage(browser, `${samplePage('small')}#timeline&from=2000000&to=4000000&span=3`);
    await timelineDone(page);
    check((await page.locator('.detail-name').innerText()).length > 0, 'the span is selected');
    const {from, to} = await windowOf(page);
    checkEqual([from, to], [2000000, 4000000]);
    checkEqual(complaints, []);
    await close();
});

test('tables sort by a heading, and say so', () => onSample('small', async (page) => {
    const column = async () => page.$$eval('#collectives tbody tr td:nth-child(5)', (/** @type {HTMLElement[]} */ list) => list.map((cell) => cell.innerText.replace('\u00a0', ' ')));
    await page.locator('#collectives th button', {hasText: 'Size'}).click();
    checkEqual(await column(), ['1 GiB', '512 MiB', '32 MiB']);
    checkEqual(await page.locator('#collectives th[aria-sort]').getAttribute('aria-sort'), 'descending');
    await page.locator('#collectives th button', {hasText: 'Size'}).press('Enter');
    checkEqual(await column(), ['32 MiB', '512 MiB', '1 GiB']);
    /* What is not known comes last, both ways. */
    await page.locator('#collectives th button', {hasText: 'Exposed'}).click();
    const exposed = await page.$$eval('#collectives tbody tr td:nth-child(10)', (/** @type {HTMLElement[]} */ list) => list.map((cell) => cell.innerText));
    checkEqual(exposed[2], '\u2013');
}));

test('? opens the help and Escape closes it; J and K go from part to part', () => onSample('small', async (page) => {
    await page.keyboard.press('?');
    check(await page.locator('dialog#help').evaluate((/** @type {HTMLDialogElement} */ dialog) => dialog.open), 'open');
    await page.keyboard.press('Escape');
    check(!await page.locator('dialog#help').evaluate((/** @type {HTMLDialogElement} */ dialog) => dialog.open), 'closed');
    await page.keyboard.press('j');
    await page.waitForFunction(() => window.scrollY > 100);
    await page.keyboard.press('k');
    await page.waitForFunction(() => window.scrollY < 100);
}));

test('both colour schemes are drawn, by the system and by the button', async () => {
    /** @type {string[]} */
    const grounds = [];
    for (const colorScheme of ['light', 'dark']) {
        await onSample('small', async (page) => {
            grounds.push(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
            check(await pixelsOf(page, 'canvas.timeline-canvas', '--paper') > 10000, `the canvas is ${colorScheme}`);
            check(await pixelsOf(page, 'canvas.timeline-canvas', '--kind-compute') > 50, 'in its colours');
        }, {colorScheme});
    }
    check(grounds[0] !== grounds[1], 'the grounds differ');
    await onSample('small', async (page) => {
        await page.keyboard.press('t');
        await page.keyboard.press('t');
        checkEqual(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
        checkEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), grounds[1]);
        await nextFrame(page);
        check(await pixelsOf(page, 'canvas.timeline-canvas', '--paper') > 10000, 'the canvas follows');
    });
});

test('text is legible: contrast of 4.5 and more, in both schemes', async () => {
    for (const colorScheme of ['light', 'dark']) {
        await onSample('small', async (page) => {
            const worst = await page.evaluate(() => {
                /** @param {string} name */
                const luminance = (name) => {
                    const value = parseInt(getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1), 16);
                    const [red, green, blue] = [value >> 16, value >> 8 & 255, value & 255].map((part) => (part <= 10 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4));
                    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
                };
                const pairs = ['--text', '--text-faint', '--accent', '--better', '--worse'].flatMap((text) => ['--paper', '--ground'].map((paper) => [text, paper]));
                const list = pairs.map(([text, paper]) => {
                    const [a, b] = [luminance(text), luminance(paper)].sort((one, other) => other - one);
                    return {text, paper, contrast: (a + 0.05) / (b + 0.05)};
                });
                return list.sort((a, b) => a.contrast - b.contrast)[0];
            });
            check(worst.contrast >= 4.5, `${colorScheme}: ${worst.text} on ${worst.paper} has ${worst.contrast.toFixed(2)}`);
        }, {colorScheme});
    }
});

test('everything that can be pressed has a name, and the timeline takes the focus', () => onSample('small', async (page) => {
    const nameless = await page.$$eval('button, a, input, canvas, [role=img]', (/** @type {HTMLElement[]} */ list) => list.filter((one) =>
        !(one.textContent?.trim() || one.getAttribute('aria-label') || one.title || one.closest('label'))).map((one) => one.outerHTML.slice(0, 100)));
    checkEqual(nameless, [], 'without a name');
    await page.locator('canvas.timeline-canvas').focus();
    checkEqual(await page.evaluate(() => document.activeElement?.className), 'timeline-canvas');
    checkEqual(await page.$$eval('h1', (/** @type {Element[]} */ list) => list.length), 1, 'one main heading');
}));

test('nothing sticks out of a window of 800 pixels', () => onSample('small', async (page) => {
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    check(wide <= 800, `the page is ${wide} pixels wide`);
}, {viewport: {width: 800, height: 700}}));

test('names with markup stay text, wherever they stand', () => onSample('hostile', async (page) => {
    checkEqual(await page.evaluate(() => document.body.dataset.hacked ?? null), null, 'a script of a name ran');
    checkEqual(await page.locator('img').count(), 0, 'an element came of a name');
    check((await page.title()).includes('<img'), 'the title is the text');
    for (const id of ['stall', 'headline', 'breakdown', 'collectives', 'topology', 'memory', 'pipeline', 'inputs', 'comparison', 'critical']) {
        check((await page.locator(`#${id}`).evaluate((/** @type {Element} */ part) => part.textContent)).includes(HOSTILE), `${id} shows it as it is`);
    }
    const at = await placeIn(page, 0.93, 0);
    await page.mouse.move(at.x, at.y + 26 + 91);
    await page.waitForSelector('.tip:not([hidden])');
    check((await page.locator('.tip').innerText()).includes(HOSTILE), 'the tip shows it');
    await page.mouse.click(at.x, at.y + 26 + 91);
    check((await page.locator('.detail-name').innerText()).includes(HOSTILE), 'the details show it');
    await page.locator('button', {hasText: 'Find all'}).click();
    check(/of/.test(await page.locator('.found').innerText()), 'it can be searched');
    checkEqual(await page.evaluate(() => document.body.dataset.hacked ?? null), null);
}));

test('flows on a packet network have parts of their own, and nothing is missing', () => onSample('flows', async (page) => {
    const ids = await page.$$eval('main > section', (/** @type {Element[]} */ list) => list.map((part) => part.id));
    checkEqual(ids, ['headline', 'links', 'queues', 'pauses', 'flows', 'topology', 'inputs'], 'parts');
    checkEqual(await page.locator('.panel.missing').count(), 0);
    const text = await page.locator('main').innerText();
    check(!/\b(NaN|undefined|null|Infinity|\[object)\b/.test(text), 'a value was not made a text');
    check(/mean of 37 others/.test(text) && /505\.9\s*KiB/.test(text) && /12\.5\s*GB\/s/.test(text) && /9\.00\s*×/.test(text), 'units');
    checkEqual(await page.locator('#queues svg.chart path.line').count(), 2, 'queues');
    checkEqual(await page.locator('#flows .flow-charts svg.chart').count(), 2, 'two drawings of flows');
    checkEqual(await page.locator('#pauses svg').count(), 2, 'pauses in all and by port');
}));

test('the heat map says what is under the mouse, and what the keys choose', () => onSample('flows', async (page) => {
    const map = page.locator('#links svg.heatmap');
    await map.scrollIntoViewIfNeeded();
    const box = await map.boundingBox();
    const scale = box.width / 960;
    /* Names end at 178 of 960, figures begin 58 before the end; the second row begins at 18 + 15: column 5 is from 50 to 60 us. */
    await page.mouse.move(box.x + scale * (178 + 724 * 55 / 105), box.y + scale * (18 + 15 + 6));
    await page.waitForSelector('#links .tip:not([hidden])');
    const words = (await page.locator('#links .tip').innerText()).replaceAll('\u00a0', ' ');
    checkEqual(words, '0.1 -> switch3, 50 µs to 60 µs: in use 50.0 %');
    await map.focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowUp');
    checkEqual((await page.locator('#links .readout').innerText()).replaceAll('\u00a0', ' '), 'switch3.3 -> 2, 60 µs to 70 µs: in use 100 %');
    await page.keyboard.press('Shift+ArrowRight');
    checkEqual((await page.locator('#links .readout').innerText()).replaceAll('\u00a0', ' '), 'switch3.3 -> 2, 100 µs to 105 µs: in use 0 %');
    await page.mouse.move(5, 5);
    checkEqual(await page.locator('#links .tip:not([hidden])').count(), 0, 'the tip goes away');
}));

test('lines of queues are read at a time', () => onSample('flows', async (page) => {
    const chart = page.locator('#queues svg.chart');
    await chart.focus();
    for (let k = 0; k < 4; k++) await page.keyboard.press('ArrowRight');
    checkEqual((await page.locator('#queues .readout').innerText()).replaceAll('\u00a0', ' '), '40 µs to 50 µs: switch3.3 -> 2 202.3 KiB, switch3.1 -> 0 48 B');
}));

test('heat maps follow the colours of the page', async () => {
    const colours = [];
    for (const colorScheme of ['light', 'dark']) {
        await onSample('flows', async (page) => {
            colours.push(await page.$eval('#links svg.heatmap path:last-of-type', (/** @type {Element} */ path) => getComputedStyle(path).fill));
        }, {colorScheme});
    }
    check(colours[0] !== colours[1] && colours[0] !== '', `they are ${colours.join(' and ')}`);
});

test('flows fit into 800 pixels', () => onSample('flows', async (page) => {
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    check(wide <= 800, `the page is ${wide} pixels wide`);
}, {viewport: {width: 800, height: 700}}));

test('names of links and flows with markup stay text', () => onSample('hostile_flows', async (page) => {
    checkEqual(await page.evaluate(() => document.body.dataset.hacked ?? null), null, 'a script of a name ran');
    checkEqual(await page.locator('img').count(), 0, 'an element came of a name');
    for (const id of ['headline', 'links', 'queues', 'pauses', 'topology', 'inputs']) {
        check((await page.locator(`#${id}`).evaluate((/** @type {Element} */ part) => part.textContent)).includes(HOSTILE), `${id} shows it as it is`);
    }
}));

test('where time was not recorded the figures are there, and the reason', () => onSample('flows_without_time', async (page) => {
    checkEqual(await page.locator('svg.heatmap').count(), 0);
    for (const id of ['links', 'queues', 'pauses']) check(/was not recorded/.test(await page.locator(`#${id}`).innerText()), `${id} gives a reason`);
    check(/78\.0\s*%/.test(await page.locator('#links').innerText()), 'use of the whole run');
}));

for (const name of ['nothing', 'bare']) {
    test(`a report that knows ${name === 'bare' ? 'only a name' : 'nothing'} explains what is missing`, () => onSample(name, async (page) => {
        const missing = await page.$$eval('.panel.missing', (/** @type {HTMLElement[]} */ list) => list.map((part) => part.id));
        checkEqual(missing.sort(), ['breakdown', 'collectives', 'critical', 'memory', 'pipeline', 'timeline', 'topology', 'whatif']);
        for (const id of missing) check((await page.locator(`#${id} p`).innerText()).length > 20, `${id} gives a reason`);
        const text = await page.locator('body').innerText();
        check(!/\b(NaN|undefined|null|Infinity|\[object)\b/.test(text), 'a missing value was shown as one');
    }));
}

test('runs are compared with the first, and each can be looked at', () => onSample('compare', async (page) => {
    const text = await page.locator('#comparison').innerText();
    check(/baseline, measured/.test(text) && /model error/.test(text), 'figures side by side');
    checkEqual(await page.locator('.tabs button').count(), 3);
    await page.locator('.tabs button').nth(2).click();
    check(/twice the network/.test(await page.locator('#inputs').innerText()), 'the parts are of the third run');
    await page.waitForFunction(() => document.documentElement.dataset.timeline === 'complete');
    await nextFrame(page);
    check(await pixelsOf(page, '#timeline canvas.timeline-canvas', '--kind-compute') > 50, 'and so is its timeline');
    await page.waitForFunction(() => /run=3/.test(location.hash), null, {timeout: 20000});
}));

test('a stall stands first', () => onSample('stall', async (page) => {
    checkEqual(await page.$eval('main > section', (/** @type {Element} */ part) => part.id), 'stall');
    check(/waits for rank 0 to join/.test(await page.locator('#stall').innerText()), 'who waits for whom');
}));

test('damaged events are told, and the rest of the report stands', async () => {
    const sample = SAMPLES.small();
    const {page, complaints, close} = await openPage(browser, writePage('damaged', assemble(WEB, {...sample, events: [{id: 'events-0', base64: sample.events[0].base64.slice(0, 2000)}]})));
    await page.waitForSelector('.problem');
    check(/cannot be drawn/.test(await page.locator('.problem').innerText()), 'words');
    checkEqual(await page.locator('main > section').count(), PANELS.length - 1, 'all but the operators');
    checkEqual(complaints, []);
    await close();
    const other = await openPage(browser, writePage('later', assemble(WEB, {...sample, doc: {...sample.doc, format: 2}})));
    check(/format/.test(await other.page.locator('.problem').innerText()), 'a format of later days is refused');
    await other.close();
});

test('the report prints: light colours, timeline included', () => onSample('small', async (page) => {
    const path = join(scratch(), 'report.pdf');
    await page.pdf({path, format: 'A4', printBackground: true});
    const bytes = readFileSync(path);
    checkEqual(bytes.subarray(0, 5).toString(), '%PDF-');
    check(bytes.length > 40000, `a PDF of ${bytes.length} bytes`);
    check(bytes.toString('latin1').includes('/Subtype /Image'), 'the timeline is an image in it');
    check(await pixelsOf(page, 'canvas.timeline-canvas', '--paper') > 10000, 'afterwards the page is as it was');
}, {colorScheme: 'dark'}));

test('a million spans can be handled within the time a test has', async () => {
    const address = samplePage('million');
    const start = Date.now();
    const {page, complaints, close} = await openPage(browser, address);
    await page.waitForFunction(() => document.documentElement.dataset.timeline !== undefined, null, {timeout: 30000});
    await page.locator('canvas.timeline-canvas').focus();
    await page.keyboard.press('w');
    await nextFrame(page);
    const interactive = Date.now() - start;
    await timelineDone(page);
    say(`a million spans: interactive after ${interactive} ms, all levels after ${Date.now() - start} ms`);
    check(interactive < 30000, 'not within 30 s');
    check(await pixelsOf(page, 'canvas.timeline-canvas', '--kind-compute') > 1000, 'painted');
    check(await page.locator('canvas.matrix').count() === 1, 'many links are a matrix');
    await page.keyboard.press('/');
    await page.keyboard.type('op_17_');
    await page.keyboard.press('Enter');
    checkEqual(await page.locator('.detail-name').innerText(), 'op_17_kernel');
    checkEqual(complaints, []);
    await close();
});

await runAll(() => browser.close());
