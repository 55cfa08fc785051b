"""Rows of bench.json as text and as the tables of docs/planner.md, and what is checked of
them: the bars of instances.py, and that no paper's algorithm is better than `optimal`.
"""
import statistics

MOST_MIB = 256  # of `optimal`
TIE = 1e-9
SAILOR = "step s of Sailor's best"

HEADING = (f"  {'algorithm':13} {'user s':>8} {'MiB':>6} {'priced':>8} {'step s':>10} "
           f"{'bound s':>10} {'gap':>8} {'GPUs':>5} {'pipelines':>9}")


def line(row):
    text = f"  {row['algorithm']:13} {row['userSeconds']:8.3f} {row['peakMiB']:6.1f}"
    if "stepSeconds" not in row:
        return text + ("  stopped" if row["stopped"] else "  no plan")
    return text + (f" {row['plansPriced']:8} {row['stepSeconds']:10.4f} "
                   f"{row['lowerBoundSeconds']:10.4f} {row['gap']:8.1%} {row['gpus']:5} "
                   f"{row['pipelines']:9}")


def check(what, value, limit):
    return {"what": what, "value": value, "limit": limit, "ratio": value / limit,
            "met": value <= limit * (1 + TIE)}


def checks(rows, bar):
    """Of the rows of one instance; the last one is that of `optimal`."""
    *others, best = rows
    found = [row for row in others if "stepSeconds" in row]
    result = [check("MiB", best["peakMiB"], MOST_MIB)]
    if bar.user_s:
        result.append(check("user s", best["userSeconds"], bar.user_s))
    if bar.other:
        name, limit_s = bar.other
        other = next(row for row in rows if row["algorithm"] == name)
        result.append(check(f"user s of {name}", other["userSeconds"], limit_s))
    if "stepSeconds" not in best:
        return result + [{"what": "a plan, as others have one", "value": 0, "limit": 1,
                          "ratio": 0, "met": not found}]
    if found:
        first = min(found, key=lambda row: row["stepSeconds"])
        result.append(check(f"step s of {first['algorithm']}", best["stepSeconds"],
                            first["stepSeconds"]))
    if bar.sailor_s:
        result.append(check(SAILOR, best["stepSeconds"], bar.sailor_s))
    if bar.gap:
        result.append(check("gap", best["gap"], bar.gap))
    return result


def check_line(item):
    return (f"    {'met    ' if item['met'] else 'NOT MET'} {item['value']:.4g} of "
            f"{item['limit']:.4g} {item['what']} ({item['ratio']:.3f})")


def all_checks(rows):
    return [(row, item) for row in rows for item in row.get("checks", [])]


def summary(rows):
    items = all_checks(rows)
    missed = [(row, item) for row, item in items if not item["met"]]
    lines = [f"bars: {len(items) - len(missed)} of {len(items)} met"]
    lines += [f"{row['group']}: {row['instance']}\n{check_line(item)}" for row, item in missed]
    return "\n".join(lines + [others(rows), sailor(rows)])


def sailor(rows):
    ratios = [item["ratio"] for _, item in all_checks(rows)
              if item["what"] == SAILOR]
    return (f"`optimal` over Sailor's best: {statistics.mean(ratios):.3f} in the mean, "
            f"{max(ratios):.3f} at most." if ratios else "")


# ---- docs/planner.md ----

def percent(share, digits=0):
    return f"{100 * share:.{digits}f} %"



def table(heading, rows):
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in [heading, *rows]]
    return "\n".join([lines[0], "|---" * len(heading) + "|", *lines[1:]])


def instances(rows):
    """Rows by instance, in their order: (group, name, batch) to {algorithm: row}."""
    result = {}
    for row in rows:
        key = row["group"], row["instance"], row["globalBatchSize"]
        result.setdefault(key, {})[row["algorithm"]] = row
    return result


def columns(rows):
    """Algorithms; the walks have tables of their own (oomfirst_table.py)."""
    return [a for a in dict.fromkeys(row["algorithm"] for row in rows)
            if not a.endswith("-walk")]


def steps(rows):
    algorithms = columns(rows)
    body = []
    for (group, name, batch), own in instances(rows).items():
        best = own["optimal"]
        least = min((r["stepSeconds"] for r in own.values() if "stepSeconds" in r), default=0)
        cells = []
        for algorithm in algorithms:
            step_s = own.get(algorithm, {}).get("stepSeconds")
            text = f"{step_s:.4g}" if step_s else "-"
            cells.append(f"**{text}**" if step_s and step_s <= least * (1 + TIE) else text)
        bound = [f"{best['lowerBoundSeconds']:.4g}", percent(best["gap"])] \
            if "gap" in best else ["-", "-"]
        body.append([group, name, batch, *cells, *bound])
    return table(["Model", "Cluster", "Batch", *(f"`{a}`" for a in algorithms), "Bound", "Gap"],
                 body)


def seconds(row):
    if not row:
        return ""
    return ("over " if row.get("stopped") else "") + f"{row['userSeconds']:.2g}"


def effort(rows):
    algorithms = columns(rows)
    body = []
    for (group, name, _), own in instances(rows).items():
        best = own["optimal"]
        body.append([group, name, *(seconds(own.get(a)) for a in algorithms),
                     f"{best['peakMiB']:.0f}", best.get("plansPriced", "-")])
    return table(["Model", "Cluster", *(f"`{a}`" for a in algorithms), "MiB", "Priced"], body)


def bars(rows):
    """Instances that have a bar, each with what is asked and what came out."""
    body = []
    for row in rows:
        own = {item["what"]: item for item in row.get("checks", [])}
        asked = [own.get(what) for what in [SAILOR, "user s", "gap"]]
        if not any(asked):
            continue
        cells = [row["group"], row["instance"], row["globalBatchSize"]]
        step, user, gap = asked
        cells += [f"{step['limit']:.4g}", f"{row['stepSeconds']:.4g}", f"{step['ratio']:.3f}"] \
            if step else ["", f"{row['stepSeconds']:.4g}", ""]
        cells += [f"{row['userSeconds']:.2g}" + (f" ({user['limit']:.2g})" if user else "")]
        cells += [f"{percent(row['gap'])}" + (f" ({percent(gap['limit'])})" if gap else "")]
        body.append(cells)
    return table(["Model", "Cluster", "Batch", "Sailor's best, s", "`optimal`, s", "Ratio",
                  "User CPU s (allowed)", "Gap (allowed)"], body)


def others(rows):
    """In words: the instances on which another algorithm's plan is faster."""
    compared = [(row, item) for row, item in all_checks(rows)
                if item["what"].startswith("step s of ") and item["what"] != SAILOR]
    lost = [f"{row['group']}, {row['instance']}: {item['what'].removeprefix('step s of ')}, by "
            f"{percent(item['ratio'] - 1, 1)}" for row, item in compared if not item["met"]]
    return (f"On {len(compared) - len(lost)} of {len(compared)} instances no other algorithm's "
            "plan is faster than that of `optimal`"
            + (". The others: " + "; ".join(lost) if lost else "") + ".")


def markdown(bench):
    facts, rows = bench["machine"], bench["planner"]
    return "\n\n".join([
        f"{facts['processor']}, commit {facts['commit']}.",
        "What `optimal` is held against, where there is a figure:",
        bars(rows),
        sailor(rows),
        "Seconds of an iteration, and the lower bound and gap of `optimal`:",
        steps(rows),
        others(rows),
        "User CPU seconds; and of `optimal` the peak memory and the number of plans priced:",
        effort(rows),
    ])
