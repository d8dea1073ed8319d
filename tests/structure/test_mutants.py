# SPDX-License-Identifier: Apache-2.0
"""The mutants of the store's rules (tests/mutation) still fit the sources that they break."""

from __future__ import annotations

import pytest
from mutation.mutants import Outcome, mutate, read_mutants, run_tests
from source_tree import REPO_ROOT


def test_every_edit_applies_once():
    texts, misfits = mutate(REPO_ROOT, read_mutants())
    assert texts and misfits == []


@pytest.mark.parametrize(
    ("text", "fits"),
    [("a(); b();", True), ("b();", False), ("a(); a();", False), (None, False)],
)
def test_the_check_itself(tmp_path, text, fits):
    edit = {"file": "x.cc", "old": "a();", "new": "if (!MUTANT) a();"}
    if text is not None:
        (tmp_path / "x.cc").write_text(text)
    texts, misfits = mutate(tmp_path, [{"name": "no a", "edit": [edit]}])
    assert (misfits == []) == fits
    assert not fits or texts == {tmp_path / "x.cc": "if (!(wc_mutant == 0)) a(); b();"}


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ("exit 0", Outcome.PASSED),
        ("exit 1", Outcome.FAILED),
        ("exit 3", Outcome.CRASH),
        ("kill -SEGV $$", Outcome.CRASH),
        ("[ $WC_MUTANT = 7 ] && exec sleep 60", Outcome.TIME_OUT),
    ],
)
def test_how_a_program_ends(script, outcome):
    time_s_max = 0.5 if outcome is Outcome.TIME_OUT else 60
    assert run_tests(["/bin/sh", "-c", script], 7, time_s_max)[0] is outcome
