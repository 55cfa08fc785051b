/* hetplan.h - the one door of the planner library: all that controller/ may include. */
#ifndef HETPLAN_H
#define HETPLAN_H

#include "planner/arena.h"
#include "planner/error.h"

#endif
