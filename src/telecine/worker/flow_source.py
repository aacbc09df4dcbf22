"""Where flows come from: a module or a file of the user's. A child process loads it again by the same words."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from telecine.errors import BadFlow
from telecine.flow import Flow


@dataclass(frozen=True, slots=True)
class FlowSource:
    """A module by name, or a file by path; exactly one of them."""

    module: str | None = None
    path: str | None = None

    def __str__(self) -> str:
        return self.module or str(self.path)


def source_of(text: str) -> FlowSource:
    """`flows.py` and `some/folder/flows.py` are paths, everything else is a module's name."""
    return FlowSource(path=text) if text.endswith(".py") or "/" in text else FlowSource(module=text)


def load_flows(source: FlowSource) -> list[Flow]:
    """All flows that the module has at its top level."""
    module = _load(source)
    flows = [value for value in vars(module).values() if isinstance(value, Flow)]
    if not flows:
        raise BadFlow(f"{source} has no flow: write `flow = Flow(...)` at the top level of the module")
    return list({flow.name: flow for flow in flows}.values())


def home_of(flow: Flow) -> FlowSource:
    """Where a child process finds a flow that was handed over as an object."""
    handler = next(iter(flow.handlers.values()), None)
    name = str(getattr(handler, "__module__", "__main__"))
    if name != "__main__":
        return FlowSource(module=name)
    file = getattr(sys.modules["__main__"], "__file__", None)
    if file is None:
        raise BadFlow(f"flow {flow.name!r} was typed in by hand, so no child process can load it: put it into a file")
    return FlowSource(path=str(Path(file).resolve()))


def _load(source: FlowSource) -> ModuleType:
    if source.path is not None:
        return _load_file(Path(source.path).resolve())
    if source.module is None:
        raise BadFlow("name a module or a file that has flows")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(source.module)
    except ModuleNotFoundError as error:
        if error.name and (source.module == error.name or source.module.startswith(f"{error.name}.")):
            raise BadFlow(f"there is no module {source.module!r} here: check the name and the folder") from error
        raise BadFlow(f"module {source.module!r} cannot be loaded: {error}") from error
    except Exception as error:
        raise BadFlow(f"module {source.module!r} cannot be loaded: {type(error).__name__}: {error}") from error


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadFlow(f"there is no file {path}")
    name = f"telecine_flows_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadFlow(f"{path} is not a Python file")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # so that it can import its neighbours
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise BadFlow(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    return module
