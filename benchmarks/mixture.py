"""What late interaction and stage 1 should weigh beside section BM25; prints one Markdown table.

    python benchmarks/mixture.py HOME [HOME ...]

A home is one that was refreshed with queries; those of which figures are reported elsewhere have no say in the weights that the
program comes with, so give others. NDCG@5 of all queries of each home by mixture, and the mean over homes, best first.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import fmean

from captured import capture
from fusion import MIXTURES, scored


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("homes", nargs="+", type=Path)
    homes = parser.parse_args().homes
    captured = [capture(home) for home in homes]
    values = {mixture: [fmean(scored(one, mixture).values()) for one in captured] for mixture in MIXTURES}
    names = (f"{home.name} ({len(one.queries)} queries)" for home, one in zip(homes, captured, strict=True))
    print("| `scorer_weight` | `stage1_weight` | " + " | ".join(names) + " | mean |")
    print("| ---: | ---: |" + " ---: |" * (len(homes) + 1))
    for (of_scorer, of_stage1), found in sorted(values.items(), key=lambda item: -fmean(item[1])):
        cells = " | ".join(f"{value:.4f}" for value in (*found, fmean(found)))
        print(f"| {of_scorer} | {of_stage1} | {cells} |")


if __name__ == "__main__":
    main()
