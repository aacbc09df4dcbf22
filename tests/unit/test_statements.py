"""The two dialects say the same: the same names, with the same parameters, and every name that the code uses."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from telecine.store.statements import Dialect, load, parse, prepare

SOURCE = Path(__file__).parents[2] / "src" / "telecine"
POSTGRES, SQLITE = load("postgres"), load("sqlite")


def params(name: str, dialect: Dialect) -> set[str]:
    """All but the clock, which a driver adds wherever a statement asks for it."""
    return set(load(dialect)[name].params) - {"now"}


def groups_of(name: str) -> set[str]:
    """The groups of a `Write`: PostgreSQL has one statement, SQLite one for each group."""
    longer = [other for other in POSTGRES if other != name and other.startswith(f"{name}_")]
    found = {other.removeprefix(f"{name}_") for other in SQLITE if other.startswith(f"{name}_")}
    return {group for group in found if not any(f"{name}_{group}".startswith(other) for other in longer)}


# In PostgreSQL a job that is one plain task is that task: it has no other row to write.
ONLY_SQLITE = {
    "submit_lone": {"name", "flow"},
    "settle_lone": {"stage_state", "outcome", "tokens", "digests", "results"},
}
ONLY_POSTGRES = {"submit": {"rowless"}, "settle_lone": {"told"}}
# The PostgreSQL driver sends these in place of `claim` and `submit_lone`, with these parameters added.
VARIANTS = {
    "claim_after": ("claim", {"after_rank", "after_id"}),
    "submit_lone_ring": ("submit_lone", {"channel", "payload"}),
}
WRITES = sorted(name for name in POSTGRES if name not in SQLITE and name not in VARIANTS)


def test_every_statement_exists_in_both_dialects() -> None:
    without_twin = set(SQLITE) - set(POSTGRES) - {f"{name}_{group}" for name in WRITES for group in groups_of(name)}

    assert without_twin == set()
    assert [name for name in WRITES if not groups_of(name)] == []


@pytest.mark.parametrize("name", sorted(set(POSTGRES) & set(SQLITE)))
def test_a_statement_takes_the_same_parameters_in_both_dialects(name: str) -> None:
    assert params(name, "sqlite") - ONLY_SQLITE.get(name, set()) == params(name, "postgres") - ONLY_POSTGRES.get(
        name, set()
    )


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_of_a_statement_takes_its_parameters_and_a_few_more(name: str) -> None:
    base, added = VARIANTS[name]

    assert params(name, "postgres") == params(base, "postgres") | added


def parts_of(name: str) -> dict[str, str]:
    """The named parts (`with x as (…)`) of a PostgreSQL statement, and what comes after them under ""."""
    *parts, rest = re.split(r"\n\)(?:, |\n)", POSTGRES[name].text.removeprefix("with "))
    found = dict(part.split(" as ", 1) for part in parts)
    found[""] = rest
    assert set(found) >= {"", "me", "served", "candidate", "picked", "begun", "halted", "granted", "noted", "said"}
    return {
        part: re.sub(r"\$\d+", lambda m: POSTGRES[name].params[int(m[0][1:]) - 1], text) for part, text in found.items()
    }


# What differs on purpose: which tasks are looked at, and the lane in the answer.
DIFFERENT = {
    "claim_hinted": {"hinted", "candidate", "picked", "granted", ""},
    "claim_after": {"candidate", "passed", "picked"},
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_claims_agree_in_all_but_where_they_look(name: str) -> None:
    plain, other = parts_of("claim"), parts_of(name)

    assert {part for part in plain | other if plain.get(part) != other.get(part)} == DIFFERENT[name]
    without_lane = {part: re.sub(r"(,\s*[tg]\.lane|, null)(?=\n|$)", "", other[part]) for part in ("granted", "")}
    assert without_lane == {part: plain[part] for part in ("granted", "")}


def test_the_claims_of_sqlite_agree_in_all_but_where_they_look() -> None:
    plain, hinted = SQLITE["claim"].parts, SQLITE["claim_hinted"].parts

    assert plain[1:-1] == hinted[1:-1]
    assert hinted[-1].replace(" as due, t.lane", " as due") == plain[-1]
    guards = r"    where exists \(\s+select 1 from worker.*?(?=\n    order by)"
    assert re.findall(guards, plain[0], re.DOTALL) == re.findall(guards, hinted[0], re.DOTALL) != []


def test_a_submit_that_rings_is_the_same_submit() -> None:
    plain, ringing = POSTGRES["submit_lone"].text, POSTGRES["submit_lone_ring"].text

    assert ringing.startswith(plain)
    assert re.fullmatch(r"\nreturning pg_notify\(\$\d+, \$\d+\)", ringing.removeprefix(plain))


@pytest.mark.parametrize("name", WRITES)
def test_a_write_takes_the_same_columns_of_the_same_groups_in_both_dialects(name: str) -> None:
    wanted = params(name, "postgres") - ONLY_POSTGRES.get(name, set())

    found = {
        param if param in wanted else f"{group}_{param}"
        for group in groups_of(name)
        for param in params(f"{name}_{group}", "sqlite")
    }

    assert found == wanted


def steps_in(path: Path) -> Iterator[tuple[str, str, ast.expr | None]]:
    """Kind, name of the statement, and the parameters where they are written out."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Ask", "Write", "ask"):
            args = node.args[1:] if node.func.id == "ask" else node.args
            if args and isinstance(args[0], ast.Constant):
                yield node.func.id, str(args[0].value), args[1] if len(args) > 1 else None


USED = [(path, *found) for path in sorted(SOURCE.rglob("*.py")) for found in steps_in(path)]


def test_every_name_that_the_code_uses_exists() -> None:
    unknown = {f"{path.name}: {name}" for path, _, name, _ in USED if name not in POSTGRES}

    assert len(USED) > 40
    assert unknown == set()


def test_an_ask_names_every_parameter_of_its_statement_and_no_other() -> None:
    """Where the parameters stand in the call. PostgreSQL would take a missing one for an empty list."""
    wrong = []
    for path, kind, name, given in USED:
        if kind == "Write" or not isinstance(given, ast.Dict) or None in given.keys:
            continue
        keys = {key.value for key in given.keys if isinstance(key, ast.Constant)}
        if differs := keys ^ params(name, "postgres"):
            wrong.append(f"{path.name}: {name} {sorted(differs)}")

    assert wrong == []


def test_a_file_is_split_by_names() -> None:
    found = parse("-- name: one\nselect 1\n\n-- name: two\n-- why\nselect 2;\n")

    assert found == {"one": "select 1", "two": "-- why\nselect 2;"}


def test_postgres_gets_numbers_and_casts_stay() -> None:
    statement = prepare("x", "select :b::text, :a, :b -- no :c", "postgres")

    assert (statement.text, statement.params) == ("select $1::text, $2, $1", ("b", "a"))


def test_sqlite_may_be_a_script() -> None:
    statement = prepare("x", "delete from t where id = :id;\nselect 1", "sqlite")

    assert statement.parts == ("delete from t where id = :id", "select 1")


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_the_clock_is_the_databases_own_unless_it_is_set(dialect: Dialect) -> None:
    statement = prepare("x", "select {now} as now", dialect)

    assert statement.params == ("now",)
    assert "coalesce" in statement.text


def test_numbers_words_and_json_travel_as_one_text() -> None:
    sql = "select * from unnest(:ids::bigint[], :kinds::word[], :specs::line[], :names::text[])"

    statement = prepare("x", sql, "postgres")

    assert statement.lists == {"ids": ",", "kinds": ",", "specs": "\n"}
    assert "string_to_array($1::text, ',', '')::bigint[]" in statement.text
    assert "string_to_array($3::text, chr(10), '')::text[], $4::text[]" in statement.text
