"""tools/merge-results.py: what counts as passed, failed and skipped."""

import subprocess
import sys

import pytest
from tools import ROOT

LIT = """<testsuites><testsuite name="P" tests="3">
<testcase classname="P.Tools" name="a.test" time="0.1"/>
<testcase classname="P.Tools" name="b.test" time="0.1"><failure><![CDATA[expected string not found]]></failure></testcase>
<testcase classname="P.Tools" name="c.test"><skipped message="missing the required feature: gpu"/></testcase>
</testsuite></testsuites>"""
CTEST = """<testsuite name="c" tests="2"><testcase name="T.A" classname="T.A" status="run"><system-out>ok</system-out></testcase>
<testcase name="T.B" classname="T.B" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>b.cpp:5: Skipped
needs two cores
</system-out></testcase></testsuite>"""
PYTEST = """<testsuites><testsuite name="pytest"><testcase classname="t" name="x"><error message="fixture broke
at line 3"/></testcase></testsuite></testsuites>"""


def merge(folder, **files):
    paths = []
    for name, text in files.items():
        path = folder / f"{name}.xml"
        paths.append(path)
        if text is not None:
            path.write_text(text)
    done = subprocess.run([sys.executable, ROOT / "tools" / "merge-results.py", *paths], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


def test_all_kinds(tmp_path):
    code, lines = merge(tmp_path, lit=LIT, ctest=CTEST)
    assert code == 1
    assert lines[-1] == "2 passed, 1 failed, 2 skipped"
    assert "FAILED lit: P.Tools.b.test" in lines
    assert "SKIPPED lit: P.Tools.c.test: missing the required feature: gpu" in lines
    assert "SKIPPED ctest: T.B: needs two cores" in lines


def test_skips_alone_do_not_fail(tmp_path):
    code, lines = merge(tmp_path, ctest=CTEST)
    assert (code, lines[-1]) == (0, "1 passed, 0 failed, 1 skipped")


@pytest.mark.parametrize("text", [None, "", "<testsuites>", "<testsuites/>"], ids=["missing", "empty", "cut off", "no tests"])
def test_a_suite_without_results_fails(tmp_path, text):
    code, lines = merge(tmp_path, ctest=CTEST, lit=text)
    assert (code, lines[-1]) == (1, "1 passed, 1 failed, 1 skipped")
    assert any(line.startswith("FAILED lit: no ") for line in lines)


def test_an_error_is_a_failure(tmp_path):
    code, lines = merge(tmp_path, pytest=PYTEST)
    assert (code, lines[-1]) == (1, "0 passed, 1 failed")
    assert "FAILED pytest: t.x fixture broke at line 3" in lines
