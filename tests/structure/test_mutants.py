# SPDX-License-Identifier: Apache-2.0
"""The mutants of the store's rules (tests/mutation) still fit the sources that they break."""

from __future__ import annotations

import pytest
from mutation.mutants import mutate, read_mutants
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
