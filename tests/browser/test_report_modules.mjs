// SPDX-License-Identifier: Apache-2.0
// test_report_modules.mjs - the page's modules without a browser: numbers as text, the events' columns, levels of
// detail, the window of time, search, addresses.  Expected values are worked out by hand.

import {readFileSync} from 'node:fs';
import {spawnSync} from 'node:child_process';
import {join} from 'node:path';
import {joinModules} from './assemble.mjs';
import {packTimeline} from './make_data.mjs';
import {packageOfBuild, ROOT, WEB} from './chromium.mjs';
import {check, checkEqual, checkNear, runAll, test} from './tap.mjs';

const names = 'timeText timeExact timeAt sizeText rateText shareText changeText countText roughText counterText countOf timeTicks niceStep ' +
    'readAddress addressText decodeTimeline firstAtOrAfter buildScene layoutScene rowAt spansBefore buildLevels levelFor busyOverall ' +
    'TimelineView searchFor nextMatch matchNumber spanAt clipped operatorsOf shadeOf heatX heatPaths stepsOf sizeClassName logTicks';
const modules = ['units.js', 'dom.js', 'address.js', 'palette.js', 'columns.js', 'rows.js', 'levels.js', 'view.js', 'raster.js', 'draw_rows.js',
    'draw_timeline.js', 'timeline_input.js', 'search.js', 'panel.js', 'table.js', 'bars.js', 'operators.js', 'heatmap.js', 'step_chart.js', 'flow_times.js'];
const page = await import(`data:text/javascript,${encodeURIComponent(`${joinModules(WEB, modules)}\nexport {${names.split(' ').join(', ')}};`)}`);

/** With plain spaces. @param {string} text */
const plain = (text) => text.replaceAll('\u00a0', ' ').replaceAll('\u2212', '-');

test('times have a unit and few digits', () => {
    const cases = [[0, '0 ns'], [1, '1 ns'], [999, '999 ns'], [1000, '1 µs'], [1234, '1.234 µs'], [12345, '12.35 µs'], [123456, '123.5 µs'],
        [999999, '1 ms'], [15.8e6, '15.8 ms'], [1.5e9, '1.5 s'], [7200e9, '7200 s'], [0.25, '0.25 ns'], [-2500, '-2.5 µs']];
    for (const [ns, text] of cases) checkEqual(plain(page.timeText(ns)), text, String(ns));
    checkEqual(plain(page.timeExact(1234567)), '1,234,567 ns');
});

test('a share has a shade: none for zero, and never none for little', () => {
    checkEqual([0, 0.0001, 0.05, 0.0501, 0.5, 0.951, 1, 1.5].map(page.shadeOf), [0, 1, 1, 2, 10, 20, 20, 20]);
});

test('neighbours of one shade are one rectangle', () => {
    /* From 178 to 902 of 960: 724 for 100 ns, so 181 a column of 25 ns; a row is 13 high, the second one 15 lower. */
    const rows = [{name: 'a', values: [1, 1, 0, 0.5], figure: ''}, {name: 'b', values: [0, 0, 0, 1], figure: ''}];
    const paths = page.heatPaths({what: '', figureTitle: '', rows, column_ns: 25, end_ns: 100, words: () => ''});
    checkEqual(page.heatX(50, 100), 540);
    checkEqual(paths[20], 'M178.0 18H540.0v13H178.0zM721.0 33H902.0v13H721.0z');
    checkEqual(paths[10], 'M721.0 18H902.0v13H721.0z');
    checkEqual(paths.filter((/** @type {string} */ path) => path !== '').length, 2);
});

test('values over time are steps', () => {
    /* 866 wide from 84 on, 190 high from 202 up. */
    const path = page.stepsOf({what: '', series: [], column_ns: 50, end_ns: 100, text: String}, 10, [10, 5]);
    checkEqual(path, 'M84.0 12.0H517.0V107.0H950.0');
    checkEqual(page.stepsOf({what: '', series: [], column_ns: 50, end_ns: 100, text: String}, 10, [5, 5]), 'M84.0 107.0H950.0');
});

test('classes of sizes have names, logarithmic axes round marks', () => {
    checkEqual(plain(page.sizeClassName({above_bytes: 0, up_to_bytes: 4096})), 'up to 4 KiB');
    checkEqual(plain(page.sizeClassName({above_bytes: 4096, up_to_bytes: 65536})), '4 KiB to 64 KiB');
    checkEqual(plain(page.sizeClassName({above_bytes: 16777216, up_to_bytes: null})), 'above 16 MiB');
    checkEqual(plain(page.sizeClassName({above_bytes: 0, up_to_bytes: null})), 'all');
    checkEqual(page.logTicks(1, 56), [1, 2, 5, 10, 20, 50]);
    checkEqual(page.logTicks(900, 2e6), [1000, 10000, 100000, 1000000]);
});

test('what is not known is a dash, never a number', () => {
    for (const show of ['timeText', 'sizeText', 'rateText', 'shareText', 'changeText', 'countText', 'roughText', 'timeExact']) {
        for (const value of [null, undefined, NaN]) checkEqual(page[show](value), '\u2013', show);
    }
});

test('sizes count in powers of 1024, rates in powers of 1000', () => {
    checkEqual(plain(page.sizeText(1023)), '1023 B');
    checkEqual(plain(page.sizeText(1536)), '1.5 KiB');
    checkEqual(plain(page.sizeText(80 * 2 ** 30)), '80 GiB');
    checkEqual(plain(page.rateText(152e9)), '152 GB/s');
    checkEqual(plain(page.rateText(1.5e12)), '1.5 TB/s');
});

test('shares and changes are percentages with a sign where it matters', () => {
    checkEqual(plain(page.shareText(0.214)), '21.4 %');
    checkEqual(plain(page.shareText(0)), '0 %');
    checkEqual(plain(page.shareText(1)), '100 %');
    checkEqual(plain(page.shareText(0.0029)), '0.29 %');
    checkEqual(plain(page.changeText(0.05)), '+5.0 %');
    checkEqual(plain(page.changeText(-0.34)), '-34.0 %');
});

test('counts are grouped; large ones can be rough', () => {
    checkEqual(plain(page.countText(1234567)), '1,234,567');
    checkEqual(plain(page.roughText(2074000)), '2.074 M');
    checkEqual(plain(page.countOf(1, 'rank')), '1 rank');
    checkEqual(plain(page.countOf(8, 'rank')), '8 ranks');
    checkEqual(plain(page.counterText(2048, 'bytes')), '2 KiB');
    checkEqual(plain(page.counterText(7, 'links')), '7 links');
});

test('the labels of an axis are steps of 1, 2 or 5 with enough digits', () => {
    const ticks = page.timeTicks(0, 10e6, 5);
    checkEqual(ticks.map((tick) => plain(tick.text)), ['0', '2 ms', '4 ms', '6 ms', '8 ms', '10 ms']);
    /* 4 ns wide at 2 ms: steps of 1 ns need six digits of a millisecond. */
    checkEqual(page.timeTicks(2e6, 2e6 + 4, 4).map((tick) => plain(tick.text))[1], '2.000001 ms');
    checkEqual(page.niceStep(3), 5);
    checkEqual(plain(page.timeAt(2398123, 1)), '2.398123 ms');
});

test('an address says part, run, time and span, and reads back', () => {
    const address = {part: 'timeline', run: 1, from: 1200, to: 3400.5, span: 17};
    checkEqual(page.addressText(address), '#timeline&run=2&from=1200&to=3400.5&span=17');
    checkEqual(page.readAddress(page.addressText(address)), address);
    checkEqual(page.readAddress('#memory'), {part: 'memory', run: 0, from: null, to: null, span: null});
    checkEqual(page.readAddress('#timeline&from=x&to=&span=-'), {part: 'timeline', run: 0, from: null, to: null, span: null});
});

/*  track 0:  a [0, 100)   b [10, 30) inside a   c [50, 150) across the end of a   track 1:  d [200, 201) */
const tracks = () => [
    {rank: 1, name: 'one', spans: [{start: 0, length: 100, name: 'a', kind: 'compute', id: 7}, {start: 10, length: 20, name: 'b', kind: 'memory', size: 300},
        {start: 50, length: 100, name: 'c', kind: 'collective', group: 'g', peer: 3, isOpen: true}]},
    {rank: 0, name: 'two', spans: [{start: 200, length: 1, name: 'A again', kind: 'send', size: 2 ** 40}]},
];

async function smallTimeline() {
    const list = tracks();
    const counters = [{rank: 0, name: 'memory', unit: 'bytes', samples: [[5, 10], [6, -3], [200, 2 ** 40]]}];
    const arrows = [{from: list[0].spans[0], to: list[1].spans[0]}];
    const {meta, base64} = packTimeline('events-0', list, counters, arrows, {start_ns: 1e6});
    return page.decodeTimeline(meta, base64);
}

test('the columns of the events come back as they were written', async () => {
    const timeline = await smallTimeline();
    checkEqual([...timeline.first], [0, 3, 4]);
    checkEqual([...timeline.start], [0, 10, 50, 200]);
    checkEqual([...timeline.length], [100, 20, 100, 1]);
    checkEqual([...timeline.kind].map((kind) => timeline.meta.kinds[kind]), ['compute', 'memory', 'collective', 'send']);
    checkEqual([...timeline.open], [0, 0, 1, 0]);
    checkEqual([...timeline.size], [0, 300, 0, 2 ** 40]);
    checkEqual([...timeline.id], [8, 0, 0, 0]);
    checkEqual([...timeline.peer], [0, 0, 4, 0]);
    checkEqual(timeline.meta.texts[timeline.group[2]], 'g');
    checkEqual([...timeline.counters[0].value], [10, -3, 2 ** 40]);
    checkEqual([...timeline.counters[0].at], [5, 6, 200]);
    checkEqual([timeline.arrows.from[0], timeline.arrows.to[0], timeline.arrows.left[0], timeline.arrows.arrived[0]], [0, 3, 100, 200]);
    checkEqual(timeline.extent, 201);
});

test('damaged events are refused with words', async () => {
    const {meta, base64} = packTimeline('events-0', tracks(), [], []);
    const {inflateSync, deflateSync} = await import('node:zlib');
    const bytes = inflateSync(Buffer.from(base64, 'base64'));
    for (let cut = 0; cut < bytes.length; cut++) {
        const short = deflateSync(bytes.subarray(0, cut)).toString('base64');
        const said = await page.decodeTimeline(meta, short).then(() => '', (/** @type {Error} */ problem) => problem.message);
        check(said !== '', `cut to ${cut} bytes it was still taken`);
    }
    const wrong = {...meta, tracks: [...meta.tracks, {rank: 2, name: 'one too many'}]};
    const said = await page.decodeTimeline(wrong, base64).then(() => '', (/** @type {Error} */ problem) => problem.message);
    check(/first/.test(said), said);
});

test('spans that overlap lie on different lanes; ranks are in order', async () => {
    const scene = await page.buildScene(await smallTimeline());
    checkEqual(scene.blocks.map((block) => block.label), ['rank 0', 'rank 1']);
    /* a is on lane 0; b and c both overlap a, but not each other, and share lane 1. */
    checkEqual(scene.blocks[1].rows.map((row) => [...row.spans]), [[0], [1, 2]]);
    checkEqual(scene.rows[scene.rowOfSpan[3]].track, 1);
    for (const block of scene.blocks) {
        for (const row of block.rows) check(row.y >= block.y && row.y + row.height <= block.y + block.height, 'a row lies outside its block');
    }
});

test('levels of detail keep the busy time, and round nothing away', async () => {
    const spans = Array.from({length: 3000}, (_, k) => ({start: k * 100, length: k === 1500 ? 1 : 50, name: 'x', kind: k % 2 ? 'compute' : 'send'}));
    const {meta, base64} = packTimeline('events-0', [{rank: 0, name: 't', spans}], [], []);
    const timeline = await page.decodeTimeline(meta, base64);
    const levels = page.buildLevels(timeline, Uint32Array.from({length: 3000}, (_, k) => k));
    checkEqual(levels.kinds.map((kind) => meta.kinds[kind]), ['compute', 'send']);
    checkEqual(levels.share[0][0].length, 4096);
    /* Compute is 50 of every 200 ticks: a quarter, at every level. */
    for (const level of levels.share) {
        const mean = level[0].reduce((a, b) => a + b, 0) / level[0].length / 255;
        checkNear(mean, 0.25, 0.02, 'mean share');
    }
    /* The span of a single tick is in a bin of its own neighbourhood, and is not lost. */
    const bin = Math.floor(150000 / levels.bin);
    check(levels.share[0][1][bin] > 0, 'a short span has vanished');
    checkEqual(page.levelFor(levels, levels.bin), 0);
    checkEqual(page.levelFor(levels, levels.bin * 4.1), 2);
});

test('the map sums the top lanes as a share of the tracks', async () => {
    const timeline = await smallTimeline();
    const scene = await page.buildScene(timeline);
    const work = page.busyOverall(timeline, scene.rows, 3);
    let step = work.next();
    while (!step.done) step = work.next();
    /* Bins of 67 ticks; compute is busy in [0, 100) of one of two tracks: 67/67/2 and 33/67/2. */
    const compute = step.value[timeline.meta.kinds.indexOf('compute')];
    checkNear(compute[0], 0.5, 1e-6);
    checkNear(compute[1], 33 / 67 / 2, 1e-6);
    checkNear(compute[2], 0, 1e-6);
});

async function smallView() {
    const timeline = await smallTimeline();
    const view = new page.TimelineView(timeline, await page.buildScene(timeline), () => {});
    view.resize(190 + 1000, 26 + 300);
    return view;
}

test('a zoom keeps the time under the mouse, and stays inside the run', async () => {
    const view = await smallView();
    const before = view.tickAt(250);
    view.zoom(250, 0.5);
    checkNear(view.tickAt(250), before, 1e-9);
    checkNear(view.to - view.from, 100.5, 1e-9);
    for (let k = 0; k < 40; k++) view.zoom(250, 0.5);
    checkNear(view.to - view.from, 4, 1e-9);
    for (let k = 0; k < 40; k++) view.zoom(250, 2);
    checkEqual([view.from, view.to], [0, 201]);
    view.zoom(500, 0.5);
    view.pan(1e9);
    checkEqual(view.to, 201);
    view.pan(-1e9);
    checkEqual(view.from, 0);
});

test('a search counts its matches and goes round in order of time', async () => {
    const timeline = await smallTimeline();
    const search = page.searchFor(timeline, 'A');
    checkEqual(search.count, 2);
    checkEqual(page.nextMatch(timeline, search, -1, 1), 0);
    checkEqual(page.nextMatch(timeline, search, 0, 1), 3);
    checkEqual(page.nextMatch(timeline, search, 3, 1), 0);
    checkEqual(page.nextMatch(timeline, search, 0, -1), 3);
    checkEqual(page.matchNumber(timeline, search, 3), 2);
    checkEqual(page.searchFor(timeline, '  '), null);
    checkEqual(page.searchFor(timeline, 'a*n').count, 1, 'a star stands for anything');
    checkEqual(page.searchFor(timeline, '.').count, 0, 'other signs stand for themselves');
    checkEqual(page.nextMatch(timeline, page.searchFor(timeline, 'nowhere'), -1, 1), -1);
});

test('the span under the mouse is found, narrow ones with some slack', async () => {
    const view = await smallView();
    const row = view.scene.rows[view.scene.rowOfSpan[0]];
    checkEqual(page.spanAt(view, view.xOf(5), row.y + 2), 0);
    checkEqual(page.spanAt(view, view.xOf(120), row.y + 2), -1);
    const below = view.scene.rows[view.scene.rowOfSpan[2]];
    checkEqual(page.spanAt(view, view.xOf(120), below.y + 2), 2);
    const narrow = view.scene.rows[view.scene.rowOfSpan[3]];
    checkEqual(page.spanAt(view, view.xOf(200) - 1.5, narrow.y + 2), 3);
});

test('an operator has its own time without what is inside it', async () => {
    const timeline = await smallTimeline();
    const work = page.operatorsOf(timeline, false);
    let step = work.next();
    while (!step.done) step = work.next();
    /* b lies inside a, which keeps 100 - 20; c crosses the end of a and takes nothing from it. */
    checkEqual(step.value.map((one) => [one.name, one.count, one.own, one.total]), [['c', 1, 100, 100], ['a', 1, 80, 100], ['b', 1, 20, 20], ['A again', 1, 1, 1]]);
});

test('a step of the critical path finds its span', async () => {
    const view = await smallView();
    const step = {rank: 0, name: 'A again', kind: 'send', start_ns: 1e6 + 200, end_ns: 1e6 + 201, track: 1};
    checkEqual(view.spanOfStep(step), 3);
    checkEqual(view.spanOfStep({...step, name: 'other'}), -1);
    checkEqual(view.spanOfStep({...step, track: null}), -1);
});

test('every import and export stands on one line, and no module can end the script', () => {
    const list = readFileSync(join(WEB, 'meson.build'), 'utf8').match(/'[a-z_]+\.js'/g) ?? [];
    check(list.length > 10, 'web/meson.build lists no modules');
    for (const name of list.map((quoted) => quoted.slice(1, -1))) {
        const text = readFileSync(join(WEB, name), 'utf8');
        check(!/<\/script|<!--/i.test(text), `${name} holds "</script" or "<!--"`);
        for (const line of text.split('\n')) {
            if (/^\s*import\b(?!\()/.test(line)) check(/^import \{[^}]*\} from '\.\/[a-z_]+\.js';$/.test(line), `${name}: ${line}`);
            if (!/^\s*(\/\/|\/?\*)/.test(line)) check((line.match(/`/g) ?? []).length % 2 === 0, `${name}: a text over the end of a line: ${line}`);
            if (/^\s*export\b/.test(line)) check(/^export (async function|function\*?|const|class) ?\w+/.test(line), `${name}: ${line}`);
        }
        check(!/innerHTML|outerHTML|insertAdjacentHTML|document\.write/.test(text), `${name} makes markup from text`);
    }
});

if (packageOfBuild('typescript')) {
    test('the types in the comments hold (tsc --checkJs --strict)', () => {
        const tsc = join(process.env.ORR_BUILD ?? join(ROOT, 'build'), 'browser', 'node_modules', 'typescript', 'bin', 'tsc');
        const run = spawnSync(process.execPath, [tsc, '-p', join(ROOT, 'tests', 'browser', 'tsconfig.json')], {encoding: 'utf8', timeout: 90000});
        checkEqual(run.status, 0, run.stdout.slice(0, 2000) || String(run.error));
    });
} else {
    test('the types in the comments hold # skip typescript is not installed (tests/browser/install.sh)', () => {});
}

await runAll();
