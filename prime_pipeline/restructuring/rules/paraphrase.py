"""Words that paraphrase brings into any text, as data: verbs of report, general nouns, degrees and connections."""

from __future__ import annotations

from typing import Final

from prime_pipeline.text.quantities import UNITS
from prime_pipeline.text.stems import stem

_WORDS: Final = """
accept account accurate achieve across act actual adapt add additional address adjacent adopt advance affect aim allow
alternative amount analysis appear apply approach appropriate approximate argue arise arrange aspect assess assign assume attain
attempt author available average avoid aware base beat begin behave behavior belong benefit big blind bound bring
broad build built calculate call candidate capable capture carry case cast category cause cease certain challenge change check
choice choose claim clear close cited collect combine come common compare complete complex comprise compute conclude
condition conduct confirm consequence consider consist constitute constrain construct contain content contrast contribute
convert correct correspond count cover create criterion current customary data decrease deduce define degree deliver demand
demonstrate depend derive describe design desirable detail determine develop device differ difference difficult direct discard
discuss display distinct distinguish divide do doubt draw drive drop due earlier earn easy effect efficient eliminate element
emerge employ empirical enable encounter end enlarge enough ensure entail entire equal equip especially essential establish
estimate evaluate evidence evolve exact examine example exceed exclude exist expand expect experiment explain exploit explore
express extend extent extra extract face fact fail fall far fast feature feed few field fill final find first fit fix flaw
focus follow form formulate former frequent fresh full fully function further gain gap gather general generate give goal good
govern grant great group grow guide handle hard help hence high hold hurt identical identify ignore illustrate imply important improve
include incorporate increase independent indicate individual infer inferior influence inform initial input insert inside instance
intend interest introduce investigate invoke involve issue item join judge jointly keep kind know knowledge known label lack large late later latter lead
learn leave less lie like likewise limit link list little long lose low lower main maintain major make manage manner map mark match matter
maximum mean measure mechanism meet mention mere method minimum minor mirror miss mix mode moderate modify more most motivate move multiple name
namely narrow natural need new note notion number object observe obtain occur offer old omit one open operate opposite option order
original outcome outperform output overall overcome own pair part partial particular pass past pattern perform period permit piece
place plain plan play point poor popular pose position possess possible precede precise prefer prepare presence present preserve previous
principal prior probable problem proceed process procedure produce profit progress proper property propose proportion prove provide purpose pursue
quantity question quick raise range rare rate reach read ready real realize reason receive recent recommend record recover reduce refer refine
reflect regard reject relate relation release relevant reliable rely remain remark remove render repeat replace report represent
require research resemble reside resolve respect respective respond rest restrict result retain retrieve return reveal review rise role
roughly run same sample satisfy save scale score second section seek select sense separate sequence serious serve set setting settle several shape
share short show shrink side sign similar simple simply simultaneous single site situation size slight slow small sole solve sort source special
specific specify split stage stand standard start state stay stem step stop store straightforward strategy strength strong structure study
subject subset substantial substitute succeed success such suffer sufficient suggest suit suitable sum summarize superior supply support
suppose surpass syntactic system table take talk target task technique tell tend term test thank thing think thorough time tool top total toward trace
track train treat trend trial true try turn type typical unable unaffected unchanged uncommon underlie understand uniform unify unit unlike
unseen use useful usual valid value variable variant variation variety vary verify version view violate want way weak well whole wide
widespread win word work worse worst worth write yield year yet zero tackle underperform unaware absent subsequent
percent per cent million thousand billion hundred dozen half double twice approximately roughly nearly almost exactly only merely
perfect imperfect exceedingly drastically markedly considerably significantly notably clearly evidently apparently presumably
groundwork drawback advantage disadvantage weakness shortcoming merit downside upside trade-off difficulty obstacle
researcher paper article work study survey investigation reader literature community
compact dense sparse brief concise explicit implicit extensive intensive sizable sizeable huge tiny
depict denote designate term label dub entitle tag reuse reused retained contradict contrary inverse reverse vice versa
beforehand afterwards thereby whereby throughout elsewhere
union overlap disjoint discontinuous inconvenient convenient consistent inconsistent comparable incomparable
""".split()  # noqa: SIM905 (one word a line reads worse)

PARAPHRASE_STEMS: Final[frozenset[str]] = frozenset(map(stem, _WORDS))
"""Their stems."""

MEASURE_STEMS: Final[frozenset[str]] = frozenset(
    stem(word)
    for word in [
        *UNITS,
        *[
            "percent",
            "cent",
            "percentage",
            "point",
            "per",
            "hundred",
            "thousand",
            "million",
            "billion",
            "trillion",
            "dozen",
            "half",
            "twice",
        ],
        *[
            "eleven",
            "thirteen",
            "fourteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
            "thirty",
            "seventy",
            "eighty",
            "ninety",
            "seven",
        ],
        *[
            "tenth",
            "third",
            "fourth",
            "fifth",
            "fold",
        ],
    ]
)
"""Stems of number words and units: rules on numbers read them, and they say nothing new."""
