"""What `import telecine` offers, and how little it loads."""

import subprocess
import sys

import telecine


def test_every_public_name_is_there() -> None:
    found = {name: getattr(telecine, name) for name in telecine.__all__}

    assert all(value is not None for value in found.values())
    assert dir(telecine) == sorted(telecine.__all__)
    assert not hasattr(telecine, "no_such_name")


def test_a_flow_can_be_written_without_loading_a_database_driver() -> None:
    code = (
        "import sys; from telecine import Flow, Done; print(sorted({'asyncpg', 'sqlite3', 'rich'} & set(sys.modules)))"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout == "[]\n"
