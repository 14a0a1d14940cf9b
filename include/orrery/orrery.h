/* SPDX-License-Identifier: Apache-2.0 */
/* orrery.h - all public headers at once. */
#ifndef ORRERY_ORRERY_H
#define ORRERY_ORRERY_H

#include <orrery/capture.h>
#include <orrery/check.h>
#include <orrery/chrome_trace.h>
#include <orrery/collective.h>
#include <orrery/critical_path.h>
#include <orrery/diff.h>
#include <orrery/error.h>
#include <orrery/explain.h>
#include <orrery/export.h>
#include <orrery/fabric_view.h>
#include <orrery/feeder.h>
#include <orrery/flexflow.h>
#include <orrery/fx.h>
#include <orrery/gemm.h>
#include <orrery/gen.h>
#include <orrery/goal.h>
#include <orrery/goal_check.h>
#include <orrery/goal_traces.h>
#include <orrery/hardware.h>
#include <orrery/info.h>
#include <orrery/issue_log.h>
#include <orrery/lab/compat.h>
#include <orrery/layers.h>
#include <orrery/link.h>
#include <orrery/llm.h>
#include <orrery/loggops.h>
#include <orrery/model.h>
#include <orrery/mpi_trace.h>
#include <orrery/nccl.h>
#include <orrery/network.h>
#include <orrery/nsys.h>
#include <orrery/operators.h>
#include <orrery/packet.h>
#include <orrery/progress.h>
#include <orrery/pytorch.h>
#include <orrery/report.h>
#include <orrery/scalesim.h>
#include <orrery/schedgen.h>
#include <orrery/serve.h>
#include <orrery/set.h>
#include <orrery/sim.h>
#include <orrery/stage.h>
#include <orrery/stall.h>
#include <orrery/systolic.h>
#include <orrery/timeline.h>
#include <orrery/topology.h>
#include <orrery/trace.h>
#include <orrery/types.h>
#include <orrery/units.h>
#include <orrery/view.h>

#endif
