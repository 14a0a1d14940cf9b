/* SPDX-License-Identifier: Apache-2.0 */
/* orrery.h - all stable headers at once.  What is in <orrery/lab/...> may change from version to
 * version; <orrery/lab/lab.h> has all of that. */
#ifndef ORRERY_ORRERY_H
#define ORRERY_ORRERY_H

#include <orrery/check.h>
#include <orrery/collective.h>
#include <orrery/error.h>
#include <orrery/feeder.h>
#include <orrery/network.h>
#include <orrery/report.h>
#include <orrery/run.h>
#include <orrery/set.h>
#include <orrery/timeline.h>
#include <orrery/trace.h>
#include <orrery/types.h>
#include <orrery/version.h>
#include <orrery/view.h>

#endif
