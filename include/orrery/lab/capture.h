/* SPDX-License-Identifier: Apache-2.0 */
/* capture.h - a training script, run by Python as one rank of a job, without data and without a
 * cluster.
 *
 *     orr_capture *c;
 *     if (orr_capture_open(NULL, &c, &err)) return report(&err);        // finds a Python with PyTorch
 *     const char *args[] = {"--world-size", "8", "--output", orr_capture_file(c), "train.py", NULL};
 *     code = orr_capture_run(c, args, &err);
 *     if (!code) code = orr_fx_read(orr_capture_file(c), 0, &step, &err);
 *     orr_capture_close(c);                                             // removes its folder
 *
 * The Python side is one module, capture/orrery_capture.py, which is built into the library.  It
 * can be used on its own on another machine: orr_capture_module() returns its text.  While a
 * capture is open interrupts are deferred; one that arrives while Python runs ends it, and
 * orr_capture_run returns ORR_ESTOP.  For single-threaded programs. */
#ifndef ORRERY_LAB_CAPTURE_H
#define ORRERY_LAB_CAPTURE_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_capture orr_capture;

/* python: a name or a path; NULL: python3 or python, whichever has PyTorch. */
ORR_API orr_code orr_capture_open(const char *python,
                                  orr_capture **out,
                                  orr_error *err) ORR_MUST_CHECK;
ORR_API const char *orr_capture_python(
    const orr_capture *c); /* "/usr/bin/python3 (Python 3.12.3, PyTorch 2.11.0)" */
ORR_API const char *orr_capture_file(const orr_capture *c); /* where the capture is written */
/* arguments: those of `python -m orrery_capture`; NULL ends.  Python's output goes to standard
 * error. */
ORR_API orr_code orr_capture_run(orr_capture *c,
                                 const char *const *arguments,
                                 orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_capture_close(orr_capture *c); /* NULL is fine */

ORR_API orr_str orr_capture_module(void);

#ifdef __cplusplus
}
#endif
#endif
