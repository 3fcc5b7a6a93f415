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
        min_stray_share: Share of a sentence's content words that no three neighbouring sentences of the raw text have,
            from which its meaning is compared. An extract has none, and most sentences of a faithful rewrite less.
        min_compared_stems: Content words of a sentence that is compared; less is like nothing.
        min_similarity: Cosine to the raw text that such a sentence must reach, as all-MiniLM-L6-v2 measures it: of
            faithful sentences 2 % stay below, of invented ones about two thirds.
        similarity_per_stray: What is asked in addition, for a share of stray words that is larger by one: the fewer
            words are the raw text's, the more the meaning has to be.
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
    min_stray_share: float = 0.35
    min_compared_stems: int = 3
    min_similarity: float = 0.55
    similarity_per_stray: float = 0.8
    max_filler_share: float = 0.4
    min_names_kept: float = 0.6
    echo_share: float = 0.98
    max_loop: int = 2
