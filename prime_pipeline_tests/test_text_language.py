"""Languages by their function words."""

from __future__ import annotations

import pytest

from prime_pipeline.text.language import language, script


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The model is trained on the data that we have.", "en"),
        ("Das Modell wird mit den Daten trainiert, die wir haben.", "de"),
        ("Le modèle est entraîné sur les données que nous avons.", "fr"),
        ("Модель обучена на данных", "ru-or-none"),
        ("模型在数据上训练", "CJK"),
        ("LSTM, GRU, CNN", None),
    ],
)
def test_language(text: str, code: str | None) -> None:
    assert language(text) == code or (code == "ru-or-none" and script(text) == "CYRILLIC")


def test_one_word_many_times_is_no_language() -> None:
    assert language("i i i i i e e e") is None
