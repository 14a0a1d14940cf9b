// SPDX-License-Identifier: Apache-2.0
// types.js - types of the document embedded in a report; docs/format/report.md describes it.
//
// Every figure may be missing (null or no key): then it is unknown, and the page says so instead of drawing a zero.
// Times are nanoseconds, sizes bytes, rates bytes per second, shares 0 to 1.

/** @typedef {number | null | undefined} Maybe */

/**
 * @typedef {object} Headline
 * @property {Maybe} [time_ns]
 * @property {Maybe} [ranks]
 * @property {Maybe} [ranks_simulated]  fewer than there are: those that do the same were simulated once
 * @property {Maybe} [tokens_per_s]
 * @property {Maybe} [requests]         that were served
 * @property {Maybe} [first_token_ns]   from when a request came to its first token, mean
 * @property {Maybe} [first_token_max_ns]
 * @property {Maybe} [next_token_ns]    from a token of a request to its next, mean
 * @property {Maybe} [time_low_ns]      90 % of such runs take so long
 * @property {Maybe} [time_high_ns]
 * @property {Maybe} [tokens_per_s_per_device]
 * @property {Maybe} [tflops_per_device]
 * @property {Maybe} [peak_tflops]
 * @property {string | null} [peak_of]
 * @property {Maybe} [mfu]
 * @property {Maybe} [exposed_comm_ns]
 * @property {Maybe} [exposed_comm_share]
 * @property {Maybe} [events]
 * @property {string | null} [sentence]
 */

/**
 * @typedef {object} BreakdownRow
 * @property {string} name
 * @property {string | null} [ranks]
 * @property {Maybe} [count]
 * @property {Maybe} [total_ns]
 * @property {Maybe} [compute_ns]
 * @property {Maybe} [comm_exposed_ns]
 * @property {Maybe} [comm_overlapped_ns]
 * @property {Maybe} [memory_ns]
 * @property {Maybe} [host_ns]
 * @property {Maybe} [waiting_ns]
 * @property {Maybe} [bubble_ns]
 * @property {Maybe} [idle_ns]
 */

/**
 * @typedef {object} TimelineMeta
 * @property {string} script            id of the script element with the events
 * @property {number} tick_ps
 * @property {number} start_ns
 * @property {number} end_ns
 * @property {number} spans
 * @property {Maybe} [left_out]         spans too short to be kept
 * @property {Maybe} [ranks_left_out]   ranks like one that is here
 * @property {string[]} texts
 * @property {string[]} kinds
 * @property {{rank: Maybe, name: string}[]} tracks
 * @property {{rank: Maybe, name: string, unit: string}[]} [counters]
 */

/**
 * @typedef {object} PathStep
 * @property {Maybe} [rank]
 * @property {string} name
 * @property {string} kind
 * @property {number} start_ns
 * @property {number} end_ns
 * @property {string | null} [why]
 * @property {Maybe} [track]
 */

/**
 * @typedef {object} CriticalPath
 * @property {Maybe} [total_ns]
 * @property {{kind: string, ns: number, share: Maybe}[] | null} [by_kind]
 * @property {PathStep[] | null} [steps]
 * @property {Maybe} [steps_left_out]
 */

/**
 * @typedef {object} CollectiveRow
 * @property {string} type
 * @property {string | null} [group]
 * @property {Maybe} [groups]           how many such groups there are
 * @property {Maybe} [group_ranks]
 * @property {Maybe} [count]
 * @property {Maybe} [size_bytes]
 * @property {Maybe} [time_ns]
 * @property {Maybe} [total_ns]
 * @property {Maybe} [algorithm_Bps]
 * @property {Maybe} [bus_Bps]
 * @property {Maybe} [exposed_share]
 */

/**
 * @typedef {object} Dimension
 * @property {string} name
 * @property {Maybe} [size]
 * @property {Maybe} [bandwidth_Bps]
 * @property {Maybe} [latency_ns]
 * @property {Maybe} [utilisation]
 */

/** @typedef {{id: number, kind: string, label?: string | null}} NetNode */

/**
 * @typedef {object} NetLink
 * @property {number} from
 * @property {number} to
 * @property {Maybe} [bandwidth_Bps]
 * @property {Maybe} [bytes]
 * @property {Maybe} [utilisation]
 * @property {Maybe} [busy_ns]
 */

/**
 * @typedef {object} Topology
 * @property {Dimension[] | null} [dimensions]
 * @property {NetNode[] | null} [nodes]
 * @property {NetLink[] | null} [links]
 * @property {Maybe} [links_left_out]
 */

/**
 * @typedef {object} FabricLink          one direction of one link
 * @property {string} name
 * @property {Maybe} [bandwidth_Bps]
 * @property {Maybe} [bytes]
 * @property {Maybe} [busy_ns]
 * @property {Maybe} [utilisation]       of the whole run
 * @property {Maybe} [pauses]
 * @property {Maybe} [paused_ns]
 * @property {Maybe} [paused_share]
 * @property {Maybe} [longest_queue_bytes]
 * @property {number[] | null} [values]  by column of time: what the list is about
 */

/** @typedef {{rows: FabricLink[], left_out?: Maybe, rest?: number[] | null}} FabricLinks */

/**
 * @typedef {object} FlowClass           flows of one class of sizes
 * @property {number} above_bytes
 * @property {Maybe} [up_to_bytes]
 * @property {Maybe} [flows]
 * @property {Maybe} [bytes]
 * @property {number[] | null} [fct_ns]  the shortest, then what 2.5 %, 5 % ... of them took at most
 * @property {Maybe} [fct_p99_ns]
 * @property {Maybe} [slowdown_p50]
 * @property {Maybe} [slowdown_p95]
 * @property {Maybe} [slowdown_p99]
 * @property {Maybe} [slowdown_max]
 */

/**
 * @typedef {object} FabricFigures
 * @property {Maybe} [hosts]
 * @property {Maybe} [switches]
 * @property {Maybe} [links]
 * @property {Maybe} [flows]
 * @property {Maybe} [flows_done]
 * @property {Maybe} [data_packets]
 * @property {Maybe} [data_bytes]
 * @property {Maybe} [retransmitted_bytes]
 * @property {Maybe} [acks]
 * @property {Maybe} [nacks]
 * @property {Maybe} [timeouts]
 * @property {Maybe} [ecn_marked]
 * @property {Maybe} [pauses]
 * @property {Maybe} [paused_ports]
 * @property {Maybe} [dropped]
 * @property {Maybe} [trimmed]
 * @property {Maybe} [lost]
 */

/**
 * @typedef {object} Fabric              of the packet network
 * @property {FabricFigures | null} [figures]
 * @property {Maybe} [end_ns]
 * @property {Maybe} [column_ns]         missing: time was not recorded
 * @property {Maybe} [columns]
 * @property {FabricLinks | null} [links]
 * @property {FabricLinks | null} [queues]
 * @property {FabricLinks | null} [pauses]
 * @property {number[] | null} [paused_ports]
 * @property {{all: FlowClass, by_size?: FlowClass[] | null} | null} [flow_times]
 * @property {string[] | null} [notes]
 */

/** @typedef {{name: string, peak_bytes?: Maybe, t_ns: number[], bytes: number[]}} MemorySeries */

/** @typedef {{capacity_bytes?: Maybe, series?: MemorySeries[] | null}} MemoryUse */

/**
 * @typedef {object} PipelineStage
 * @property {string} name
 * @property {string | null} [ranks]
 * @property {Maybe} [busy_ns]
 * @property {Maybe} [bubble_ns]
 * @property {Maybe} [bubble_share]
 */

/** @typedef {{bubble_share?: Maybe, stages?: PipelineStage[] | null}} Pipeline */

/** @typedef {{change: string, time_ns?: Maybe, gain_share?: Maybe, how?: string | null}} WhatIf */

/** @typedef {{title: string, lines: string[]}} Stall */

/** @typedef {{what: string, path?: string | null, hash?: string | null, bytes?: Maybe}} InputFile */

/**
 * @typedef {object} Run
 * @property {string} name
 * @property {string | null} [kind]     "simulated", "measured" or "flows"
 * @property {Headline | null} [headline]
 * @property {BreakdownRow[] | null} [breakdown]
 * @property {TimelineMeta | null} [timeline]
 * @property {CriticalPath | null} [critical_path]
 * @property {CollectiveRow[] | null} [collectives]
 * @property {Topology | null} [topology]
 * @property {Fabric | null} [fabric]
 * @property {MemoryUse | null} [memory]
 * @property {Pipeline | null} [pipeline]
 * @property {WhatIf[] | null} [what_if]
 * @property {Stall | null} [stall]
 * @property {InputFile[] | null} [inputs]
 * @property {{name: string, value: string}[] | null} [options]
 * @property {string[] | null} [notes]
 */

/** @typedef {{name: string, kind?: string | null, ns: Maybe[]}} ComparisonRow */

/**
 * @typedef {object} ReportDocument
 * @property {number} format
 * @property {string | null} [program]
 * @property {string | null} [title]
 * @property {string | null} [made_from]
 * @property {Run[]} runs
 * @property {{rows: ComparisonRow[]} | null} [comparison]
 */

export {};

/** A cell of a sweep's table. @typedef {number | string | boolean | null} SweepValue */

/** @typedef {{name: string, kind: 'axis' | 'measure' | 'figure'}} SweepColumn */

/** What `orrery sweep report` puts into its page: the object of `orrery sweep export json`.
 *  @typedef {object} SweepDocument
 *  @property {string} title
 *  @property {string} commands
 *  @property {string | null} goal
 *  @property {number} points
 *  @property {number} failed
 *  @property {number} not_computed
 *  @property {SweepColumn[]} columns
 *  @property {{point: number, error?: string, values: SweepValue[]}[]} rows
 */
