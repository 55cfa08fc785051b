/* hetplan.h - the one door of the planner library: all that controller/ may include. */
#ifndef HETPLAN_H
#define HETPLAN_H

#include "planner/answer.h"
#include "planner/arena.h"
#include "planner/bound.h"
#include "planner/codec.h"
#include "planner/confine.h"
#include "planner/error.h"
#include "planner/hardware.h"
#include "planner/input.h"
#include "planner/node_list.h"
#include "planner/plan.h"
#include "planner/random.h"
#include "planner/render/explanation.h"
#include "planner/render/rendering.h"
#include "planner/render/table.h"
#include "planner/render/timeline.h"
#include "planner/render/torchrun.h"
#include "planner/render_json.h"
#include "planner/runtime.h"
#include "planner/search.h"
#include "planner/yaml.h"
#include "planner/yaml_text.h"

#endif
