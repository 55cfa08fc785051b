# Dependencies go one way: a module includes only headers of modules before it in the
# Makefile's list. awk -v dir=planner -v order="error arena ..." -f layers.awk FILE...
# A file that is not in the list fails, so that the list stays the table of contents.
BEGIN {
    n = split(order, module, " ")
    for (i = 1; i <= n; i++)
        rank[module[i]] = i
}
FNR == 1 {
    self = FILENAME
    sub("^" dir "/", "", self)
    sub(/\.[ch]$/, "", self)
    if (!(self in rank)) {
        printf "%s: module %s is not in the Makefile's list\n", FILENAME, self
        bad = 1
    }
}
/^#include "/ {
    other = $2
    gsub(/"/, "", other)
    if (other ~ "^" dir "/") {
        sub("^" dir "/", "", other)
        sub(/\.h$/, "", other)
        if (other == self)
            next
        if (!(other in rank)) {
            printf "%s:%d: %s is not in the Makefile's list\n", FILENAME, FNR, other
            bad = 1
        } else if (rank[other] >= rank[self]) {
            printf "%s:%d: %s may not include %s, which comes later\n", FILENAME, FNR, self, other
            bad = 1
        } else if (self ~ /^algo\// && other ~ /^algo\//) {
            printf "%s:%d: one algorithm may not include another (%s)\n", FILENAME, FNR, other
            bad = 1
        }
    } else if (dir == "planner") {
        printf "%s:%d: the planner includes planner/ only, not %s\n", FILENAME, FNR, other
        bad = 1
    } else if (other != "planner/hetplan.h") {
        printf "%s:%d: of the planner only planner/hetplan.h may be included, not %s\n", FILENAME, FNR, other
        bad = 1
    }
}
END { exit bad }
