/* modules.h - the modules of the planner that controller/ builds on: it may include only
 * this header and the library's (hetplan.h). */
#ifndef HET_MODULES_H
#define HET_MODULES_H

#include "planner/base/arena.h"
#include "planner/base/error.h"
#include "planner/base/random.h"
#include "planner/cost/bound.h"
#include "planner/format/document/cluster_json.h"
#include "planner/format/document/hardware_json.h"
#include "planner/format/document/plan_json.h"
#include "planner/format/document/prediction_json.h"
#include "planner/format/document/profile_json.h"
#include "planner/format/document/question.h"
#include "planner/format/document/read_file.h"
#include "planner/format/document/render_json.h"
#include "planner/format/document/unused_json.h"
#include "planner/format/document/workload_json.h"
#include "planner/format/kubernetes_node.h"
#include "planner/format/yaml_read.h"
#include "planner/format/yaml_write.h"
#include "planner/model/hardware.h"
#include "planner/model/plan.h"
#include "planner/model/runtime.h"
#include "planner/render/people/explanation.h"
#include "planner/render/people/table.h"
#include "planner/render/people/timeline.h"
#include "planner/render/runtime/runtime_files.h"
#include "planner/render/runtime/torchrun.h"
#include "planner/run/run_all.h"
#include "planner/shell_completion.h"
#include "planner/system_call_filter.h"

#endif
