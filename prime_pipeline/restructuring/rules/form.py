"""Rules on the form of a rewrite: placeholders, length, end, echoes, chatter, language. None of them reads a fact."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from prime_pipeline.records import Finding
from prime_pipeline.restructuring.rules.features import Features, Sentence
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.restructuring.rules.paraphrase import PARAPHRASE_STEMS
from prime_pipeline.restructuring.rules.support import novelty
from prime_pipeline.text.language import language, script
from prime_pipeline.text.non_prose import last_heading

_SENTENCE_END: Final = re.compile(r"[.!?…。！？:;][\"'”’»)\]}*_`$]*\s*\Z|\]\]\s*\Z|\$\$?\s*\Z|`\s*\Z")
_MATH: Final = re.compile(r"\$[^$\n]{1,300}\$")
_MIN_OWN_WORDS: Final = 5
_LIST_ITEM: Final = re.compile(r"\s*(?:[-*+•]|\(?\w{1,3}[.)])\s")
_HEADING: Final = re.compile(r"^ {0,3}#{1,6}\s+\S.*$|^\S[^\n]*\n(?:={3,}|-{3,})\s*$|^\*\*[^*\n]{1,80}\*\*:?\s*$", re.MULTILINE)  # fmt: skip
_TAG: Final = re.compile(
    r"<(?:!--|!\[CDATA|!DOCTYPE|\?xml)|</?(?P<name>[A-Za-z][\w:-]{0,40})"
    r"(?:\s*/?>|(?<!\w<\w)(?<!\w<\w\w)(?=[\s/]+[\w:@-]{1,40}\s*=)|(?<=<script|<iframe)\b|(?<=<img|<svg)\b)",
    re.IGNORECASE,
)
"""Tags that are closed or have attributes, and those that load or run something however they go on; ``a <b`` and ``<5 ms`` are none."""
_OPENING_CHATTER: Final = re.compile(
    r"""\A\W*(?:sure\b|certainly\b|of\ course\b|absolutely\b|okay\b|great\b[,!]|here(?:\ is|['’]s|\ are|\ you)\b|below\ is\b|the\ following\ is\b
    |as\ an\ ai\b|i(?:['’]m|\ am)\ (?:sorry|unable|happy)|i\ (?:can(?:not|['’]t)|have\ (?:rewritten|revised|condensed))\b|sorry\b|unfortunately,?\ i\b
    |(?:rewritten|revised|condensed|improved|restructured|compressed|rewrite)(?:\ (?:version|text|section|body|passage|paragraph))?\ ?\**:
    |(?:this|the)\ (?:is\ (?:a|the)\ )?(?:rewritten|revised|condensed)\b|as\ requested\b|thank)""",
    re.IGNORECASE | re.VERBOSE,
)
_CHATTER: Final = re.compile(
    r"""\b(?:let\ me\ know|i\ hope\ (?:this|that)|feel\ free\ to|as\ an\ ai\ (?:language\ )?(?:model|assistant)|hope\ this\ helps|happy\ to\ (?:help|assist)
    |would\ you\ like|as\ requested|(?:here\ is|here['’]s|below\ is)\ (?:the|a|your|my)\ \w*\ ?(?:rewritten|revised|condensed|denser|version|rewrite)
    |i(?:\ have|['’]ve)\ (?:rewritten|kept|preserved|retained|condensed)|i\ can(?:not|['’]t)\ (?:help|assist|rewrite|comply|provide)
    |(?:the|this)\ (?:rewritten|revised|condensed)\ (?:section|text|version|passage)|note\ that\ (?:this|the)\ (?:rewrite|revision|version)
    |all\ (?:numbers|facts|details|information|figures)\ (?:have\ been|were|are)\ (?:kept|preserved|retained))\b""",
    re.IGNORECASE | re.VERBOSE,
)
_THING: Final = r"(?:negation|number|unit|acronym|name|fact|detail|statement|sentence|reference|placeholder|heading|finding|error|mistake)s?"
_DONE: Final = r"(?:is|are|was|were|has\ been|have\ been)\ (?:now\ |again\ |all\ |also\ )*"
_ABOUT_TEXT: Final = re.compile(
    rf"""(?:\bcame\ back\ as\ (?:it|they)\ (?:was|were)|\b(?:not\ in|nothing\ in|language\ of|what|that)\ the\ raw\ text\b|\b(?:the|this|my)\ (?:\w+\ )?rewrit(?:e|ing)\ (?:now\ )?(?:says|does|is|was|has|keeps)\b|\A\W*talk\ about\ the\ task\b
    |\A\W*words\ of\ the\ prompt\b|\bin\ each\ other['’]s\ place\b|\bwhich\ was\ the\ other\ way\ round\b|\A\W*(?:(?:it|this|that|they)\ (?:is|was|were)\ )?the\ other\ way\ round\b|\)\ in\ the\ place\ of\b
    |\A\W*(?:(?:it|this|the\ text)\ )?ends\ in\ the\ middle\ of\ a\ sentence|\A\W*the\ end\ is\ missing\b|\A(?:\W++\b)?\S+\ was\ not\ in\ the\ (?:text|original)\b|\bnot\ in\ the\ language\ of\ the\b
    |\A\W*there\ is\ no\ text\b|\A\W*says?\ nothing\b|\A\W*(?:it\ )?(?:was\ )?(?:said|occurs)\ \d+\ times\b|\bdoes\ not\ say\ it\ at\ all\b|\b\d+\ words\ for\ \d+\b
    |\A\W*(?:(?:the|all|each)\ )?placeholders?\ (?:is|are|was|were)\ (?:now\ |all\ )*(?:not\ )?(?:in|missing|back|kept|there)\b|\[\[[^\]]*\]\]\ (?:is\ missing|occurs|was\ not)|\A\W*(?:a\ heading|markup|an\ instruction):
    |\b[a-z]+_(?:missing|invented|added|changed|repeated|order|echo|short|long)\b
    |\A\W*(?:now,?\ )?(?:it|this|that|these|they|everything|all|the\ (?:text|section|passage|paragraph|original|version|end|missing\ \w+)|(?:the|every|all|all\ the)\ {_THING})\ (?:now\ )?
        {_DONE}(?:missing|complete|completed|corrected|fixed|restored|repaired|resolved|put\ back|added\ back|unchanged|back|kept|preserved|retained|left\ out|as\ it\ was)
        (?:\ (?:before|now|again|back|here|in\ (?:the|this)\ (?:text|section|version)))*\W*\Z
    |\A\W*(?:nothing|no\ {_THING})\ (?:else\ )?{_DONE}(?:missing|left(?:\ out)?|lost|added|changed|invented|omitted)\W*\Z
    |\b(?:the|this)\ {_THING}\ {_DONE}(?:put|brought|added|taken)\ (?:back|in|out)\b
    |\A\W*(?:now,?\ )?(?:it|this|the\ (?:text|section|passage|original))\ (?:now\ )?says\b|\bwhat\ the\ (?:text|original|section)\ (?:text\ )?(?:says|does\ not\ say)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Sentences about the text or its rewriting, and the phrases of findings, which a model is told when it is asked again."""
_PROMPT: Final = re.compile(
    r"""(?:\brewrite\ the\ (?:\w+\ ){0,3}(?:section|text|passage|body)|\bkeep\ (?:every|all)\ (?:the\ )?(?:number|acronym|name|negation|fact)
    |\bdo\ not\ (?:add|invent|include|drop|omit|repeat|change|translate)\ |\btext\ to\ (?:rewrite|be\ rewritten)|\byou\ are\ (?:a|an)\ \w+
    |\b(?:same|original)\ language\ as\ the\ (?:input|text|original)|\bexplication\ and\ compression|\binstructions?\ ?:
    |\A\W*(?:section|document|title|heading(?:\ path)?)\ ?\**:\ |^\ *<?/?(?:section|body|rewrite|text|output|instructions)>
    |\breturn\ only\ the\b|\boutput\ only\ the\b|\bplaceholders?\ (?:exactly|once|must|like))""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_FILLER: Final = re.compile(
    r"""\b(?:(?:this|the)\ (?:section|passage|text|paragraph|discussion|overview|summary)\ (?:above\ )?(?:\w+ly\ )?(?:provides|offers|presents|gives|highlights|underscores|underlines
        |emphasi[sz]es|demonstrates|sheds|discusses|explores|delves|describes|outlines|explains|summari[sz]es|aims|serves|illustrates|showcases|covers|is\ (?:about|important|crucial|essential))
    |(?:it\ is|it['’]s)\ (?:important|worth|crucial|essential|also\ worth|worthwhile|interesting|clear)\ (?:to\ \w+|noting|emphasi[sz]ing|mentioning|stressing|that)
    |in\ (?:today['’]s|the\ (?:ever|rapidly|fast)[\w-]*)\ |ever-(?:evolving|changing|growing)\ |plays?\ an?\ (?:\w+\ ){0,3}(?:crucial|vital|pivotal|key|important)\ (?:\w+\ )?role
    |(?:great|paramount|utmost|immense|considerable)\ (?:importance|significance)|comprehensive\ (?:overview|understanding|picture)|valuable\ insights?
    |as\ we\ (?:can\ see|have\ seen|know)|without\ (?:a\ )?doubt|needless\ to\ say|at\ the\ end\ of\ the\ day|when\ all\ is\ said|pave\w*\ the\ way
    |(?:truly|very|quite|extremely|highly)\ (?:remarkable|exciting|fascinating|interesting|valuable|impressive|important)|testament\ to
    |in\ (?:conclusion|summary|essence)\b|to\ (?:sum\ up|summari[sz]e|conclude)\b|overall,|all\ in\ all|goes\ without\ saying|further\ research\ is\ needed)""",
    re.IGNORECASE | re.VERBOSE,
)


def placeholders(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """Each placeholder comes back once, none is made up, and their order is the raw one."""
    wanted, given = raw.placeholders, Counter(rewrite.placeholders)
    known = set(wanted)
    found = [Finding("placeholder_missing", f"{p} is missing") for p in wanted if p not in given]
    found += [
        Finding("placeholder_repeated", f"{p} occurs {n} times")
        for p, n in given.items()
        if p in known and n > 1
    ]
    found += [Finding("placeholder_invented", f"{p} was not in the text") for p in given if p not in known]
    if not found and wanted != rewrite.placeholders:
        found = [Finding("placeholder_order", "placeholders are not in their order")]
    return found


def length(raw: Features, rewrite: Features, options: GateOptions) -> list[Finding]:
    """Neither empty nor far longer or shorter than the raw text, in words."""
    n_raw, n_rewrite = len(raw.words), len(rewrite.words)
    if not n_rewrite and n_raw:
        return [Finding("empty", "there is no text")]
    if n_rewrite > options.max_length_ratio * n_raw + options.slack_words:
        return [Finding("too_long", f"{n_rewrite} words for {n_raw}")]
    if n_rewrite < options.min_length_ratio * n_raw - options.slack_words:
        return [Finding("too_short", f"{n_rewrite} words for {n_raw}")]
    return []


def truncation(raw: Features, rewrite: Features, options: GateOptions) -> list[Finding]:
    """The rewrite ends where a sentence ends, and the raw text's end is in it if its beginning is."""
    heading, text = last_heading(raw.text), rewrite.text.rstrip()
    last = text.rpartition("\n")[2]
    if (
        not _ends_well(text.removesuffix(heading))
        and (_ends_well(raw.text.rstrip().removesuffix(heading)) or last.endswith((",", "-", "(")))
        and not _is_bare_list(rewrite)
    ):
        return [Finding("truncated", f"ends in the middle of a sentence: {last[-60:]!r}")]
    if tail := _lost_tail(raw, rewrite, options):
        sources = tuple(sentence.text for sentence in tail)
        return [Finding("truncated", f"the end is missing, from {tail[0].text[:60]!r} on", sources)]
    return []


def _ends_well(text: str) -> bool:
    last = text.rstrip().rpartition("\n")[2]
    return not last or bool(_SENTENCE_END.search(last))


def _is_bare_list(features: Features) -> bool:
    """Whether the last two lines are list items without full stops, as many write them."""
    lines = [line for line in features.text.split("\n") if line.strip()][-2:]
    return len(lines) > 1 and all(_LIST_ITEM.match(line) and not _SENTENCE_END.search(line) for line in lines)


def _lost_tail(raw: Features, rewrite: Features, options: GateOptions) -> list[Sentence]:
    """The longest run of last sentences that left next to nothing; road maps do not count.

    Of one sentence alone, words of paraphrase are no trace that is missed: it may have been merged with another.
    """
    sentences = [s for s in raw.sentences if len(s.stems) > 2 and not s.is_road_map]
    once = {stem for stem, n in raw.stems.items() if n == 1}
    best = len(sentences)
    n_own = n_own_kept = n_all = n_all_kept = 0
    for start in range(len(sentences) - 1, 0, -1):
        stems = sentences[start].stems
        n_own, n_own_kept = n_own + len(stems & once), n_own_kept + len(stems & once & rewrite.stems.keys())
        n_all, n_all_kept = n_all + len(stems), n_all_kept + len(stems & rewrite.stems.keys())
        lost = (
            n_own_kept < options.min_tail_own_coverage * n_own
            and n_all_kept < options.min_tail_coverage * n_all
        )
        is_merged = start == len(sentences) - 1 and len(stems & once - PARAPHRASE_STEMS) < _MIN_OWN_WORDS
        if n_own >= _MIN_OWN_WORDS and lost and not is_merged:
            best = start
    return sentences[best:]


def markup(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """No tag and no comment of HTML or XML that the raw text lacks: what a model adds there, a browser may run."""
    known = {_tag_name(tag) for tag in _TAG.finditer(raw.prose)}
    new = {_tag_name(tag): tag[0] for tag in _TAG.finditer(rewrite.prose) if _tag_name(tag) not in known}
    return [Finding("markup_invented", f"markup: {tag[:60]!r}") for tag in new.values()]


def _tag_name(tag: re.Match[str]) -> str:
    return (tag["name"] or "!").lower()


def chatter(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """Nobody talks to the reader about the task."""
    for pattern in (_OPENING_CHATTER, _CHATTER):
        if (found := pattern.search(rewrite.prose)) and found[0].strip().lower() not in raw.prose.lower():
            return [Finding("chatter", f"talk about the task: {found[0].strip()!r}")]
    said = raw.known_prose.lower()
    for text in (line for sentence in rewrite.sentences for line in _lines(rewrite, sentence)):
        if (found := _ABOUT_TEXT.search(text)) and found[0].strip().lower() not in said:
            return [Finding("chatter", f"about the text itself: {text[:100]!r}")]
    return []


def _lines(features: Features, sentence: Sentence) -> list[str]:
    """The lines of a sentence, placeholders included."""
    return [line.strip() for line in features.text[sentence.start : sentence.end].split("\n")]


def prompt_echo(raw: Features, rewrite: Features, _: GateOptions, prompt: str = "") -> list[Finding]:
    """No phrase of an instruction, and no eight words in a row of the prompt, unless the raw text has them."""
    if (found := _PROMPT.search(rewrite.prose)) and found[0].strip().lower() not in raw.prose.lower():
        return [Finding("prompt_echo", f"an instruction: {found[0].strip()!r}")]
    of_prompt = set(_sequences(re.findall(r"\w+", prompt.lower()), 8))
    if not of_prompt:
        return []
    copied = of_prompt.intersection(_sequences(re.findall(r"\w+", rewrite.prose.lower()), 8))
    copied -= set(_sequences(re.findall(r"\w+", raw.prose.lower()), 8))
    return [Finding("prompt_echo", f"words of the prompt: {' '.join(min(copied))!r}")] if copied else []


def echo(raw: Features, rewrite: Features, options: GateOptions) -> list[Finding]:
    """Something was rewritten."""
    if not raw.words:
        return []
    one, other = (Counter(_sequences(words, 5)) for words in (raw.words, rewrite.words))
    common = 2 * (one & other).total() / max(one.total() + other.total(), 1)
    same = raw.words == rewrite.words or (one.total() > 0 and common >= options.echo_share)
    return [Finding("echo", "the text came back as it was")] if same else []


def repetition(raw: Features, rewrite: Features, options: GateOptions) -> list[Finding]:
    """No sentence twice and no loop, unless the raw text does the same."""
    before = Counter(s.text.lower() for s in raw.sentences)
    for text, n in Counter(s.text.lower() for s in rewrite.sentences if len(s.stems) > 3).items():
        if n > max(1, before[text]):
            return [Finding("repetition", f"said {n} times: {text[:60]!r}")]
    loops = Counter(_sequences(rewrite.words, 6))
    in_raw = Counter(_sequences(raw.words, 6))
    for sequence, n in loops.most_common(20):
        if n > max(options.max_loop, in_raw[sequence]):
            return [Finding("repetition", f"{n} times: {' '.join(sequence)!r}")]
    return []


def filler(raw: Features, rewrite: Features, options: GateOptions) -> list[Finding]:
    """No praise and no sentence about the text itself, unless its words are the raw text's."""
    said = raw.prose.lower()
    return [
        Finding("filler", f"says nothing: {found[0].strip()!r}")
        for sentence in rewrite.sentences
        if (found := _FILLER.search(sentence.text)) and found[0].strip().lower() not in said
        if novelty(raw, sentence.text, options).share > options.max_filler_share
    ]


def headings(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """The body only: no line is made a heading that is none in the raw text, nor is title or heading put into it."""
    known = {" ".join(found.split()) for found in _HEADING.findall(raw.prose)}
    new = (" ".join(found.split()) for found in _HEADING.findall(rewrite.prose))
    found = [heading for heading in new if heading not in known] + _told(raw, rewrite)
    return [Finding("heading_invented", f"a heading: {heading!r}") for heading in dict.fromkeys(found)]


def _told(raw: Features, rewrite: Features) -> list[str]:
    """The rewrite's lines that say only what the rewriter was told of the place: title, headings, or their path."""
    told = {_plain(line) for line in raw.context.text.split("\n")} - {""} if raw.context else set()
    own = {_plain(line) for line in raw.text.split("\n")}
    lines = [line for line in rewrite.text.split("\n") if line.strip() and _plain(line) not in own]
    return [
        " ".join(line.split()) for line in lines if told.issuperset(map(_plain, re.split(r" [>›] ", line)))
    ]


def _plain(line: str) -> str:
    """A line without what marks a heading: number, marks, case."""
    return re.sub(r"\A[\W_]*(?:\d+(?:\.\d+)*\.?\s+)?|[\W_]+\Z", "", " ".join(line.split())).casefold()


def same_language(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """The whole and every sentence are in a language that the raw text has; what it has verbatim is a quotation."""
    known = {language(raw.prose), *(language(_without_math(s.text)) for s in raw.sentences)} - {None}
    scripts = {script(s.text) for s in raw.sentences}
    if not known:
        return []
    for sentence in rewrite.sentences:
        own = language(_without_math(sentence.text))
        is_other = (own and own not in known) or script(sentence.text) not in {*scripts, None}
        if is_other and " ".join(sentence.text.split()) not in " ".join(raw.prose.split()):
            return [Finding("language", f"{own or script(sentence.text)}: {sentence.text[:60]!r}")]
    own = language(rewrite.prose)
    if (own and own not in known) or _has_lost_its_words(raw, rewrite):
        return [
            Finding("language", f"not in the language of the raw text ({', '.join(sorted(map(str, known)))})")
        ]
    return []


def _without_math(text: str) -> str:
    """The text without dollar math, whose letters are words in some languages."""
    return _MATH.sub(" ", text)


def _has_lost_its_words(raw: Features, rewrite: Features) -> bool:
    """Whether a rewrite of some length shares almost none of its words, function words included, with the raw text."""
    if len(rewrite.words) < 25:
        return False
    return sum(word in raw.vocabulary for word in rewrite.words) < 0.25 * len(rewrite.words)


def _sequences(words: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(size)), strict=False)
