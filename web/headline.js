// SPDX-License-Identifier: Apache-2.0
// headline.js - the answer at a glance: run time, efficiency, bottleneck.

import {el} from './dom.js';
import {countText, isKnown, roughText, shareText, sizeText, timeExact, timeText} from './units.js';
/** @import {Headline, Run} from './types.js' */

/** @param {string} label @param {string} value @param {string | null} note @param {string} meaning */
function figure(label, value, note, meaning) {
    return el('div', {class: 'figure', title: meaning},
        el('div', {class: 'figure-label'}, label), el('div', {class: 'figure-value'}, ...withSmallUnit(value)), note && el('div', {class: 'figure-note'}, note));
}

/** The value with its unit in smaller type. @param {string} value */
export function withSmallUnit(value) {
    const cut = value.indexOf('\u00a0');
    return cut < 0 ? [value] : [value.slice(0, cut), el('span', {class: 'unit'}, value.slice(cut))];
}

/** For flows on a packet network, without ranks. @param {Run} run */
function flowFigures(run) {
    const g = run.fabric?.figures;
    const all = run.fabric?.flow_times?.all;
    if (run.kind !== 'flows' || !g) return [];
    const lost = (g.dropped ?? 0) + (g.trimmed ?? 0) + (g.lost ?? 0);
    return [
        figure('Flows', countText(g.flows_done), g.flows_done === g.flows ? 'all of them done' : `done of ${countText(g.flows)}`, 'Flows with all bytes acknowledged'),
        figure('Data', sizeText(g.data_bytes), `${roughText(g.data_packets)} packets`, 'Without headers, including retransmissions'),
        isKnown(all?.slowdown_p99) ? figure('Slowdown', `${all.slowdown_p99.toFixed(2)}\u00a0\u00d7`, `p99; the median is ${all.slowdown_p50?.toFixed(2)}\u00a0\u00d7`, 'Time of a flow over its ideal time, alone on the network') : null,
        figure('Pauses', roughText(g.pauses), `at ${countText(g.paused_ports)} ports`, 'PFC pause frames received'),
        figure('Lost', roughText(lost), `packets; ${sizeText(g.retransmitted_bytes)} retransmitted`, 'Dropped by full buffers, trimmed to headers, or lost on links'),
        figure('Network', countText(g.hosts), `hosts, ${countText(g.switches)} switches, ${countText(g.links)} links`, 'Hosts that can send and receive'),
    ];
}

/** Only figures that are known are shown. @param {Headline} h @param {Run} run */
function figures(h, run) {
    const list = [];
    if (isKnown(h.time_ns)) list.push(figure('Time', timeText(h.time_ns), isKnown(h.time_low_ns) && isKnown(h.time_high_ns) ? `${timeText(h.time_low_ns)} to ${timeText(h.time_high_ns)} (90 %)` : null, `From the first event to the last: ${timeExact(h.time_ns)}`));
    if (isKnown(h.tokens_per_s)) list.push(figure('Throughput', `${roughText(Math.round(h.tokens_per_s))}\u00a0tokens/s`,
        isKnown(h.tokens_per_s_per_device) ? `${roughText(Math.round(h.tokens_per_s_per_device))} per device` : null, 'Tokens per second, over the whole job'));
    if (isKnown(h.first_token_ns)) list.push(figure('First token', timeText(h.first_token_ns), isKnown(h.first_token_max_ns) ? `${timeText(h.first_token_max_ns)} at most; ${countText(h.requests)} requests` : null,
        `TTFT, from the arrival of a request to its first token, mean: ${timeExact(h.first_token_ns)}`));
    if (isKnown(h.next_token_ns)) list.push(figure('Next token', timeText(h.next_token_ns), null, `TPOT, between two tokens of a request, mean: ${timeExact(h.next_token_ns)}`));
    if (isKnown(h.tflops_per_device)) list.push(figure('Arithmetic', `${h.tflops_per_device.toPrecision(4)}\u00a0TFLOP/s`, 'per device', 'FLOPs of the model per second and device'));
    if (isKnown(h.mfu)) list.push(figure('MFU', shareText(h.mfu), isKnown(h.peak_tflops) ? `of ${h.peak_tflops.toPrecision(4)} TFLOP/s${h.peak_of ? `: ${h.peak_of}` : ''}` : 'model FLOPs utilisation', 'FLOPs of the model, as a share of the peak of all ranks'));
    if (isKnown(h.exposed_comm_ns) || isKnown(h.exposed_comm_share)) {
        const share = isKnown(h.exposed_comm_share) ? shareText(h.exposed_comm_share) : null;
        const ns = isKnown(h.exposed_comm_ns) ? timeText(h.exposed_comm_ns) : null;
        list.push(figure('Exposed communication', share ?? ns ?? '', share && ns ? `${ns} of a rank\u2019s time` : null,
            'Time in which a rank communicates and computes nothing'));
    }
    if (isKnown(h.ranks)) {
        const few = isKnown(h.ranks_simulated) ? `${countText(h.ranks_simulated)} simulated` : null;
        list.push(figure('Ranks', countText(h.ranks), few, few ? 'Processes, each with its own accelerator; those that do the same are simulated once'
            : 'Processes, each with its own accelerator'));
    }
    list.push(...flowFigures(run));
    if (isKnown(h.events)) list.push(figure('Events', roughText(h.events), null, `${countText(h.events)} events`));
    return list;
}

/** @param {Run} run */
export function headlinePanel(run) {
    const headline = run.headline ?? {};
    const list = figures(headline, run);
    return el('section', {class: 'panel headline', id: 'headline', 'data-title': 'Summary', 'aria-label': 'Summary'},
        headline.sentence && el('p', {class: 'sentence'}, headline.sentence),
        list.length > 0 ? el('div', {class: 'figures'}, ...list)
            : el('p', {class: 'hint'}, 'There are no figures: the run may not have finished.'));
}
