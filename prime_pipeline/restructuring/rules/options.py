"""The thresholds of the fidelity gate, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GateOptions:
    """Where the gate draws its lines. The defaults were settled on rewrites of scholarly sections.

    Attributes:
        min_length_ratio: Words of the rewrite over words of the raw text. Dense faithful rewrites go down to about a
            half; below 0.3 whole statements are gone.
        max_length_ratio: Explication may lengthen a terse text a little; more is padding.
        slack_words: Added to the upper bound and subtracted from the lower one, for a text of a few words has no
            meaningful ratio.
        min_tail_coverage: Share of the content words of the raw text's end that must come back; a cut-off rewrite
            has less than half of them by chance, a paraphrase about three quarters.
        min_tail_own_coverage: The same for words that no other raw sentence has: a cut-off rewrite has next to none.
        min_sentence_coverage: The same for any one raw sentence of six content words or more that holds nothing else
            a rule looks for; lower, since compression may fold a sentence into two words.
        max_novel_share: Share of a clause's content words that the raw text does not have. Faithful clauses stay below
            a half, invented ones above.
        min_novelty: So many such words at least; one or two are synonyms.
        paraphrase_weight: What a word counts in both that belongs to the vocabulary of paraphrase.
        max_filler_share: The same share for a sentence with a stock phrase of padding, which is suspicious already.
        min_names_kept: Share of the raw text's names that must stay, capitalised phrases included, which compression
            may turn into common nouns; coined names (``word2vec``) must all stay.
        echo_share: Share of five-word sequences that both texts have in common above which nothing was rewritten.
        max_loop: How often a sequence of six words may occur, if the raw text has it less often.
    """

    min_length_ratio: float = 0.3
    max_length_ratio: float = 1.3
    slack_words: int = 12
    min_tail_coverage: float = 0.62
    min_tail_own_coverage: float = 0.25
    min_sentence_coverage: float = 0.12
    max_novel_share: float = 0.55
    min_novelty: float = 2.0
    paraphrase_weight: float = 0.7
    max_filler_share: float = 0.4
    min_names_kept: float = 0.6
    echo_share: float = 0.98
    max_loop: int = 2
