"""The lexical form: what it folds, and that folding twice changes nothing."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.text.normal_form import lexical_form

# Characters on which one round of folding and composing is not enough, or that change length.
AWKWARD = st.text(st.sampled_from("ΐΰᾳᾴͅ\u0301\u0308\u0300\u0327ßẞİıſﬁΣςǰKÅ₂½ﷺ각A"), max_size=8)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Straße", "strasse"),
        ("STRASSE", "strasse"),
        ("ﬁnance", "finance"),
        ("H₂O", "h2o"),
        ("Cafe\u0301", "café"),
        ("ＡＢＣ", "abc"),
        ("ΣΑΣ", "σασ"),
        ("C++ NEAR/3", "c++ near/3"),
        ("", ""),
    ],
)
def test_folds(text: str, form: str) -> None:
    assert lexical_form(text) == form


@given(st.text() | AWKWARD)
def test_is_idempotent_and_composed_whatever_the_composition_of_the_input(text: str) -> None:
    form = lexical_form(text)
    assert lexical_form(form) == form
    assert unicodedata.is_normalized("NFKC", form)
    assert lexical_form(unicodedata.normalize("NFD", text)) == lexical_form(
        unicodedata.normalize("NFC", text)
    )


def test_ends_for_every_character() -> None:
    for code in range(sys.maxunicode + 1):
        form = lexical_form(chr(code))
        assert unicodedata.normalize("NFKC", form.casefold()) == form
