"""What stands between the sentences of an extracted text."""

from __future__ import annotations

import pytest

from prime_pipeline.text.non_prose import last_heading, without_non_prose

FORMULA = "+rCl+x* l',k Ga( ', 1/”) ' = 0 + v=1: gv,l' = 1V t'k,v"
LISTING = (
    "[t!] BeamSearch INLINEFORM0 [1] INLINEFORM1 : Source INLINEFORM2 Do not expand INLINEFORM3 INLINEFORM4"
)


@pytest.mark.parametrize("noise", [FORMULA, LISTING, LISTING.replace("t!", "!htb")])
def test_formulas_and_listings_become_blanks(noise: str) -> None:
    text = f"We sample the tables {noise} where the variables are not zero. The rest is done by 2 workers."
    assert without_non_prose(text) == text.replace(noise, " " * len(noise))


@pytest.mark.parametrize(
    "text",
    [
        "The effect is large (F(2, 57) = 13.4, p < .001, d = .32) and not by chance.",
        "It ran 3,000, 1,000, 3,000, and 500 times for the models A, B, C, D, and E.",
        "We compare LDA, PTM, DMR, LF-LDA, WF-LDA, GPU-DMM and ours on 2 sets, e.g., on WS.",
        "The phone [t] is not in INLINEFORM0 . Then INLINEFORM1 and INLINEFORM2 grow with INLINEFORM3 .",
        "Let $p_{i,j} = q_{k,l}$ be 0.",
        "The toolkit is by the Allen Institute.",
    ],
)
def test_prose_stays(text: str) -> None:
    assert without_non_prose(text) == text


@pytest.mark.parametrize("length", ["1.1.1.1em", "0.5pt", " 3cm "])
def test_a_line_of_a_length_becomes_blanks(length: str) -> None:
    assert without_non_prose(f"{length}\nIt is {length.strip()} wide.") == (
        f"{' ' * len(length)}\nIt is {length.strip()} wide."
    )


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("It ends.An Overview of X ::: Make it easy", "An Overview of X ::: Make it easy"),
        ("The loss is DISPLAYFORM0 Results and Discussion", "Results and Discussion"),
        ("It ends. Datasets\n", "Datasets"),
        ("It ends. The approach outperforms BERT", ""),
        ("It has all. A ::: We provide it.", ""),
        ("It ends.", ""),
    ],
)
def test_the_heading_behind_the_last_sentence(text: str, heading: str) -> None:
    assert last_heading(text) == heading
    assert without_non_prose(text).split() == text.replace(heading, " ").split() if heading else text.split()
