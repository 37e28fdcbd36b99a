#!/usr/bin/env python3
"""Draws which file of a crate imports from which, and fails if the imports form a circle.

    ci/imports.py            fails on a circle, and prints it
    ci/imports.py --rooms    fails as well if docs/MAP.md is wrong about the folders or about the rooms of src
    ci/imports.py --print    prints each folder: its files, and what each imports

The rules:
- A node is a file. A crate's lib.rs is none: it only gives names. An inline module belongs to its file.
- A path (`crate::a::B`, `super::B`, `child::B`, or `a::B` after `use crate::a`) leads to the file that defines B. Names
  that are imported or re-exported on the way (`use`, `pub use`) are followed to their end within the crate.
- `mod x;`, and the import of a module alone (`use crate::a`), are no imports; paths that begin with it are.
- `pub use` (with any visibility) is an import only if the file itself also mentions the name.
- Paths that come in by `use a::*` are not seen. Comments, strings and `#[cfg(test)]` items do not count.

The rooms are the rows of the first table of docs/MAP.md, lowest first: the paths in a row's first cell are its files and folders.
- Each file of src has one room, by the longest path that holds it. A file imports from its own room and from lower ones.
- Each path of the page exists: what stands in backticks and has a slash, or is the target of a link.
"""
import re
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
SKIPPED = re.compile(r'''//[^\n]*|/\*.*?\*/|\bb?r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^']+|[^\\'\n])\'''', re.S)
TEST = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]")
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w:])(?:\w+::)+\w+")


class Module:
    def __init__(self, file, parent):
        self.file, self.parent = file, parent
        self.children, self.names, self.code, self.uses = {}, {}, "", []


def end_of_item(code, at):
    """Where the item ends that begins at `at`: after its `;`, or after the brace that closes it."""
    depth = 0
    for at in range(at, len(code)):
        depth += (code[at] in "{[(") - (code[at] in "}])")
        if depth == 0 and code[at] in ";}":
            break
    return at + 1


def leaves(tree):
    """Each name of `a::{b, c as d, self}`: its path, and what it is called here."""
    while "{" in tree:
        tree = re.sub(r"([\w:]*)\{([^{}]*)\}", lambda m: ",".join(m[1] + part.strip() for part in m[2].split(",")), tree)
    for leaf in filter(None, map(str.strip, tree.split(","))):
        path, _, name = leaf.removesuffix("::self").partition(" as ")
        path = tuple(path.split("::"))
        if path[-1]:  # not what follows a list's last comma
            yield path, name or path[-1]


def read(file):
    code = SKIPPED.sub(" ", file.read_text())
    while test := TEST.search(code):
        code = code[: test.start()] + code[end_of_item(code, test.end()) :]
    return code


def parse(module, code, folder):
    """Reads the modules inside, and takes them and the imports out of the code."""
    while inside := re.search(r"\bmod (\w+)\s*[;{]", code):
        name, end = inside[1], end_of_item(code, inside.start())
        files = [file for file in (folder / f"{name}.rs", folder / name / "mod.rs") if file.exists()]
        is_file = code[inside.end() - 1] == ";"
        child = module.children[name] = Module(files[0] if is_file else module.file, module)
        parse(child, read(files[0]) if is_file else code[inside.end() : end - 1], folder / name)
        code = code[: inside.start()] + code[end:]
    for public, tree in USE.findall(code):
        module.uses += [(path, name, bool(public)) for path, name in leaves(tree)]
    module.names = {name: path for path, name, _ in module.uses}
    module.code = USE.sub("", code)


def resolve(at, path, seen=frozenset()):
    """The module that the path's end is defined in (None outside of the crate), and whether the end is that module."""
    for i, name in enumerate(path):
        if name in ("crate", "super", "self"):
            at = {"crate": ROOT, "super": at.parent, "self": at}[name]
        elif name in at.children:
            at = at.children[name]
        elif name in at.names and (at, name) not in seen:
            found, whole = resolve(at, at.names[name] + path[i + 1 :], seen | {(at, name)})
            return found or (at if i > 0 else None), whole and found is not None
        else:
            return at if i > 0 else None, False
    return at, True


def imports(module, graph):
    """Adds the imports of the module, and of those in it, to the graph: file to file to an example."""
    mentioned = set(re.findall(r"\w+", module.code))
    paths = [path for path, name, public in module.uses if not public or name in mentioned]
    for path in paths + [tuple(path.split("::")) for path in PATH.findall(module.code)]:
        found, whole = resolve(module, path)
        if found and not whole and ROOT.file not in (module.file, found.file) and found.file != module.file:
            graph[module.file].setdefault(found.file, "::".join(path))
    for child in module.children.values():
        graph.setdefault(child.file, {})
        imports(child, graph)


def circle(graph):
    """A shortest path of files from one of them to itself; None if there is none."""
    found = None
    for start in graph:
        paths, reached = [[start]], set()
        for path in paths:
            for target in graph[path[-1]]:
                if target == start and (found is None or len(path) < len(found)):
                    found = path
                if target not in reached:
                    reached.add(target)
                    paths.append([*path, target])
    return found


def wrong_rooms(graph):
    """The errors of docs/MAP.md: paths that do not exist, and imports of src from a higher room."""
    page = (TREE / "docs/MAP.md").read_text()
    quoted = re.findall(r"`([\w.-]*/[\w./-]*)`", page)
    linked = [f"docs/{target}" for target in re.findall(r"\]\(([^)#:]+)", page)]
    for path in quoted + linked:
        if not (TREE / path).exists():
            yield f"{path} does not exist"

    table = re.search(r"(?:^\|.*\n)+", page, re.M)[0].splitlines()[2:]
    rooms = [re.findall(r"`([^`]+)`", row.split("|")[1]) for row in table]
    heights = {TREE / path: height for height, room in enumerate(rooms) for path in room}

    def height(file):
        return next((heights[path] for path in (file, *file.parents) if path in heights), None)

    for file, targets in graph.items():
        if height(file) is None:
            yield f"{file.relative_to(TREE)} has no room"
            continue
        for target in targets:
            if height(target) is not None and height(target) > height(file):
                names = f"{file.relative_to(TREE)} imports {target.relative_to(TREE)}"
                yield f"{names} ({targets[target]}) of a higher room"


failed = False
ROOTS = ["src/lib.rs", "crates/*/src/lib.rs", "crates/*/src/main.rs", "integrations/*/src/lib.rs", "integrations/*/src/main.rs", "benches/*/main.rs"]
for root in [root for pattern in ROOTS for root in sorted(TREE.glob(pattern))]:
    folder = root.parent
    ROOT = Module(root, None)
    parse(ROOT, read(root), folder)
    graph = {}
    imports(ROOT, graph)

    if "--rooms" in sys.argv and root == TREE / "src/lib.rs":
        for wrong in wrong_rooms(graph):
            failed = True
            print(f"docs/MAP.md: {wrong}")

    if "--print" in sys.argv:
        for room in sorted({file.parent for file in graph}):
            print(f"{room.relative_to(TREE)}/")
            for file in (file for file in graph if file.parent == room):
                targets = sorted(str(target.relative_to(folder)) for target in graph[file])
                print(f"    {file.name}: {' '.join(targets)}")

    while files := circle(graph):
        failed = True
        print("the imports of these files form a circle:")
        for file, target in zip(files, files[1:] + files[:1]):
            print(f"    {file.relative_to(TREE)} imports {target.relative_to(TREE)} ({graph[file][target]})")
        for file, target in zip(files, files[1:] + files[:1]):
            del graph[file][target]  # so that other circles are found
sys.exit(failed)
