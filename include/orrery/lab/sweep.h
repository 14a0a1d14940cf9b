/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h - many runs of commands, their results in one SQLite file.
 *
 *     orr_sweep *s;
 *     orr_sweep_summary sum;
 *     if (orr_sweep_open("grid.yaml", &hooks, &s, &err)) ...
 *     orr_sweep_options o = {.size = sizeof o, .database = "grid.db", .jobs = 2};
 *     if (orr_sweep_run(s, &o, &sum, &err)) ...           // ORR_ESTOP: interrupted, nothing is lost
 *     orr_sweep_close(s);
 *
 *     orr_sweep_table *t;
 *     orr_sweep_query q = {.size = sizeof q, .sort = "throughput.step_ns", .limit = 10};
 *     if (orr_sweep_table_open("grid.db", &q, &t, &err)) ...
 *     if (orr_sweep_table_write(t, ORR_SWEEP_CSV, "grid.csv", &err)) ...
 *     orr_sweep_table_close(t);
 *
 * docs/format/sweep.md describes the specification and the database.  The caller supplies the
 * commands, their options and how to run them as hooks.  Points run in forked processes: a crash
 * costs one point.  The caller must be single-threaded when it calls orr_sweep_run. */
#ifndef ORRERY_LAB_SWEEP_H
#define ORRERY_LAB_SWEEP_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_sweep orr_sweep;

/* The role of a name in a command. */
typedef enum orr_sweep_form {
    ORR_SWEEP_NOTHING,
    ORR_SWEEP_OPTION,  /* --name=value */
    ORR_SWEEP_FLAG,    /* --name */
    ORR_SWEEP_ARGUMENT /* positional */
} orr_sweep_form;

/* One command of a point: `orrery COMMAND WORDS...`. */
typedef struct orr_sweep_step {
    const char *command;
    const char *const *words;
    size_t word_count;
    /* Keep the lists of its JSON whole; else only their minimum and maximum. */
    bool all_rows;
} orr_sweep_step;

typedef struct orr_sweep_out orr_sweep_out;
/* The JSON printed by step `step`; a later one for the same step replaces it. */
ORR_API void orr_sweep_put(orr_sweep_out *out, size_t step, const char *json, size_t len);

typedef struct orr_sweep_hooks {
    void *context;
    const char *program; /* name and version: results of different programs are not mixed */
    /* The role of a name in a command; *name becomes the canonical spelling, *place the position of
     * an argument.  NULL for name: does the command exist? */
    orr_sweep_form (*find)(void *context, const char *command, const char **name, uint32_t *place);
    /* The nearest match to `typed` among the commands (command NULL) or the names of one. */
    const char *(*nearest)(void *context, const char *command, const char *typed);
    /* Run the steps of a point in this process. */
    orr_code (*run)(void *context,
                    const orr_sweep_step *steps,
                    size_t count,
                    orr_sweep_out *out,
                    orr_error *err);
    /* A note for the user, one line without newline. */
    void (*note)(void *context, const char *line);
} orr_sweep_hooks;

/* Reads and checks the specification and lists its points.  hooks must outlive the sweep. */
ORR_API orr_code orr_sweep_open(const char *path,
                                const orr_sweep_hooks *hooks,
                                orr_sweep **out,
                                orr_error *err) ORR_MUST_CHECK;
/* The same from memory; path is for messages. */
ORR_API orr_code orr_sweep_read(orr_span bytes,
                                const char *path,
                                const orr_sweep_hooks *hooks,
                                orr_sweep **out,
                                orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_sweep_close(orr_sweep *s); /* NULL is fine */
ORR_API size_t orr_sweep_count(const orr_sweep *s);
/* The command lines of a point, "orrery stage ... && orrery run ...", into text. */
ORR_API orr_code orr_sweep_line(orr_sweep *s, size_t point, char *text, size_t room, orr_error *err)
    ORR_MUST_CHECK;

typedef struct orr_sweep_options {
    size_t size; /* sizeof(orr_sweep_options) */
    const char *database;
    const char *cache;      /* NULL: none; a database whose results are taken and added to */
    uint32_t jobs;          /* 0: one per available core; under mpirun or srun one */
    uint32_t shard, shards; /* 0, 0: all points; else shard 1..shards */
    uint32_t timeout_s;     /* of a point; 0: none */
    double max_seconds;     /* wall-clock limit of the sweep; then ORR_ESTOP.  0: no limit */
    bool retries_failed;    /* also points that failed before */
    bool recomputes;        /* discard results of other programs or builds */
    bool is_quiet;
} orr_sweep_options;

typedef struct orr_sweep_summary {
    uint64_t points;      /* of this shard */
    uint64_t computed;    /* now */
    uint64_t reused;      /* from the database, the cache, or an equal point */
    uint64_t failed;      /* of all */
    uint64_t left;        /* not computed because of an interrupt */
    uint64_t busy_ns;     /* in the runs themselves, summed over workers */
    uint64_t cpu_ns;      /* of all workers, everything included */
    uint64_t most_cpu_ns; /* of the busiest worker */
    uint64_t waited_ns;   /* for the next point, summed over workers */
    uint64_t wall_ns;
    uint32_t workers;
    bool is_worker;    /* this process is not rank 0: it prints nothing */
    char failure[312]; /* the first */
} orr_sweep_summary;

ORR_API orr_code orr_sweep_run(orr_sweep *s,
                               const orr_sweep_options *o,
                               orr_sweep_summary *out,
                               orr_error *err) ORR_MUST_CHECK;

/* A hash of a file's content in 32 digits, for `program` of the hooks. */
ORR_API orr_code orr_sweep_file_hash(const char *path, char out[33], orr_error *err) ORR_MUST_CHECK;

/* Results.  Columns: axes, measures of the specification, and all outputs of the commands. */
typedef struct orr_sweep_query {
    size_t size;         /* sizeof(orr_sweep_query) */
    const char *where;   /* an expression; NULL: all points */
    const char *sort;    /* a column or an expression, -... for the largest first; NULL: by point */
    const char *columns; /* comma-separated; NULL: axes, measures and all results */
    uint64_t limit;      /* 0: all */
    bool by_goal;        /* sort by the goal of the specification */
    bool brief;          /* columns NULL: axes, measures and the goal only */
    bool only_varying;   /* columns NULL: of the results those that differ between points */
    bool with_failed;
} orr_sweep_query;

typedef struct orr_sweep_table orr_sweep_table;
ORR_API orr_code orr_sweep_table_open(const char *database,
                                      const orr_sweep_query *q,
                                      orr_sweep_table **out,
                                      orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_sweep_table_close(orr_sweep_table *t);

typedef enum orr_sweep_format {
    ORR_SWEEP_TEXT,
    ORR_SWEEP_CSV,
    ORR_SWEEP_JSON,
    ORR_SWEEP_HTML,   /* a page with filters and plots */
    ORR_SWEEP_COLUMNS /* NumPy's .npz: one array per column */
} orr_sweep_format;

/* path: "-" is standard output. */
ORR_API orr_code orr_sweep_table_write(const orr_sweep_table *t,
                                       orr_sweep_format format,
                                       const char *path,
                                       orr_error *err) ORR_MUST_CHECK;

typedef struct orr_sweep_plot {
    const char *x, *y; /* columns */
    const char *group; /* NULL: none; one colour per value */
    bool log_x, log_y;
    bool has_lines; /* join the points of a group in the order of x */
} orr_sweep_plot;
/* SVG. */
ORR_API orr_code orr_sweep_table_plot(const orr_sweep_table *t,
                                      const orr_sweep_plot *p,
                                      const char *path,
                                      orr_error *err) ORR_MUST_CHECK;

typedef struct orr_sweep_state {
    uint64_t points, done, failed, results; /* results: distinct ones, also of other sweeps */
    char program[96];
    char commands[160];
    char failure[312]; /* the first */
    bool is_running;
} orr_sweep_state;
ORR_API orr_code orr_sweep_status(const char *database,
                                  orr_sweep_state *out,
                                  orr_error *err) ORR_MUST_CHECK;

/* Merge the results of databases of one sweep into one that is new or of the same sweep. */
ORR_API orr_code orr_sweep_merge(const char *to,
                                 const char *const *from,
                                 size_t count,
                                 orr_sweep_state *out,
                                 orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
