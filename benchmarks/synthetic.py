"""A corpus of any size that is like a real one where it matters for time and memory, and queries for it.

Number and length of sections, headings, and the lengths and stop words of questions are drawn from QASPER papers, and nine of
ten words from the unigrams of these papers, so that stop words and Zipf's law are theirs. The other words are made up: each document
repeats a few of its own, and these are drawn from a distribution whose vocabulary never ends, so that it grows with the corpus as it does in
real text (Heaps' law). Word order is random: nothing here says anything about the quality of retrieval.

Document ``i`` is the same in every corpus and in every process: a larger corpus begins with the smaller one.

    python benchmarks/synthetic.py FOLDER --documents 1000 --data DIR/qasper-mini/qasper-mini.json

writes Markdown files; other benchmarks take documents from here without files.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prime_pipeline.records import Document, Heading, Section
from prime_pipeline.text.stop_words import STOP_WORDS

OWN_SHARE = 0.1
"""Share of a document's words that are drawn from its own ones."""
OWN_WORDS = 60
"""Made-up words of a document."""
OWN_EXPONENT = 1.1
"""Of the Zipf distribution that these are drawn from; the closer to 1, the faster the vocabulary grows."""
OWN_HEADING_SHARE = 0.5
"""Share of headings that hold a word of the document's own."""
MAX_WORDS_PER_SECTION = 2_000
"""A longer section of the papers (the longest are appendices) is drawn as one of this length."""
SENTENCE_WORDS = (8, 30)
PARAGRAPH_SENTENCES = 5

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9'-]*")
_SYLLABLES = [consonant + vowel for consonant in "bdfghklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True)
class Text:
    """A synthetic document before it has a form: title, abstract, and sections of heading and text."""

    number: int
    title: str
    abstract: str
    sections: tuple[tuple[str, str], ...]

    @property
    def doc_id(self) -> str:
        return doc_id_of(self.number)

    @property
    def markdown(self) -> str:
        parts = [f"# {self.title}\n\n{self.abstract}"]
        parts += [f"## {heading}\n\n{text}" for heading, text in self.sections]
        return "\n\n".join(parts) + "\n"

    @property
    def document(self) -> Document:
        """What the Markdown is parsed to, but for the lines."""
        head = f"# {self.title}\n\n"
        title = (Heading(1, self.title, 1),)
        sections = [Section(0, "preamble", "", (), f"{head}{self.abstract}\n\n", len(head), title)]
        for ordinal, (heading, text) in enumerate(self.sections, start=1):
            head = f"## {heading}\n\n"
            own = (Heading(2, heading, 1),)
            sections.append(
                Section(ordinal, "section", heading, (heading,), f"{head}{text}\n\n", len(head), own)
            )
        return Document(self.doc_id, self.title, "heading", tuple(sections), self.doc_id, "text/markdown")


def doc_id_of(number: int) -> str:
    """Path and id of a document; in order of number."""
    return f"{number // 1000:03}/{number:06}.md"


class SyntheticCorpus:
    """Documents and queries by number.

    Args:
        data: ``qasper-mini.json`` or another file of that form.
        seed: Another one gives another corpus.
        max_sections: Of a document, beside its abstract.
    """

    def __init__(self, data: Path, seed: int = 0, max_sections: int | None = None) -> None:
        papers = json.loads(data.read_text(encoding="utf-8")).values()
        texts = [["\n".join(section["paragraphs"]) for section in paper["full_text"]] for paper in papers]
        words = Counter(w.lower() for sections in texts for text in sections for w in _WORD.findall(text))
        self._seed = seed
        self._words = np.array(sorted(words), dtype=object)
        counts = np.array([words[word] for word in self._words], dtype=np.float64)
        self._cumulative = np.cumsum(counts / counts.sum())
        self._n_sections = [len(sections[:max_sections]) for sections in texts]
        lengths = [len(_WORD.findall(text)) for sections in texts for text in sections]
        self._lengths = [min(max(length, 5), MAX_WORDS_PER_SECTION) for length in lengths]
        self._abstract_lengths = [max(20, len(_WORD.findall(paper["abstract"]))) for paper in papers]
        names = [section["section_name"] or "Results" for paper in papers for section in paper["full_text"]]
        self._headings = [name.split(" ::: ")[-1].strip() or "Results" for name in names]
        self._questions = [
            [word.lower() for word in _WORD.findall(qa["question"])]
            for paper in papers
            for qa in paper["qas"]
        ]

    def text(self, number: int) -> Text:
        """The document of a number."""
        chance = np.random.default_rng([self._seed, number])
        own = self._own_words(chance)
        n_sections = int(chance.choice(self._n_sections))
        title = self._heading(chance, own, n_own=2)
        abstract = self._prose(chance, own, int(chance.choice(self._abstract_lengths)))
        sections = []
        for length in chance.choice(self._lengths, n_sections):
            has_own = chance.random() < OWN_HEADING_SHARE
            heading = self._heading(chance, own, n_own=1) if has_own else str(chance.choice(self._headings))
            sections.append((heading, self._prose(chance, own, int(length))))
        return Text(number, title, abstract, tuple(sections))

    def documents(self, n_documents: int) -> Iterator[Document]:
        """The first documents, in order of id."""
        return (self.text(number).document for number in range(n_documents))

    def query(self, number: int, n_documents: int) -> str:
        """A query about one of the first documents: a real question whose content words are the document's."""
        chance = np.random.default_rng([self._seed, number, 1])
        text = self.text(int(chance.integers(n_documents)))
        section = text.sections[int(chance.integers(len(text.sections)))][1]
        content = sorted({w for w in _WORD.findall(section.lower()) if w not in STOP_WORDS and len(w) > 2})
        question = self._questions[int(chance.integers(len(self._questions)))]
        return " ".join(
            word if word in STOP_WORDS or not content else str(chance.choice(content)) for word in question
        )

    def write(self, folder: Path, end: int, start: int = 0) -> None:
        """The documents of these numbers as Markdown files."""
        for number in range(start, end):
            text = self.text(number)
            path = folder / text.doc_id
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.markdown, encoding="utf-8")

    def _own_words(self, chance: np.random.Generator) -> np.ndarray:
        ranks = chance.zipf(OWN_EXPONENT, OWN_WORDS)
        return np.array([_made_up(int(rank)) for rank in ranks], dtype=object)

    def _drawn(self, chance: np.random.Generator, n_words: int) -> np.ndarray:
        at = np.searchsorted(self._cumulative, chance.random(n_words))
        drawn: np.ndarray = self._words[np.minimum(at, len(self._words) - 1)]
        return drawn

    def _heading(self, chance: np.random.Generator, own: np.ndarray, n_own: int) -> str:
        words = [*self._drawn(chance, 2), *chance.choice(own, n_own)]
        return " ".join(str(word) for word in words).capitalize()

    def _prose(self, chance: np.random.Generator, own: np.ndarray, n_words: int) -> str:
        """Sentences in paragraphs, of about so many words."""
        words = self._drawn(chance, n_words)
        is_own = chance.random(n_words) < OWN_SHARE
        # The smaller of two draws: some of the own words are what the document is about, others are named once.
        favored = np.minimum(*chance.integers(len(own), size=(2, n_words)))
        words[is_own] = own[favored[is_own]]
        lengths = chance.integers(*SENTENCE_WORDS, size=n_words // SENTENCE_WORDS[0] + 1)
        sentences, start = [], 0
        for length in lengths:
            if start >= n_words:
                break
            sentence = " ".join(words[start : start + length])
            sentences.append(f"{sentence[0].upper()}{sentence[1:]}.")
            start += length
        paragraphs = [
            " ".join(sentences[at : at + PARAGRAPH_SENTENCES])
            for at in range(0, len(sentences), PARAGRAPH_SENTENCES)
        ]
        return "\n\n".join(paragraphs)


def _made_up(rank: int) -> str:
    """The made-up word of a rank; no two ranks below ten million share one."""
    rank %= 10_000_000
    syllables: list[str] = []
    while rank or len(syllables) < 2:
        rank, at = divmod(rank, len(_SYLLABLES))
        syllables.append(_SYLLABLES[at])
    return "".join(syllables) + "x"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=1_000)
    parser.add_argument("--data", type=Path, required=True, help="qasper-mini.json")
    given = parser.parse_args()
    SyntheticCorpus(given.data).write(given.folder, given.documents)


if __name__ == "__main__":
    main()
