# Rooms: a folder of planner/ or controller/ is a room. A module includes only headers of
# modules before it in the Makefile's lists, which stand room by room; the planner knows
# nothing of the controller, the controller only planner/modules.h, and no algorithm
# another. awk -v order="planner/base/error ..." -f rooms.awk FILE...
# A file that is not in the lists fails, and so does a name in them without a file.
function stem(path) {
    sub(/\.[ch]$/, "", path)
    return path
}
function complain(text) {
    print text
    bad = 1
}
# The algorithm that a module belongs to: planner/algo/metis/..., planner/algo/amp.
function algorithm(module, part) {
    split(module, part, "/")
    return part[1] "/" part[2] == "planner/algo" ? part[3] : ""
}
BEGIN {
    count = split(order, module, " ")
    for (i = 1; i <= count; i++) {
        if (module[i] in rank)
            complain("the Makefile lists " module[i] " twice")
        rank[module[i]] = i
    }
}
FNR == 1 {
    self = stem(FILENAME)
    is_there[self] = 1
    if (!(self in rank))
        complain(FILENAME ": module " self " is not in the Makefile's lists")
}
/^#include "/ {
    header = $2
    gsub(/"/, "", header)
    other = stem(header)
    at = FILENAME ":" FNR ": "
    if (other == self)
        next
    if (self ~ /^controller\// && other !~ /^controller\//) {
        if (header != "planner/modules.h" && header != "planner/hetplan.h")
            complain(at "of the planner only planner/modules.h may be included, not " header)
    } else if (self ~ /^planner\// && other !~ /^planner\//) {
        complain(at "the planner includes planner/ only, not " header)
    } else if (!(other in rank)) {
        complain(at other " is not in the Makefile's lists")
    } else if (rank[other] >= rank[self]) {
        complain(at self " may not include " other ", which comes later")
    } else if (algorithm(self) != "" && algorithm(other) != "" && algorithm(self) != algorithm(other)) {
        complain(at "one algorithm may not include another (" other ")")
    }
}
END {
    for (i = 1; i <= count; i++)
        if (!(module[i] in is_there))
            complain("the Makefile lists " module[i] ", which has no file")
    exit bad
}
