# SPDX-License-Identifier: Apache-2.0
"""The prose linter finds what is planted, leaves good prose alone, and knows the pages that are held to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose.__main__ import main, pages, sources
from tests.prose.rule import check, phrases
from tests.prose.source import check_docstrings, check_source

ROOT = Path(__file__).resolve().parents[2]
GOOD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
# A title

The agent starts each flow, e.g. `first`, at its time (Fig. 3 shows it).
It says: *"the path is valid"*.

- **A title in bold.** The sentence of an item.
  A second one.
- [A link](ADDRESS) does not make a line long.

```console
$ this is code, in which nothing is checked. Not even two sentences. Or what is told of it
```

| a table | may have long rows. And several sentences in a cell, which a page of Markdown cannot break into lines |
|---|---|
""".replace("ADDRESS", "https://example.org/" + "long/" * 30)


def rules(text: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.rule) for finding in check(text)]


def test_plain_prose_has_no_finding() -> None:
    assert check(GOOD) == []


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("The module told of an exit.", "phrase"),
        ("The run cannot be begun.", "phrase"),
        ("It refers to an entry which there is not.", "phrase"),
        ("The files lie in a directory.", "phrase"),
        ("Whoever uses it knows. That is two sentences.", "sentence"),
        ("A line " + "that goes on " * 9 + "ends late.", "line"),
        ("One " + "word\n" * 40 + "too many.", "sentence"),
        ("It is very unique.", "uncomparables"),
    ],
)
def test_a_planted_habit_is_found_at_its_line(line: str, rule: str) -> None:
    before = GOOD.count("\n")
    found = rules(f"{GOOD}\n{line}\n")
    assert (before + 2, rule) in found
    assert {number for number, _ in found} == {before + 2}


def test_a_phrase_that_a_line_break_divides_is_found() -> None:
    assert rules("Modules that tell\nof an exit write it.") == [(1, "phrase")]


def test_phrases_count_in_tables_and_not_in_code_or_quotations() -> None:
    assert rules("| a table | tells of it |") == [(1, "phrase")]
    assert rules("The paper writes “it tells of an exit”, and the code `tells of`.") == []


def test_every_rule_of_the_list_compiles_and_says_what_to_write() -> None:
    assert len(phrases()) > 20
    assert all(instead for _, instead in phrases())


def test_every_page_is_linted() -> None:
    names = {str(page.relative_to(ROOT)) for page in pages()}
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/index.md", "docs/algorithms/search.md"} <= names
    assert {"howdah/errors.py", "docs/profile-reference.md", "reports/measures.yaml", "profiles/quick.yaml"} <= {
        str(file.relative_to(ROOT)) for file in sources()
    }


def test_what_a_program_says_is_searched_and_what_it_is_told_is_not(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        '"""It tells of itself."""\n\n# There is none.\ndef say(name):\n    """Told of."""\n'
        '    print("a plain text", f"the module {name} tells of an exit")\n'
    )
    assert [(finding.line, finding.message) for finding in check_source(file)] == [
        (6, "“tells of”; better: reports, lists, describes")
    ]
    page = tmp_path / "page.html.j2"
    page.write_text("<p>Plain.</p>\n<p>Runs that cannot be begun.</p>\n")
    assert [finding.line for finding in check_source(page)] == [2]


def test_docstrings_are_searched_for_phrases_and_long_sentences() -> None:
    long = " ".join(["word"] * 37)
    text = f'"""Plain.\n\n{long}.\n"""\n\n# Told of.\nclass A:\n    """Tells of ``anew``."""\n'
    assert [(finding.line, finding.rule) for finding in check_docstrings(text)] == [(3, "sentence"), (8, "phrase")]


def test_the_words_of_others_stay_as_they_are() -> None:
    assert len(list(check_docstrings('"""A paper says "to utilize"; this utilizes it."""\n'))) == 1
    assert list(check_docstrings('"""A paper says "to utilize the capacity"."""\n')) == []


def test_a_docstring_is_read_as_its_parts() -> None:
    """Items of a list, formulas and definitions that a semicolon separates are no sentence together."""
    half = " ".join(["word"] * 20)
    assert (
        list(
            check_docstrings(f'"""``a`` is {half}; ``b`` is {half}.\n\n- {half}\n- {half}\n\n    {half} = {half}\n"""')
        )
        == []
    )
    found = list(
        check_docstrings(f'def f():\n    """Plain.\n\n    ``a`` is here; ``b`` is {half}\n    and {half}.\n    """')
    )
    assert [(finding.line, finding.rule) for finding in found] == [(4, "sentence")]


def test_docstrings_of_the_program_alone_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.prose.source._PACKAGE", tmp_path / "howdah")
    for package in ("howdah/work", "howdah", "other"):
        (tmp_path / package).mkdir(parents=True, exist_ok=True)
        (tmp_path / package / "a.py").write_text('"""It tells of itself."""\n')
    assert len(check_source(tmp_path / "howdah" / "work" / "a.py")) == 1
    assert len(check_source(tmp_path / "howdah" / "a.py")) == 1
    assert check_source(tmp_path / "other" / "a.py") == []
    assert (ROOT / "howdah" / "__init__.py").is_file()


def test_a_finding_names_page_line_and_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title\n\nThe run cannot be begun.\n")
    assert main([str(page)]) == 1
    assert f"{page}:3: phrase: “cannot be begun”; better: cannot start" in capsys.readouterr().err
