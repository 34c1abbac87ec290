#!/usr/bin/python3
"""Merges JUnit result files: names failing tests, gives the reason of each skip, ends with "N passed, N failed".

A file that is missing, unreadable or without a passed test counts as one failure, so that a suite cannot vanish in silence.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def skip_reason(case, skipped):
    """The reason of a skip. CTest knows only that a GoogleTest was skipped; its reason is in the output."""
    output = case.findtext("system-out") or ""
    reason = re.search(r"Skipped\n(.+)", output)
    return reason.group(1).strip() if reason else skipped.get("message") or (skipped.text or "").strip() or "no reason given"


def read(path):
    """Passed names, failed names with a text, skipped names with a reason."""
    passed, failed, skipped = [], [], []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        owner = case.get("classname")
        name = case.get("name") if owner in (None, "", case.get("name")) else f"{owner}.{case.get('name')}"
        failure = next((case.find(tag) for tag in ("failure", "error") if case.find(tag) is not None), None)
        skip = case.find("skipped")
        if failure is not None:
            failed.append((name, failure.get("message") or ""))
        elif skip is not None:
            skipped.append((name, skip_reason(case, skip)))
        else:
            passed.append(name)
    return passed, failed, skipped


def main(paths):
    passed_count = failed_count = skipped_count = 0
    for path in map(pathlib.Path, paths):
        suite = path.stem
        try:
            passed, failed, skipped = read(path)
        except (OSError, ElementTree.ParseError) as error:
            print(f"FAILED {suite}: no results: {error}")
            failed_count += 1
            continue
        for name, message in failed:
            print(f"FAILED {suite}: {name} {message.splitlines()[0] if message else ''}".rstrip())
        for name, reason in skipped:
            print(f"SKIPPED {suite}: {name}: {reason}")
        if not passed:
            print(f"FAILED {suite}: no test passed")
            failed_count += not failed
        print(f"{suite}: {len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
        passed_count += len(passed)
        failed_count += len(failed)
        skipped_count += len(skipped)
    print(f"{passed_count} passed, {failed_count} failed" + (f", {skipped_count} skipped" if skipped_count else ""))
    return 1 if failed_count or not passed_count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
