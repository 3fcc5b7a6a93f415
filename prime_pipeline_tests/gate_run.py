"""A raw text, a faithful rewrite of it, and what the gate says to changes of it."""

from __future__ import annotations

from prime_pipeline.restructuring.gate import FidelityGate
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.text.entities import RuleEntityFinder
from prime_pipeline.text.protected import protect

RAW = """In this paper we present MTNet, a network for speech translation BIBREF7. We train it on 286,938 sentences \
from LibriVox and 64M tokens of text (Smith et al., 2019). The word error rate (WER) falls from 14.2% to 12.5%, \
and decoding takes 35 ms per sentence. Unlike earlier systems, MTNet does not use a pretrained encoder, because \
transcripts are not available for all languages. MTNet outperforms BaseNet on every test set. Note that BaseNet fails \
to converge without warm-up. The learning rate is $\\alpha$ and the code runs with `train.py`. Table 3 shows details."""

FAITHFUL = """MTNet is a network for speech translation. Its training data are 286938 sentences from LibriVox and 64 \
million tokens of text. It lowers the word error rate (WER) from 14.2 percent to twelve point five per cent, with a \
decoding time of 35 milliseconds per sentence. MTNet works without a pretrained encoder, as transcripts are \
unavailable for some languages; earlier systems use one. On every test set, MTNet outperforms BaseNet, which does not converge \
without warm-up. The learning rate is $\\alpha$, and `train.py` runs the code."""

GATE = FidelityGate(
    GateOptions(),
    RuleEntityFinder(),
    prompt="Rewrite what follows so that a machine reads every fact in it at once.",
)


def codes(rewrite: str, raw: str = RAW, gate: FidelityGate = GATE, context: str = "") -> set[str]:
    """The codes of what speaks against a rewrite."""
    return {finding.code for finding in gate.findings(protect(raw), rewrite, context)}


def changed(old: str, new: str) -> str:
    """The faithful rewrite with one place changed."""
    assert FAITHFUL.count(old) == 1, old
    return FAITHFUL.replace(old, new)
