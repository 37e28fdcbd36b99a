#!/usr/bin/env python3
"""Fails unless all packages have one version and one address of their repository. With a tag, such as v1.2.3, the
version is the tag's, and there is an address: a release names it.

    ci/version.py [TAG]
"""
import json
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
# Workspaces with packages for users.
WORKSPACES = [".", "integrations/corpus", "integrations/datafusion", "integrations/python"]

packages = []
for folder in WORKSPACES:
    manifest = TREE / folder / "Cargo.toml"
    command = ["cargo", "metadata", "--no-deps", "--locked", "--format-version", "1", "--manifest-path", str(manifest)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    # Members of the root workspace that no registry gets have no version that matters.
    packages += [package for package in found if folder != "." or package["publish"] != []]


def one(field):
    """The value that all packages have."""
    values = {package[field] for package in packages}
    if len(values) > 1:
        lines = [f"  {package['name']}: {package[field]}" for package in packages]
        sys.exit("\n".join([f"{field} differs:", *lines]))
    return values.pop()


version, repository = one("version"), one("repository")
one("homepage")
if len(sys.argv) > 1:
    if sys.argv[1] != f"v{version}":
        sys.exit(f"the tag is {sys.argv[1]}, and the packages have version {version}: v{version}")
    if not repository:
        sys.exit("no package has a repository: set it in [workspace.package] of Cargo.toml (RELEASING.md)")
print(f"{len(packages)} packages of version {version}, repository {repository}")
