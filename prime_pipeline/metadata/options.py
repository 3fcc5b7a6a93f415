"""What can be chosen about metadata synthesis; where choices come from is for the settings to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Reading = Literal["default", "paper_literal", "full_text"]


@dataclass(frozen=True, slots=True)
class MetadataOptions:
    """The options of metadata synthesis. The first three are the PRIME paper's (section 3.3), with its values.

    Attributes:
        n_terms: Discriminative terms per document.
        alpha: Positional decay: a term that first occurs at the very end keeps ``exp(-alpha)`` of its score.
        beta: Factor for a term that occurs in a heading, above 0.
        reading: ``paper_literal`` counts every word between blanks, stop words too, and embeds title, terms and
            H2 headings; ``default`` leaves out words that tell nothing and adds the document's lead; ``full_text``
            counts like it and embeds the document's text, up to the encoder's window, in the place of metadata.
        max_headings: Distinctive headings per metadata text, the first ones of the document.
        heading_share: A heading is distinctive if at most this share of the documents has it (or only one).
        min_lead_words: The lead goes on into the next section until it has this many words.
        max_characters: Longest text handed to the encoder's tokenizer, which then cuts it to the encoder's window.
            The value holds a window of 512 word pieces of any language with room to spare.
    """

    n_terms: int = 5
    alpha: float = 0.3
    beta: float = 2.0
    reading: Reading = "default"
    max_headings: int = 12
    heading_share: float = 0.05
    min_lead_words: int = 40
    max_characters: int = 4000
