/* SPDX-License-Identifier: Apache-2.0 */
/* lab.h - all lab headers at once: sources, models and views whose interfaces may still change. */
#ifndef ORRERY_LAB_LAB_H
#define ORRERY_LAB_LAB_H

#include <orrery/lab/capture.h>
#include <orrery/lab/chip.h>
#include <orrery/lab/chrome_trace.h>
#include <orrery/lab/collectives.h>
#include <orrery/lab/compat.h>
#include <orrery/lab/critical_path.h>
#include <orrery/lab/diff.h>
#include <orrery/lab/explain.h>
#include <orrery/lab/export.h>
#include <orrery/lab/fabric_view.h>
#include <orrery/lab/flexflow.h>
#include <orrery/lab/folders.h>
#include <orrery/lab/fx.h>
#include <orrery/lab/gemm.h>
#include <orrery/lab/gen.h>
#include <orrery/lab/goal.h>
#include <orrery/lab/goal_check.h>
#include <orrery/lab/goal_traces.h>
#include <orrery/lab/hardware.h>
#include <orrery/lab/info.h>
#include <orrery/lab/issue_log.h>
#include <orrery/lab/layers.h>
#include <orrery/lab/link.h>
#include <orrery/lab/llm.h>
#include <orrery/lab/machine.h>
#include <orrery/lab/model.h>
#include <orrery/lab/mpi_trace.h>
#include <orrery/lab/nccl.h>
#include <orrery/lab/nsys.h>
#include <orrery/lab/operators.h>
#include <orrery/lab/plan.h>
#include <orrery/lab/progress.h>
#include <orrery/lab/pytorch.h>
#include <orrery/lab/scalesim.h>
#include <orrery/lab/schedgen.h>
#include <orrery/lab/serve.h>
#include <orrery/lab/show.h>
#include <orrery/lab/simai.h>
#include <orrery/lab/software.h>
#include <orrery/lab/stage.h>
#include <orrery/lab/stall.h>
#include <orrery/lab/stop.h>
#include <orrery/lab/sweep.h>
#include <orrery/lab/systolic.h>
#include <orrery/lab/topology.h>
#include <orrery/lab/units.h>

#endif
