"""Programs as C: a module with one function that does a whole run, called from Python."""

import numpy as np

from c_structs import CModule
from remora.codegen.export.c_module import Function, Member, Module, Struct, header, source
from remora.codegen.integration.program_c import WORK, ProgramText, member_places
from remora.codegen.integration.program_plan import planned


def program_module(program, dtype, entries, capacity):
    """Return the module of a program; inputs, tables and outputs are structs."""

    def struct(role, signatures, length=lambda s: 1, wide=lambda s: s.wide):
        members = [
            Member(s.name, (length(s) * s.size,), "", "double" if wide(s) else "")
            for s in signatures
            if length(s) * s.size
        ]
        return Struct(role, tuple(members))

    def rows(o):
        return {"run": 1, "entry": entries, "record": capacity.get(o.buffer)}[o.per]

    inputs = struct("inputs", program.inputs)
    tables = Struct("tables", tuple(Member(n, (entries,), "", "double") for n in program.tables))
    outputs = struct("outputs", program.outputs, rows)
    places = {
        s.name: member_places("inputs", inputs.identifiers[s.name], s.size)
        for s in program.inputs
        if s.size
    }
    starts = dict(places)
    cells = {s.name for s in program.cells}
    for name in cells:
        places.pop(name, None)
    places |= {n: [f"tables->{own}[work->entry]"] for n, own in tables.identifiers.items()}

    def output_places(o, row):
        own = outputs.identifiers.get(o.name, "")
        at = f"{o.size}u*{row} + " if row else ""
        return [f"outputs->{own}[{at}{j}{'u' if row else ''}]" for j in range(o.size)]

    plan = planned(program, dtype, fma=False)
    roles = [s.role for s in (inputs, tables, outputs) if s.members]
    known = {n: p for n, p in places.items() if n not in plan.cells}
    text = ProgramText(
        plan, "run", dtype, (*roles, WORK), known, output_places, entries, capacity
    )  # fmt: skip
    lines = ["run_work memory = {0};", "run_work *const work = &memory;"]
    for name in plan.starting:
        for to, source_of in zip(text.places(name), starts.get(name, []), strict=False):
            wide = plan.cells[name].wide
            lines.append(
                f"{to} = ({'double' if wide or dtype == 'float64' else 'float'}){source_of};"
            )
    body = text.lines(plan.body)
    work = Struct(WORK, (*text.members, Member("unused")), local=True)
    lines += ["(void)work;", *(f"(void){r};" for r in roles)]
    whole = Function("all", tuple(roles), ("outputs",), body=(*lines, *body))
    structs = tuple(s for s in (inputs, tables, outputs) if s.members)
    return Module(
        "run", dtype, (*structs, work), (*text.functions, whole), includes=("stdint.h",),
        text=text.support,
    )  # fmt: skip


def run_c(program, folder, arguments, dtype="float64", tables=None, capacity=None):
    """Return the outputs of runs, `(runs, ...)`, made by compiled C."""
    tables, capacity = tables or {}, capacity or {}
    entries = len(next(iter(tables.values()))) if tables else 0
    module = program_module(program, dtype, entries, capacity)
    folder.mkdir(exist_ok=True)
    (folder / "run.h").write_text(header(module))
    (folder / "run.c").write_text(source(module))
    c = CModule(folder, "run")
    roles = module.roles
    found = [[] for _ in program.outputs]
    for k in range(len(arguments[0])):
        for s, values in zip(program.inputs, arguments, strict=True):
            if s.size:
                c.set("inputs", **{roles["inputs"].identifiers[s.name]: values[k]})
        for name, values in tables.items():
            c.set("tables", **{roles["tables"].identifiers[name]: values})
        for o in program.outputs:
            if o.name in roles["outputs"].identifiers:
                own = roles["outputs"].identifiers[o.name]
                c.set("outputs", **{own: np.full(len(c.get("outputs", own)), np.nan)})
        c.call("all")
        for o, listed in zip(program.outputs, found, strict=True):
            between = {"run": (), "entry": (entries,), "record": (capacity.get(o.buffer),)}[o.per]
            shape = (*between, *o.shape)
            kind = "float64" if o.wide else dtype
            own = roles["outputs"].identifiers.get(o.name)
            flat = c.get("outputs", own) if own else np.zeros(0)
            listed.append(np.asarray(flat, kind).reshape(shape))
    return [np.array(x) for x in found]
