"""A program outside the tree: plan.py LIBRARY PART=FILE... JOB prints the plan, or why there is none."""
import ctypes
import sys

het = ctypes.CDLL(sys.argv[1])
het.het_planner_new.restype = ctypes.c_void_p
het.het_planner_set.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
het.het_planner_plan.argtypes = [ctypes.c_void_p, ctypes.c_int]
het.het_planner_free.argtypes = [ctypes.c_void_p]
for answer in (het.het_planner_plan, het.het_planner_message, het.het_version):
    answer.restype = ctypes.c_char_p
for question in (het.het_planner_message, het.het_planner_status):
    question.argtypes = [ctypes.c_void_p]

planner = het.het_planner_new()
for argument in sys.argv[2:]:
    part, _, path = argument.partition("=")
    if path:
        with open(path, "rb") as file:
            het.het_planner_set(planner, part.encode(), file.read())
    else:
        het.het_planner_set(planner, b"job", argument.encode())
plan = het.het_planner_plan(planner, 0)
print((plan or het.het_planner_message(planner)).decode())
status = het.het_planner_status(planner)
het.het_planner_free(planner)
sys.exit(status)
