#!/usr/bin/env python3
"""Looks at the archives of packages that ci/publish.sh makes, and fails if a reader of a registry would miss something.

    cargo metadata --no-deps --format-version 1 | ci/archives.py FOLDER

Each archive has both licenses, and a readme without links to files and without pictures: until there is a repository, a
registry cannot show them. The manifest says what a registry lists. Every file that the code includes is in the archive.
"""
import json
import posixpath
import re
import sys
import tarfile
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
LISTED = ["description", "license", "readme", "documentation", "keywords", "categories", "rust_version"]
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)")
INCLUDED = re.compile(r'(?:#\[path = |include(?:_str|_bytes)?!\()"([^"]+)"')


def faults(package, archive):
    """The faults of a package's archive, a line each."""
    name = f"{package['name']}-{package['version']}"
    files = {posixpath.relpath(file.name, name): file for file in archive.getmembers()}
    text = lambda path: archive.extractfile(files[path]).read().decode()
    for field in LISTED:
        if not package[field]:
            yield f"no {field}"
    for path in ["LICENSE-APACHE", "LICENSE-MIT"]:
        if path not in files or not files[path].isfile() or text(path) != (TREE / path).read_text():
            yield f"no {path}"
    if package["readme"] in files:
        for picture, link in LINK.findall(text(package["readme"])):
            if picture or not link.startswith(("https://", "#")):
                yield f"{package['readme']}: a registry cannot show {link}"
    else:
        yield f"no file {package['readme']}"
    for path in files:
        if path.endswith(".rs"):
            for included in INCLUDED.findall(text(path)):
                if posixpath.normpath(posixpath.join(posixpath.dirname(path), included)) not in files:
                    yield f"{path}: {included} is not in the archive"


status = 0
for package in json.load(sys.stdin)["packages"]:
    if package["publish"] != []:
        path = Path(sys.argv[1]) / f"{package['name']}-{package['version']}.crate"
        with tarfile.open(path) as archive:
            found = list(faults(package, archive))
        print(f"{path.name}: {path.stat().st_size // 1024} KiB, {'; '.join(found) or 'complete'}")
        status |= bool(found)
sys.exit(status)
