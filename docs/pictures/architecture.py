#!/usr/bin/env python3
"""Draws docs/pictures/architecture-light.svg and -dark.svg: the rooms of the Makefile from
the ground up, and the way of one node event and of one layer count through them.
With --check nothing is written: it fails if the pictures are not what would be drawn."""

import pathlib
import re
import sys
from html import escape

HERE = pathlib.Path(__file__).resolve().parent
MAKEFILE = HERE.parent.parent / "Makefile"

# Rows from the bottom up; rooms of one row stand side by side. Caption: what it is about.
PLANNER = [
    [("planner/base", "errors, memory, numbers, text")],
    [("planner/model", "GPUs, cluster, job, profile; and the plan")],
    [("planner/cost", "memory, sends, seconds, bound")],
    [("planner/search", "budget, exact splits, best plan so far")],
    [("planner/algo", "megatron, amp"), ("planner/algo/metis", ""),
     ("planner/algo/ditto", ""), ("planner/algo/autohet", "")],
    [("planner/algo/optimal", "our own search"), ("planner/algo/repair", "what survives")],
    [("planner/run", "one algorithm, or all of them")],
    [("planner/render/runtime", "for torchrun, Megatron-LM"),
     ("planner/render/people", "table, timeline")],
    [("planner/format", "JSON, YAML"), ("planner/format/profile", "measured layers"),
     ("planner/format/document", "question, answer")],
    [("planner", "hetplan.h: the library"), ("planner/cli", "the command hetplan")],
]
CONTROLLER = [
    [("controller/base", "times, texts, objects, store, queue")],
    [("controller/job", "what users and administrators may write")],
    [("controller/cluster", "nodes, pods, GPUs: whose are they?")],
    [("controller/decision", "a snapshot in; status, objects, actions out")],
    [("controller/placement", "which GPUs a job gets, and from whom")],
    [("controller/reconcile", "the order of one pass")],
    [("controller/kube", "the client: requests, watches, lease")],
    [("controller/operator", "the loop: events in, writes out")],
    [("controller/serve", "health, metrics, dashboard, admission"),
     ("controller/record", "replay")],
    [("controller/kubectl", "kubectl-htj"), ("controller", "the operator's main")],
    [("controller/simulate/api_server", "a server inside"),
     ("controller/simulate", "a cluster inside")],
]

NODE_EVENT = ("One node event: a node is not ready any more", [
    ("controller/kube", "watch reads a line of the node watch, and hands it on only if something that is kept has changed"),
    ("controller/base", "object_store takes the new Node object"),
    ("controller/cluster", "node_state reads its condition; capacity counts its GPUs anew and names the jobs that this concerns"),
    ("controller/operator", "loop takes such a job from the workqueue when it is due"),
    ("controller/decision", "snapshot: everything that this one decision may know, as a value"),
    ("controller/reconcile", "restart: the pods cannot stay; the generation is retired"),
    ("controller/placement", "planning asks for a plan on the GPUs that are left"),
    ("controller/operator", "planner_child runs hetplan with the question; apply writes the ConfigMap and the pods of the next generation"),
])
LAYER_COUNT = ("One layer count: how many layers the V100 stage gets", [
    ("planner/format/profile", "metis, sailor, timers, ...: seconds and bytes of each layer, as measured"),
    ("planner/model", "profile: what any run of layers takes on a GPU type"),
    ("planner/search", "balance puts layers on stages so that the slowest is as fast as can be"),
    ("planner/algo/optimal", "local_search moves a layer to the next stage, and keeps what is faster"),
    ("planner/cost", "memory says whether it fits, schedule how long an iteration takes with it"),
    ("planner/run", "run_all compares with the other algorithms, checks the plan anew"),
    ("planner/format/document", "the answer: \"layers\" of a stage in plan.json"),
    ("controller/decision", "children writes it to the plan's ConfigMap"),
    ("planner/render/runtime", "arguments, files and environment that the training program reads"),
])

WIDTH, TOP, ROW, GAP, COLUMN = 1080, 92, 38, 8, 500
LIGHT = {"page": "#ffffff", "ink": "#1f2328", "soft": "#59636e", "room": "#f6f8fa", "line": "#d1d9e0",
         "pure": "#eaf5ec", "event": "#0969da", "layer": "#bc4c00", "badge": "#ffffff"}
DARK = {"page": "#0d1117", "ink": "#f0f6fc", "soft": "#9198a1", "room": "#151b23", "line": "#3d444d",
        "pure": "#12261e", "event": "#4493f8", "layer": "#f0883e", "badge": "#0d1117"}


def rooms_of_makefile():
    """Rooms in order, and those that are pure."""
    text = MAKEFILE.read_text().replace("\\\n", " ")
    rooms = re.findall(r"^((?:planner|controller)(?:/\w+)*) +:=", text, re.M)
    pure = re.search(r"^PLANNER_CORE_ROOMS := (.*)", text, re.M)[1].split()
    pure += re.search(r"^CONTROLLER_PURE := \$\(call modules,([^)]*)\)", text, re.M)[1].split()
    return rooms, set(pure)


def check_rooms(rooms):
    drawn = [room for row in PLANNER + CONTROLLER for room, _ in row]
    for room in sorted(set(rooms) ^ set(drawn)):
        where = "the Makefile" if room in rooms else "this script"
        sys.exit(f"{__file__}: {room} stands only in {where}")


def draw(colour, pure):
    out, at = [], {}

    def text(x, y, words, size=13, fill="ink", weight="normal", family="sans-serif", anchor="start"):
        out.append(f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" font-family="{family}" '
                   f'text-anchor="{anchor}" fill="{colour[fill]}">{escape(words)}</text>')

    def badge(x, y, number, kind):
        out.append(f'<circle cx="{x}" cy="{y}" r="9" fill="{colour[kind]}"/>')
        text(x, y + 4, str(number), 11, "badge", "bold", anchor="middle")

    def column(rows, left, title, words, bottom):
        text(left, TOP - 40, title, 20, weight="bold")
        text(left, TOP - 18, words, 13, "soft")
        for index, row in enumerate(rows):
            y = bottom - (index + 1) * (ROW + GAP)
            width = (COLUMN - GAP * (len(row) - 1)) / len(row)
            for place, (room, caption) in enumerate(row):
                x = left + place * (width + GAP)
                fill = colour["pure" if room in pure else "room"]
                out.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW}" rx="6" fill="{fill}" '
                           f'stroke="{colour["line"]}"/>')
                name = room.split("/", 1)[1] + "/" if "/" in room else room + "/"
                text(f"{x + 10:.1f}", y + 16, name, 13, weight="bold", family="monospace")
                text(f"{x + 10:.1f}", y + 31, caption, 11, "soft")
                at[room] = (x + width, y)

    bottom = TOP + len(CONTROLLER) * (ROW + GAP)
    column(PLANNER, 20, "planner/", "From the ground up: a room includes only what stands below it.", bottom)
    column(CONTROLLER, 560, "controller/", "Green rooms are pure: no network, no disk, no clock.", bottom)

    used = {}
    for kind, (_, steps) in (("event", NODE_EVENT), ("layer", LAYER_COUNT)):
        for number, (room, _) in enumerate(steps, 1):
            right, y = at[room]
            offset = used.get(room, 0)
            used[room] = offset + 1
            badge(round(right - 14 - 22 * offset, 1), y + ROW / 2 - 8, number, kind)

    y = bottom + 34
    for kind, (title, steps) in (("event", NODE_EVENT), ("layer", LAYER_COUNT)):
        text(20, y, title, 16, kind, "bold")
        for number, (room, words) in enumerate(steps, 1):
            y += 24
            badge(30, y - 4, number, kind)
            text(48, y, room + "/", 12, weight="bold", family="monospace")
            text(268, y, words, 13)
        y += 42
    height = y - 16
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img">',
        "<title>The rooms of planner/ and controller/, and two ways through them</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="{colour["page"]}"/>', *out, "</svg>", ""])


def main():
    rooms, pure = rooms_of_makefile()
    check_rooms(rooms)
    for name, colour in (("light", LIGHT), ("dark", DARK)):
        path = HERE / f"architecture-{name}.svg"
        picture = draw(colour, pure)
        if sys.argv[1:] != ["--check"]:
            path.write_text(picture)
        elif not path.exists() or path.read_text() != picture:
            sys.exit(f"{path} is not what {__file__} draws: run it")


if __name__ == "__main__":
    main()
