#!/usr/bin/env python3
"""Checks that docs/reference.md has each name that `using namespace tally` makes visible; internal names belong in tally::detail.

Visits every header that a public header includes, directly or not. tests/repository/reference.py defines which names are public.
"""
import re
import sys

import reference


def reached():
    to_visit, found = [reference.SRC / door for door in (*reference.DOORS, reference.OWN)], []
    while to_visit:
        header = to_visit.pop(0)
        if header not in found:
            found.append(header)
            to_visit += [reference.SRC / name for name in re.findall(r'^\s*#\s*include "tally/(.*)"', header.read_text(), re.M)]
    return found


def main():
    public = set().union(*reference.public_names().values())
    found = {}
    for header in reached():
        source = reference.Source(header.read_text())
        for entry in reference.entries(source):
            if not entry.space and not entry.alias:
                found.setdefault(entry.name, f"src/{header.relative_to(reference.SRC)}:{entry.first}")
    hidden = [f"{place}: tally::{name} is not in docs/reference.md" for name, place in found.items() if name not in public]
    print("\n".join(hidden or [f"{len(found)} names in tally::, each in docs/reference.md"]))
    return 1 if hidden or len(found) < 100 else 0


sys.exit(main())
