"""Numbers, units, acronyms, names, formulas, references: what must be refused, and what must pass."""

from __future__ import annotations

from unicodedata import normalize

import pytest

from prime_pipeline.text.protected import protect
from prime_pipeline_tests.gate_run import GATE, changed, codes


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("twelve point five", "15.2", "number_invented"),
        ("14.2 percent", "41.2 percent", "number_missing"),
        (", with a decoding time of 35 milliseconds per sentence", "", "number_missing"),
        ("35 milliseconds", "35 seconds", "unit_changed"),
        ("14.2 percent to twelve point five per cent", "14.2 to 12.5", "unit_missing"),
        ("286938 sentences", "286938 words", "unit_changed"),
        ("64 million", "64 thousand", "number_missing"),
        ("word error rate (WER)", "word error rate", "acronym_missing"),
        ("(WER)", "(BLEU)", "acronym_invented"),
        (" from LibriVox", "", "entity_missing"),
        ("from LibriVox", "from LibriVox, read by Johanna Keller,", "entity_invented"),
        ("`train.py` runs the code", "a script runs the code", "inline_missing"),
        ("$\\alpha$", "$\\beta$", "inline_invented"),
        ("LibriVox and", "LibriVox (https://librivox.org) and", "url_invented"),
        ("LibriVox and", "LibriVox (Table 9) and", "reference_invented"),
    ],
)
def test_a_fault_is_refused_by_its_own_code(old: str, new: str, code: str) -> None:
    assert code in codes(changed(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("286938", "286,938"),
        ("64 million tokens", "64M tokens"),
        ("twelve point five per cent", "12.5 %"),
        ("35 milliseconds", "35 ms"),
        ("MTNet is a network", "The authors propose MTNet (BIBREF7), a new network"),
        ("`train.py` runs the code.", "`train.py` runs the code (details: Table 3)."),
        ("word error rate (WER)", "Word Error Rate (WER)"),
    ],
)
def test_a_paraphrase_passes(old: str, new: str) -> None:
    assert codes(changed(old, new)) == set()


@pytest.mark.parametrize(
    ("raw", "rewrite", "code"),
    [
        ("We train on 930.000 words.", "Training uses 930,000 words.", ""),
        ("We train on 930.000 words.", "Training uses 930,000 sentences.", "unit_changed"),
        ("There are 287 000 pairs for training.", "Training has 287,000 pairs.", ""),
        (
            "We take 80% of the data for training and the remaining data for testing.",
            "80% of the data serve for training and 20% for testing.",
            "",
        ),
        (
            "We take 80% of the data for training and never test.",
            "80% of the data serve for training and 20% for testing, never to test.",
            "number_invented",
        ),
        ("Training ran for 1 epoch on the data.", "Training on the data ran for an epoch.", ""),
        ("Training ran for 1 epoch on the data.", "Training ran on the data.", "number_missing"),
        ("We compare these two systems on news.", "These systems are compared on news.", ""),
        ("We asked two annotators about news.", "Annotators were asked about news.", "number_missing"),
        (
            "First we collect the logs, second we ask people. These steps follow.",
            "There are two steps: collecting the logs and asking people.",
            "",
        ),
        ("The card costs $350 USD today.", "Today the card costs 350 USD.", ""),
        ("We measured latency (ms/q) and memory.", "Latency (ms/q) and memory were measured.", ""),
        ("We measured latency (ms/q) and memory.", "Latency (s/q) and memory were measured.", "unit_changed"),
        ("We parse the Penn Discourse Tree-bank.", "The Penn Discourse Treebank is parsed.", ""),
        ("We use a Naive-Bayesian model of text.", "The model of text is Naive Bayes.", ""),
        (
            "The SAMSum data are dialogues.",
            "The data, from Samsung, are the SAMSum dialogues.",
            "entity_invented",
        ),
        (
            "We use Skip-Gram with Negative Sampling (SGNS) here.",
            "Skip-Gram with Negative Sampling is used here.",
            "acronym_missing",
        ),
        ("We call `one' a number word and `two' another.", "Number words are `one' and `two'.", ""),
        (
            "Someone proposed the framework BIBREF3 for parsing.",
            "Howard and Peters BIBREF3 proposed the framework for parsing.",
            "entity_invented",
        ),
        (
            "From January 20 to January 26 we saved tweets. A tweet consists of 26 main attributes.",
            "Tweets were saved from January 20 to January 26. A tweet has twenty main attributes.",
            "number_invented",
        ),
        (
            "We use two data sets. The threads cover ten events, and two events only appear in the test set.",
            "Two data sets are used. Of ten events in the threads, three appear only in the test set.",
            "number_invented",
        ),
        (
            "We use two data sets. The threads cover ten events, and two events only appear in the test set.",
            "Two data sets are used. Of ten events in the threads, two appear only in the test set.",
            "",
        ),
        ("The layers are 15-16-8-8-1 wide.", "The layers have widths of 15-16-16-8-1.", "number_invented"),
        ("The layers are 15-16-8-8-1 wide.", "The layers have widths of 15-16-8-8-1.", ""),
        ("We tune on news-test2014 only.", "The tuning set is news-test2013 only.", "entity_invented"),
        ("They write twoliners about two texts.", "They write two-liners about two texts.", ""),
        ("Ask about Shaquille O'Neal first.", "One asks about Shaquille O'Neal first.", ""),
        ("It selects cohortsBIBREF26 of users.", "Cohorts BIBREF26 of users are selected.", ""),
        (
            "It selects cohortsBIBREF261 of users.",
            "Cohorts BIBREF26 of users are selected.",
            "acronym_invented",
        ),
        ("The PDTB is large. We parse the PTDB.", "The PDTB, which is large, is parsed.", ""),
        ("The area under the curve (auc) is wide.", "Wide is the area under the curve.", "acronym_missing"),
        ("The area under the curve (auc) is wide.", "Wide is the area under the curve (auc).", ""),
        (
            "It is faster than DMR on news. With data, models run.",
            "With data, models run. It is faster than others on news.",
            "acronym_missing",
        ),
        (
            "It uses features in six families (lexical ones). Submissions 4 and 6 use others.",
            "Features in four families (lexical ones) are used. Submissions 4 and 6 use others.",
            "number_invented",
        ),
        (
            "All ran with 10 threads, and this was 10 times faster.",
            "All ran with 10 machines, and this was 10 times faster.",
            "unit_changed",
        ),
        ("All ran with 10 GPUs on news.", "On news, all ran with 10 GPU cores.", ""),
        (
            "It has tools BIBREF1 , BIBREF2 of all.",
            "It has tools BIBREF1 , Kubeflow of all.",
            "entity_invented",
        ),
        (
            "We count +rCl+x* l',k Ga( ', 1/”) ' = 7 + v=1: gv,l' = 1V t'k,v where variables are drawn.",
            "Variables are drawn for what is counted.",
            "",
        ),
        ("It has equivalencePartial alignment.", "It has equivalence and partial alignment.", ""),
    ],
)
def test_between_two_texts(raw: str, rewrite: str, code: str) -> None:
    """An empty code: it passes."""
    assert codes(rewrite, raw) == ({code} if code else set())


def test_people_may_be_called_by_what_they_do() -> None:
    raw = "Yorùbá is a language spoken by more than 40 million people in Nigeria and Benin."
    assert codes("Yorùbá, a language of Nigeria and Benin, has more than 40 million speakers.", raw) == set()
    assert codes("Yorùbá, spoken in Nigeria and Benin, is a language of 40 million users.", raw) == {
        "unit_changed"
    }


@pytest.mark.parametrize(
    ("raw", "rewrite", "wrong"),
    [
        ("Decoding takes 5 seconds per sentence.", "It decodes at 5 seconds per sentence.", "per token"),
        (
            "We mask 15% of all tokens at random.",
            "At random, 15 percent of all tokens are masked.",
            "characters",
        ),
        ("The corpus has millions of tokens.", "Millions of tokens make up the corpus.", "sentences"),
        ("It was used for over a year.", "It has been in use for over a year.", "a month"),
        ("They were used over the last few decades.", "The last few decades saw them in use.", "few years"),
        ("Tokens longer than 64 characters go.", "Tokens of 64 or more characters go.", "words"),
    ],
)
def test_what_is_measured_stays(raw: str, rewrite: str, wrong: str) -> None:
    right = {
        "per token": "per sentence",
        "sentences": "tokens",
        "a month": "a year",
        "few years": "few decades",
        "words": "characters",
    }
    assert codes(rewrite, raw) == set()
    assert "unit_changed" in codes(rewrite.replace(right.get(wrong, "tokens"), wrong), raw)


@pytest.mark.parametrize(
    ("raw", "rewrite"),
    [
        ("The average length is 73.20NG has 18,846 articles.", "The average length is 73. 20NG has 18846 articles."),
        ("We index a 5.48GB Wikipedia dump.", "A Wikipedia dump of 5.48 GB is indexed."),
        ("It has $\\sim$6,000 annotated tweets.", "It has about 6,000 annotated tweets."),
        ("This cuts errors 1.7-2.9 times.", "This cuts errors by a factor of 1.7 to 2.9."),
        ("RoBERTa is new. RoBoERTa masks anew in every epoch.", "RoBERTa, which is new, masks anew in every epoch."),
        ("The peak is at the 8th of November.", "The peak is in November, on day eight."),
        ("We rented 100 dialogues of users.", "Users gave 100 conversations, which were rented."),
    ],
)  # fmt: skip
def test_another_spelling_is_no_other_fact(raw: str, rewrite: str) -> None:
    found = codes(rewrite, raw)
    assert not {code for code in found if code.startswith(("number_", "unit_", "acronym_", "entity_missing"))}


@pytest.mark.parametrize(
    ("raw", "rewrite", "wrong", "code"),
    [
        (
            "A network of text may leak much memory. It is useful as a container for bytes of C.",
            "A network of text may leak much memory, and it is a useful container for bytes of C.",
            ("for bytes", "for characters"),
            "unit_changed",
        ),
        (
            "Retention is the number of months that a user spends here.",
            "The number of months that a user spends here is retention.",
            ("of months", "of weeks"),
            "unit_changed",
        ),
        (
            "Of green tasks, many share one thread unless they wait.",
            "Many green tasks share one thread unless they wait.",
            ("one thread", "one process"),
            "unit_changed",
        ),
        (
            "At most 10% of the total number of words in the text change.",
            "The change is of at most 10% of the total number of words in the text.",
            ("of words", "of characters"),
            "unit_changed",
        ),
        (
            "The difference is thousands of lines of code.",
            "Thousands of lines of code are the difference.",
            ("Thousands", "Hundreds"),
            "number_invented",
        ),
        (
            "The difference is thousands of lines of code.",
            "Several thousand lines of code are the difference.",
            ("Several thousand lines", "Lines"),
            "number_missing",
        ),
        (
            "It wraps a vector of well-formed UTF-8 data.",
            "A vector of well-formed UTF-8 data is wrapped.",
            ("UTF-8", "UTF-16"),
            "number_invented",
        ),
        (
            "We join SemEval-2015 and SemEval-2016 for training.",
            "For training, SemEval-2015 and SemEval-2016 are joined.",
            ("SemEval-2016", "SemEval-2013"),
            "number_invented",
        ),
        (
            "The syntax is kept for post-1.0 features of operators.",
            "For post-1.0 features of operators, the syntax is kept.",
            ("post-1.0", "post-1.1"),
            "number_missing",
        ),
        (
            "It is clear how features of the language will work at 1.0, so we decide.",
            "As it is clear how the language's features will work at 1.0, we decide.",
            (" at 1.0", ""),
            "number_missing",
        ),
        (
            "A previous run from before Rust 1.0 found errors. The feature was stabilized late as part of Rust 1.0.",
            "A previous run, before Rust 1.0, found errors. As part of Rust 1.0, the feature was stabilized late.",
            (", before Rust 1.0,", ""),
            "number_missing",
        ),
    ],
)
def test_what_stands_in_a_place_stays(raw: str, rewrite: str, wrong: tuple[str, str], code: str) -> None:
    assert codes(rewrite, raw) == set()
    assert code in codes(rewrite.replace(*wrong), raw)


def test_the_usual_words_of_a_field_are_no_units() -> None:
    raw = "The core training procedure of machine translation uses news."
    assert codes("Machine translation uses news in its main training process.", raw) == set()


def test_inline_code_mentions_no_acronym() -> None:
    raw = "There is no variant of TLS for static data, since the `std::tls` module starts late."
    assert codes("As the `std::tls` module starts late, TLS has no variant for static data.", raw) == set()
    without = "As the `std::tls` module starts late, there is no variant for static data."
    assert codes(without, raw) == {"acronym_missing"}


def test_what_a_text_calls_itself_is_no_fact() -> None:
    raw = "As should be clear by the tone of this {}, the hatch is subtle."
    assert codes("The hatch is subtle.", raw.format("RFC")) == set()
    assert codes("The hatch is subtle.", raw.format("NLP task")) == {"acronym_missing"}


def test_names_of_one_letter_and_marks() -> None:
    raw = "Sugar for monads may come, as in C++11."
    assert codes("As in C++11, sugar for monads may come.", raw) == set()
    assert codes("As in F# and C++11, sugar for monads may come.", raw) == {"acronym_invented"}


def test_composed_and_decomposed_letters_are_the_same() -> None:
    decomposed = normalize(
        "NFD", "We parse 3 files of the Global Voices Yorùbá corpus. It has 5 parts and a name."
    )
    assert (
        codes(
            "Of the Global Voices Yorùbá corpus, 3 files are parsed. It has 5 parts and a name.", decomposed
        )
        == set()
    )
    raw = protect(decomposed)
    rewrite = "The corpus has 5 parts and a name."
    found = GATE.patch(raw, rewrite, GATE.findings(raw, rewrite))
    assert found is not None
    assert found.appended == ("We parse 3 files of the Global Voices Yorùbá corpus.",)


def test_a_version_keeps_no_other_number() -> None:
    raw = "Inspired by Software 2.0, they were controversial two years ago in the industry."
    assert (
        codes("Two years ago in the industry they were controversial, inspired by Software 2.0.", raw)
        == set()
    )
    assert "number_missing" in codes(
        "First in the industry they were controversial, inspired by Software 2.0.", raw
    )
