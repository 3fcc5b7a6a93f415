from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.text.quantities import quantities


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12.5", "12.5"),
        ("1,000", "1000"),
        ("21 350 992", "21350992"),
        ("64M", "64000000"),
        ("50k", "50000"),
        ("5 million", "5000000"),
        ("five million", "5000000"),
        ("two hundred and five", "205"),
        ("twenty-five", "25"),
        ("twelve point five", "12.5"),
        ("3 \\times 10^{-4}", "0.0003"),
        ("1e-5", "0.00001"),
        ("(-0.5)", "-0.5"),
        ("$10,417$", "10417"),
        ("half", "0.5"),
        ("12Hidden", "12"),
        ("post-1.1", "1.1"),
        ("top-5", "5"),
    ],
)
def test_values(text: str, value: str) -> None:
    (found,) = quantities(text)
    assert found.value == Decimal(value)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("12.5 %", "%"),
        ("12.5 per cent", "%"),
        ("$(4\\%)$", "%"),
        ("2 percentage points", "pp"),
        ("50ms", "ms"),
        ("50 milliseconds", "ms"),
        ("7-day", "day"),
        ("10x faster", "×"),
        ("€5", "€"),
        ("US$5", "$"),
        ("5 dollars", "$"),
        ("16 GB", "GB"),
        ("400 tokens", ""),
    ],
)
def test_units(text: str, unit: str) -> None:
    (found,) = quantities(text)
    assert found.unit == unit


def test_a_list_shares_its_unit() -> None:
    assert [q.unit for q in quantities("5, 10 and 20 %; from 3 to 5 ms")] == ["%", "%", "%", "ms", "ms"]


@pytest.mark.parametrize(
    "name", ["word2vec", "SemEval-2017", "20bn-something", "3D", "CzEng16", "no one", "x_2"]
)
def test_digits_of_names_are_no_numbers(name: str) -> None:
    assert quantities(name) == []


def test_what_a_number_counts() -> None:
    (found,) = quantities("50,000 parallel sentences of German")
    assert found.phrase == ("parallel", "sent")
    assert found.counted == {"sent"}


@given(st.text())
def test_offsets_show_the_number(text: str) -> None:
    for found in quantities(text):
        assert 0 <= found.start < found.end <= len(text)


@given(st.integers(0, 10**12))
def test_separators_change_no_value(number: int) -> None:
    assert (
        [q.value for q in quantities(f"{number:,}")] == [q.value for q in quantities(str(number))] == [number]
    )


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("The contribution is twofold: an attack and a defence.", ""),
        ("The goals of this work are three-fold.", ""),
        ("Our motivation is twofold", ""),
        ("Speed rises by a twofold margin.", "×"),
        ("The cost is threefold that of before.", "×"),
    ],
)
def test_a_fold_that_counts_what_follows_multiplies_nothing(text: str, unit: str) -> None:
    assert [quantity.unit for quantity in quantities(text)] == [unit]
