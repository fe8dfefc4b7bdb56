"""The pages of the reference and of the papers, and the tables of source files, made by Sphinx.

`write` fills the folder `docs/reference`, which git ignores: one page for each topic of `rm`, one
for each namespace (a module among the public names, such as `rm.algebra`), one for each paper with
its equations, and one with the first sentences of all source files. A public name whose home is in
no topic is an error: extend `TOPICS`.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import remora
from remora.lazy_names import homes_of_names, source_of
from remora.papers.paper_index import PAPERS, index

SOURCE = Path(remora.__file__).parent
#: Modules that pages describe although `rm` has no name for them.
MORE_NAMESPACES = ("remora.algebra.tangent", "remora.components.noise")


@dataclass(frozen=True)
class Topic:
    """A page of names of `rm`: those at home in some modules, given without `remora.`."""

    file: str
    title: str
    homes: tuple[str, ...]
    guides: tuple[str, ...]


TOPICS = (
    Topic("robots", "Robots, robot files, errors",
          ("model", "model.building", "model.formats", "errors"),
          ("loading", "building", "joints")),
    Topic("states", "States", ("model.state", "model.named_states"), ("notation",)),
    Topic("equations", "Kinematics and dynamics",
          ("dynamics", "planning", "model.constraint", "simulation.inputs.reach"),
          ("kinematics", "dynamics", "inverse_kinematics", "loops")),
    Topic("components", "Components and systems",
          ("components", "simulation.inputs.signal_source",
           "simulation.scenario.component_table"),
          ("components",)),
    Topic("simulation", "Simulation",
          ("simulation.engine", "simulation.inputs", "simulation.integrators"), ("simulate",)),
    Topic("results", "Recordings and batches",
          ("simulation.recording", "simulation.storage", "simulation.batch"),
          ("recordings", "batches")),
    Topic("campaigns", "Scenario files and campaigns", ("simulation.scenario", "campaigns"),
          ("scenarios", "campaigns")),
    Topic("assemblies", "Assemblies and docking",
          ("dynamics.assembly", "simulation.assembly_run", "simulation.module_changes",
           "simulation.scenario.assembly_file"), ("assembly", "sa24")),
    Topic("views", "Analysis, views, reports", ("analysis", "viewer"),
          ("analysis", "view", "report")),
    Topic("compilation", "Compilation and export",
          ("codegen", "dynamics.kernels", "components.export", "simulation.export"),
          ("compile", "gpu", "c")),
)  # fmt: skip
#: Pages that explain a namespace, where they have another name than it.
GUIDES = {"actuators": "components", "sensors": "components", "world": "components",
          "noise": "components", "tasks": "inverse_kinematics", "spart17": "spart"}  # fmt: skip


@dataclass
class Page:
    """A page of the reference: a title, an introduction, and objects by their full names."""

    file: str
    title: str
    introduction: str
    module: str
    objects: dict[str, Any] = field(default_factory=dict)
    #: Objects that are described under another public name, by this one.
    aliases: dict[str, str] = field(default_factory=dict)
    #: Classes that are not public names, but what public names return and hold.
    returned: dict[str, type] = field(default_factory=dict)

    def text(self) -> str:
        """Return the page as reStructuredText."""
        entries = [entry(name, value) for name, value in sorted(self.objects.items(), key=rank)]
        for name, other in self.aliases.items():
            entries.append(f".. py:data:: {name}\n\n   The same as :py:obj:`{other}`.")
        if self.returned:
            entries.append("Returned by these\n" + "-" * 17)
            entries += [entry(name, value) for name, value in self.returned.items()]
        current = "currentmodule" if self.module == "remora" else "module"
        module = f".. py:{current}:: {self.module}"
        return "\n\n".join((heading(self.title), self.introduction, module, *entries)) + "\n"


class Reference:
    """All pages of the reference."""

    @cached_property
    def namespaces(self) -> dict[str, types.ModuleType]:
        """Modules among the public names, with those among theirs, by full public name."""
        found: dict[str, types.ModuleType] = {}

        def walk(module: types.ModuleType, place: str) -> None:
            for name in names_of(module):
                value = getattr(module, name)
                if isinstance(value, types.ModuleType):
                    found[f"{place}.{name}"] = value
                    walk(value, f"{place}.{name}")

        walk(remora, "remora")
        return found | {name: import_module(name) for name in MORE_NAMESPACES}

    @cached_property
    def pages(self) -> list[Page]:
        """The pages of topics and namespaces; topics without objects are left out."""
        topics = {topic: Page(topic.file, topic.title, guide_line(topic.guides), "remora")
                  for topic in TOPICS}  # fmt: skip
        for name in names_of(remora):
            value = getattr(remora, name)
            if not isinstance(value, types.ModuleType):
                topics[topic_of(name, home(name, value))].objects[f"remora.{name}"] = value
        pages = [page for page in topics.values() if page.objects]
        pages += [self.namespace_page(place) for place in self.namespaces]
        named: dict[int, str] = {}
        for page in pages:
            for name, value in page.objects.items():
                named[id(value)] = min(named.get(id(value), name), name, key=partial(rival, value))
        for page in pages:
            page.aliases = {name.removeprefix(f"{page.module}."): named[id(value)]
                            for name, value in page.objects.items()
                            if named[id(value)] != name}  # fmt: skip
            for name in page.aliases:
                del page.objects[f"{page.module}.{name}"]
        known = list(named)
        for page in pages:
            for value in page.objects.values():
                for kind in returned_classes(value):
                    if id(kind) not in known:
                        known.append(id(kind))
                        page.returned[f"{kind.__module__}.{kind.__qualname__}"] = kind
        return pages

    def namespace_page(self, place: str) -> Page:
        """Return the page of a namespace, with links to those in it."""
        module = self.namespaces[place]
        inner = [name for name in self.namespaces if name.rpartition(".")[0] == place]
        links = ", ".join(f":doc:`{file_of(name)}`" for name in inner)
        paragraphs = (
            inspect.cleandoc(module.__doc__ or ""),
            guide_line(guides_of(place)),
            f"Namespaces in it: {links}." if links else "",
        )
        page = Page(file_of(place), file_of(place), "\n\n".join(filter(None, paragraphs)), place)
        for name in names_of(module):
            if f"{place}.{name}" not in self.namespaces:
                page.objects[f"{place}.{name}"] = getattr(module, name)
        return page

    def files(self) -> dict[str, str]:
        """Return the text of every file of `docs/reference` by its name."""
        files = {f"{page.file}.rst": page.text() for page in self.pages}
        if len(files) < len(self.pages):
            raise ValueError("two pages of the reference have the same file")
        papers = {f"{file_of_paper(paper)}.rst": paper_page(paper) for paper in PAPERS}
        others = {"index.rst": index_page(self.pages), "files.rst": files_page()}
        return files | papers | others


def names_of(module: types.ModuleType) -> list[str]:
    """Return the public names of a module: its `__all__`, or what it defines itself."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
        and (inspect.isroutine(value) or inspect.isclass(value))
    ]


def file_of(place: str) -> str:
    """Return the title and file name of a namespace's page: `rm.control`."""
    return "rm" + place.removeprefix("remora")


def rival(value: Any, name: str) -> tuple[bool, int]:
    """Return how well a public name suits an object: less is better."""
    return (name.rpartition(".")[2] != getattr(value, "__name__", ""), len(name))


def home(name: str, value: Any) -> str:
    """Return the module that a public name of `rm` is defined in."""
    if inspect.isclass(value) or inspect.isroutine(value):
        return value.__module__
    return homes_of_names(source_of(remora))[name]


def topic_of(name: str, module: str) -> Topic:
    """Return the topic of a public name of `rm`: that which names its module most closely."""
    place = module.removeprefix("remora.") + "."
    fitting = [(len(prefix), topic) for topic in TOPICS for prefix in topic.homes
               if place.startswith(f"{prefix}.")]  # fmt: skip
    if not fitting:
        raise LookupError(f"rm.{name} is defined in {module}, which no row of TOPICS has")
    return max(fitting, key=lambda row: row[0])[1]


def rank(row: tuple[str, Any]) -> tuple[bool, bool, bool]:
    """Return the place of an object on its page: main ones, which have examples, before others."""
    value = row[1]
    example = "Example" in (value.__doc__ or "")
    return (not example, inspect.isclass(value), not callable(value))


def entry(name: str, value: Any) -> str:
    """Return the directive that documents an object."""
    if inspect.isclass(value):
        if issubclass(value, BaseException):
            return f".. autoexception:: {name}"
        members = ", ".join(members_of(value))
        return f".. autoclass:: {name}" + (f"\n   :members: {members}" if members else "")
    if callable(value):
        return f".. autofunction:: {name}"
    keys = f": {', '.join(f'`{key}`' for key in value)}" if isinstance(value, dict) else ""
    return f".. py:data:: {name.rpartition('.')[2]}\n\n   A `{type(value).__name__}`{keys}."


def members_of(kind: type) -> list[str]:
    """Return the documented methods and properties of a class, without overrides of public ones."""
    public = [base for base in kind.__mro__[1:] if base.__module__.startswith("remora.")]
    inherited = {name for base in public for name in vars(base) if is_public_class(base)}
    members = {
        name: value
        for base in reversed([kind, *(base for base in public if not is_public_class(base))])
        for name, value in vars(base).items()
    }
    return [
        name
        for name, value in members.items()
        if (not name.startswith("_") or name in ("__call__", "__getitem__", "__init__"))
        and name not in inherited
        and not is_described(kind, name)
        and is_member(kind, name, value)
    ]


def is_member(kind: type, name: str, value: Any) -> bool:
    """Tell whether an attribute of a class is a method or property with a docstring."""
    value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if not (inspect.isfunction(value) or isinstance(value, property | cached_property)):
        return False
    text = value.__doc__ or ""
    if name == "__init__":  # only where it describes arguments, which a dataclass has as fields
        return "Args:" in text
    return bool(text) and (name != "__call__" or "Args:" in text or "Return" in text)


def is_described(kind: type, name: str) -> bool:
    """Tell whether the docstring of a class describes an attribute."""
    return bool(re.search(rf"^ +{name}: ", kind.__doc__ or "", re.M))


def is_public_class(kind: type) -> bool:
    """Tell whether a class is among the public names of `rm`."""
    return kind.__name__ in remora.__all__ and getattr(remora, kind.__name__) is kind


def returned_classes(value: Any) -> Iterator[type]:
    """Yield the classes of ours that an object's functions return and its fields hold."""
    if inspect.isclass(value):
        for name, text in vars(value).get("__annotations__", {}).items():
            if is_described(value, name):
                yield from classes_in(text, value.__module__)
        for name in members_of(value):
            member = inspect.getattr_static(value, name)
            member = getattr(member, "fget", None) or getattr(member, "func", member)
            yield from returned_classes(getattr(member, "__func__", member))
    elif inspect.isfunction(value):
        returns = value.__annotations__.get("return", "")
        yield from classes_in(returns, inspect.unwrap(value).__module__)
    elif isinstance(value, dict):
        yield from dict.fromkeys(type(row) for row in value.values() if is_ours(type(row)))


def is_ours(kind: Any) -> bool:
    """Tell whether something is a class of Remora with a public name."""
    return (
        inspect.isclass(kind) and kind.__module__.startswith("remora.") and kind.__name__[0] != "_"
    )


def classes_in(annotation: Any, module: str) -> Iterator[type]:
    """Yield the classes of ours that an annotation names in a module."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    names = {**vars(sys.modules[module])}
    homes = homes_of_names(source_of(sys.modules[module]))
    for name in re.findall(r"[A-Z]\w*", text):
        if name not in names and name in homes:
            names[name] = getattr(import_module(homes[name]), name)
        kind = names.get(name)
        if is_ours(kind):
            yield kind


def short_signature(value: Any) -> str | None:
    """Return the signature of a function or class with annotations as the source has them."""
    if getattr(value, "_is_protocol", False):
        return ""
    if inspect.isclass(value) and issubclass(value, tuple):
        value = value.__new__
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    module = getattr(inspect.unwrap(value), "__module__", "")
    parameters = [
        parameter.replace(
            annotation=written(parameter.annotation, module), default=default(parameter.default)
        )
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "_cls", "cls")
    ]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


@dataclass(frozen=True)
class Written:
    """Text that is its own representation."""

    text: str

    def __repr__(self) -> str:
        return self.text


def written(annotation: Any, module: str) -> Any:
    """Return an annotation such that `inspect` writes it without quotes.

    An alias of a module that is also the name of another thing in `rm` is written out: `Target`.
    """
    if annotation is inspect.Parameter.empty:
        return annotation
    names = vars(sys.modules[module]) if module in sys.modules else {}

    def plain(word: re.Match[str]) -> str:
        value = names.get(word[0])
        clash = word[0] in remora.__all__ and isinstance(value, types.UnionType)
        return " | ".join(kind.__name__ for kind in value.__args__) if clash else word[0]

    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return Written(re.sub(r"\b[A-Z]\w*", plain, text))


def default(value: Any) -> Any:
    """Return a default such that `inspect` writes it short: functions and types by name."""
    if value is inspect.Parameter.empty:
        return value
    if callable(value):
        return Written(value.__name__ if hasattr(value, "__name__") else "...")
    return Written("<factory>") if "object at" in repr(value) or "factory" in repr(value) else value


def heading(title: str) -> str:
    """Return the title of a page."""
    return f"{title}\n{'=' * len(title)}"


def guides_of(place: str) -> tuple[str, ...]:
    """Return the pages that explain a namespace."""
    name = place.rpartition(".")[2]
    guide = GUIDES.get(name, name)
    return (guide,) if Path(__file__).with_name(f"{guide}.md").exists() else ()


def guide_line(guides: tuple[str, ...]) -> str:
    """Return a line that leads to the pages with explanations."""
    links = ", ".join(f":doc:`/{guide}`" for guide in guides)
    return f"Explained in {links}." if guides else ""


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring, in one line."""
    paragraph = " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())
    return re.split(r"(?<=[^.][.])\s+(?=[A-Z])", paragraph)[0]


def index_page(pages: list[Page]) -> str:
    """Return the first page of the reference: all names, by page, and the papers."""
    papers = [file_of_paper(paper) for paper in PAPERS]
    parts = [
        heading("Reference"),
        "Every public name, from the docstrings. `Array` is a NumPy array of floats, or of CasADi "
        "`SX` with `dtype=object`; `ArrayLike` is whatever becomes one. `LoadLike` is a load of a "
        "run: numbers, a function of (t, q, v), a profile, a controller, or a dictionary of these. "
        "Examples need `import numpy as np` and `import remora as rm`.",
        ".. py:module:: remora",
        ".. toctree::\n   :maxdepth: 1\n   :hidden:\n\n"
        + "\n".join(f"   {file}" for file in (*(page.file for page in pages), *papers)),
    ]
    for page in pages:
        full = [*page.objects, *(f"{page.module}.{name}" for name in page.aliases)]
        names = (f":py:obj:`~{name}`" for name in sorted(full))
        about = ", ".join(names) if page.objects else first_sentence(page.introduction)
        parts.append(f":doc:`{page.file}`\n   {about}")
    for file in papers:
        parts.append(f":doc:`{file}`\n   Every equation by its number.")
    return "\n\n".join(parts) + "\n"


def file_of_paper(paper: str) -> str:
    """Return the name of the page of a paper's equations."""
    return f"equations_{paper.lower()}"


def paper_page(paper: str) -> str:
    """Return the page of a paper: its equations, tables, figures and algorithms by number."""
    rows = [("number", "what", "functions", "file", "test", "note")]
    for row in index(paper):
        names = ", ".join(function_link(name) for name in row.functions)
        files = ", ".join(f"``{file}``" for file in row.files)
        test = f"``{row.test}``" if row.test else ""
        rows.append((row.title, row.what, names, files, test, row.note))
    table = ".. list-table::\n   :header-rows: 1\n\n" + "\n".join(
        "   * - " + "\n     - ".join(row) for row in rows
    )
    introduction = (
        f"Where the equations, tables, figures and algorithms of {paper} are; in Python, "
        f"``rm.papers.index({paper!r})``. Files are in ``src/remora``, tests in ``tests``."
    )
    return "\n\n".join((heading(f"{paper}, every equation"), introduction, table)) + "\n"


def function_link(name: str) -> str:
    """Return a link to a public name, or another name as code."""
    public = name.startswith("rm.")
    return f":py:obj:`{name} <remora{name[2:]}>`" if public else f"``{name}``"


def files_page() -> str:
    """Return the tables of all source files: their names and first sentences."""
    folders: dict[Path, list[tuple[str, str]]] = {}
    for file in sorted(SOURCE.rglob("*")):
        if file.suffix in (".py", ".js") and "__pycache__" not in file.parts:
            folders.setdefault(file.parent, []).append((file.name, about(file)))
    parts = [
        heading("Source files"),
        "Each file of the source with its first sentence. Packages import each other as drawn:",
        ".. image:: /pictures/import_graph.png\n   :alt: The import graph of the packages",
    ]
    for folder, rows in sorted(folders.items()):
        title = f"{folder.relative_to(SOURCE.parent)}/"
        lines = [".. list-table::\n   :widths: 25 75\n"]
        lines += [f"   * - ``{name}``\n     - {text}" for name, text in rows]
        parts += [f"{title}\n{'-' * len(title)}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def about(file: Path) -> str:
    """Return the first sentence of a source file; one without is refused."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        text = ast.get_docstring(ast.parse(text)) or ""
    else:
        comment = re.match(r"\s*(?://[^\n]*\n)+|\s*/\*.*?\*/", text, re.S)
        text = re.sub(r"^\s*(//|/\*+|\*+/?)|\*/", "", comment[0], flags=re.M) if comment else ""
    if not text.strip():
        raise ValueError(f"{file} has no docstring to list it with")
    return first_sentence(text).replace("\\", "\\\\").replace("*", "\\*").replace("|", "\\|")


def write(folder: Path) -> None:
    """Write all pages into a folder: changed ones only, so that Sphinx reads no others again."""
    folder.mkdir(exist_ok=True)
    files = Reference().files()
    for old in folder.glob("*.rst"):
        if old.name not in files:
            old.unlink()
    for name, text in files.items():
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Make the pages when Sphinx starts, and shorten signatures (an extension of Sphinx)."""

    def shortened(
        app: Any,
        what: str,
        name: str,
        value: Any,
        options: Any,
        arguments: str | None,
        result: str | None,
    ) -> tuple[str | None, str | None] | None:
        if what not in ("class", "exception", "function", "method"):
            return None
        text = short_signature(value) if arguments else None
        function = inspect.unwrap(value) if callable(value) else value
        returns = getattr(function, "__annotations__", {}).get("return")
        if not inspect.isclass(value) and returns is not None:
            result = repr(written(returns, function.__module__))
        return arguments if text is None else text, result

    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference"))
    app.connect("autodoc-process-signature", shortened)
    return {"parallel_read_safe": True}
