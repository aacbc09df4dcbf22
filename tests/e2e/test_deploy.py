"""What is in deploy/ can be read by machines, and names only what there is: metrics, settings, commands, addresses."""

import json
import re
from importlib.metadata import requires
from pathlib import Path

import yaml
from packaging.requirements import Requirement

from telecine.api.routes import health
from telecine.settings import PREFIX, Settings
from telecine.wiring.server import GRACE_SECONDS
from tests.support.deployment import DEPLOY, compose, dashboard, dockerfile, known, manifests, one, rules
from tests.support.docs import ROOT, commands

OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
NAME = re.compile(r"\btelecine_[a-z0-9_]+")
SETTING = re.compile(rf"\b{PREFIX}[A-Z0-9_]+")
PORT = Settings.model_fields["port"].default


# -- metrics -------------------------------------------------------------------------------------------------


def test_every_query_of_the_dashboard_and_of_the_rules_names_metrics_that_exist() -> None:
    queries = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]
    queries += [rule["expr"] for rule in rules()]

    unknown = {name for query in queries for name in NAME.findall(query)} - known()[0]

    assert len(queries) > 40
    assert unknown == set()
    assert [query for query in queries if query.count("(") != query.count(")")] == []


def test_the_page_about_metrics_has_every_metric_and_no_other() -> None:
    text = (ROOT / "docs" / "observability.md").read_text()

    told = set(re.findall(r"^\| `(telecine_\w+)`", text, re.MULTILINE))

    assert told == known()[1]


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    headings = set(re.findall(r"^### (Telecine\w+)$", OPERATIONS, re.MULTILINE))

    assert {rule["alert"] for rule in rules()} == headings
    assert all(rule["labels"]["severity"] in ("critical", "warning", "info") for rule in rules())
    assert all(rule["annotations"]["summary"] for rule in rules())


def test_panels_of_the_dashboard_do_not_lie_upon_each_other() -> None:
    places = [panel["gridPos"] for panel in dashboard()["panels"]]
    squares = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len(set(squares)) == len(squares)
    assert max(x for x, _ in squares) < 24
    assert len({panel["id"] for panel in dashboard()["panels"]}) == len(places)


# -- settings, commands, addresses ---------------------------------------------------------------------------


def test_every_setting_that_is_named_exists() -> None:
    texts = {path: path.read_text() for path in DEPLOY.rglob("*") if path.is_file()}

    named = {setting for text in texts.values() for setting in SETTING.findall(text)}

    assert len(named) > 10
    assert named - {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} == set()


def test_settings_in_files_are_good_values() -> None:
    given: dict[str, str] = {}
    for name in ("telecine-server", "telecine-worker"):
        given |= one("ConfigMap", name)["data"]
    given |= compose()["x-settings"]

    values = {name.removeprefix(PREFIX).lower(): value for name, value in given.items() if "${" not in value}
    settings = Settings(**{"redis_url": "redis://x", **values})

    assert settings.queue_mode == "hybrid"


def test_every_command_that_is_run_exists() -> None:
    known_commands = {name for name, _ in commands()}
    services = compose()["services"].values()
    ours = [service["command"] for service in services if "build" in service and "command" in service]
    pods = [part["spec"]["template"]["spec"] for part in manifests() if part["kind"] == "Deployment"]
    ours += [box["args"] for pod in pods for box in (*pod.get("initContainers", ()), *pod["containers"])]
    ours += [json.loads(line) for line in re.findall(r"^CMD (\[.*\])$", dockerfile(), re.MULTILINE)]
    typed = re.findall(
        r"\btelecine ((?:workers|keys) [a-z]+|[a-z]+)\b(?! create secret)", (DEPLOY / "compose.yaml").read_text()
    )

    assert len(ours) >= 7
    assert [command for command in ours if command[0] not in known_commands] == []
    assert typed
    assert set(typed) <= known_commands


def test_the_options_of_the_worker_in_the_compose_file_exist() -> None:
    [command] = [command for name, command in commands() if name == "worker"]
    options = {option for param in command.params for option in param.opts}

    assert {word for word in compose()["services"]["worker"]["command"] if word.startswith("--")} <= options


def test_ports_and_probes_lead_to_where_the_server_listens() -> None:
    pod = one("Deployment", "telecine-server")["spec"]["template"]
    [server] = pod["spec"]["containers"]
    routes = {route.path for route in health.router.routes}  # type: ignore[attr-defined]
    probes = [server[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]

    assert {probe["path"] for probe in probes} == {"/health/live", "/health"} <= routes
    assert "/metrics" in routes
    assert server["ports"] == [{"name": "http", "containerPort": PORT}]
    assert one("Service", "telecine")["spec"]["ports"][0]["port"] == PORT
    assert one("ConfigMap", "telecine-worker")["data"]["TELECINE_SERVER_URL"].endswith(f":{PORT}")
    assert compose()["services"]["server"]["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert f"127.0.0.1:{PORT}/health/live" in dockerfile()
    assert f"EXPOSE {PORT}\n" in dockerfile()


# -- how they stop, and what they may do ---------------------------------------------------------------------


def test_workers_have_time_to_finish_and_servers_to_answer() -> None:
    grace = float(one("ConfigMap", "telecine-worker")["data"]["TELECINE_DRAIN_GRACE_SECONDS"])
    worker, server = (
        one("Deployment", f"telecine-{name}")["spec"]["template"]["spec"] for name in ("worker", "server")
    )
    wait = float(server["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    services = compose()["services"]

    assert worker["terminationGracePeriodSeconds"] >= grace + 20
    assert server["terminationGracePeriodSeconds"] >= wait + GRACE_SECONDS + 10
    assert int(services["worker"]["stop_grace_period"][:-1]) >= grace + 20
    assert int(services["server"]["stop_grace_period"][:-1]) >= GRACE_SECONDS + 10


def test_nobody_is_root_and_nobody_may_become_it() -> None:
    pods = [part["spec"]["template"]["spec"] for part in manifests() if part["kind"] == "Deployment"]
    boxes = [box for pod in pods for box in (*pod.get("initContainers", ()), *pod["containers"])]
    uid = re.findall(r"^USER (\d+):\d+$", dockerfile(), re.MULTILINE)

    assert {str(pod["securityContext"]["runAsUser"]) for pod in pods} == set(uid) != {"0"}
    assert all(pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"] for pod in pods)
    locked = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert [box["name"] for box in boxes if box["securityContext"] != locked] == []


def test_manifests_refer_to_each_other() -> None:
    named = {(part["kind"], part["metadata"]["name"]) for part in manifests()}
    pods = [part["spec"]["template"] for part in manifests() if part["kind"] == "Deployment"]
    labels = [pod["metadata"]["labels"] for pod in pods]
    selectors = [p["spec"]["podSelector"] for p in manifests() if p["kind"] == "NetworkPolicy"]
    wanted = [selector["matchLabels"] for selector in selectors if selector]
    maps = {
        ref["configMapRef"]["name"]
        for pod in pods
        for ref in pod["spec"]["containers"][0]["envFrom"]
        if "configMapRef" in ref
    }
    target = one("HorizontalPodAutoscaler", "telecine-worker")["spec"]["scaleTargetRef"]

    assert {("ConfigMap", name) for name in maps} <= named
    assert all(any(selector.items() <= label.items() for label in labels) for selector in wanted)
    assert one("Service", "telecine")["spec"]["selector"] in labels
    assert (target["kind"], target["name"]) in named
    assert (
        one("HorizontalPodAutoscaler", "telecine-worker")["spec"]["metrics"][0]["external"]["metric"]["name"]
        in known()[0]
    )
    for pod in pods:
        mounts = {mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}
        assert mounts == {volume["name"] for volume in pod["spec"]["volumes"]}


def test_prometheus_in_a_cluster_shows_the_token_of_the_servers() -> None:
    """Without it /metrics answers 401, and annotations cannot carry one."""
    monitor = yaml.safe_load((DEPLOY / "prometheus" / "servicemonitor.yaml").read_text())
    [endpoint] = monitor["spec"]["endpoints"]
    token, service = endpoint["authorization"]["credentials"], one("Service", "telecine")
    server = one("Deployment", "telecine-server")["spec"]["template"]
    secrets = [ref["secretRef"]["name"] for ref in server["spec"]["containers"][0]["envFrom"] if "secretRef" in ref]

    assert token["name"] in secrets
    assert token["key"].removeprefix(PREFIX).lower() in Settings.model_fields
    assert f"{token['key']}=" in (DEPLOY / "kubernetes" / "config.yaml").read_text()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "telecine"
    assert endpoint["path"] in {route.path for route in health.router.routes}  # type: ignore[attr-defined]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert monitor["metadata"]["namespace"] == service["metadata"]["namespace"]
    assert "prometheus.io/scrape" not in server["metadata"].get("annotations", {})


# -- the image -----------------------------------------------------------------------------------------------


def test_stages_of_the_image_exist_and_what_is_copied_is_let_in() -> None:
    stages = re.findall(r"^FROM (\S+) AS (\w+)$", dockerfile(), re.MULTILINE)
    names = [name for _, name in stages]
    targets = {service["build"]["target"] for service in compose()["services"].values() if "build" in service}
    copied = [
        word for line in re.findall(r"^COPY (?!--)(.*) \S+$", dockerfile(), re.MULTILINE) for word in line.split()
    ]
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}

    assert targets | {"build", "runtime"} == set(names)
    assert set(re.findall(r"--from=(\w+)", dockerfile())) <= set(names)
    assert [base for base, _ in stages if base not in names and ":" not in base] == []
    assert set(copied) == let_in
    assert [path for path in copied if not (ROOT / path).exists()] == []


def locked(path: Path) -> dict[str, str]:
    """Each package with its version and hashes; not for which systems, which differs by what else needs it."""
    entries = re.split(r"\n(?=[a-z])", re.sub(r" ; [^\\\n]+(?= \\)", "", path.read_text()))[1:]
    return {re.split(r"[=\[]", entry)[0]: entry.split("    # via")[0].strip() for entry in entries}


def test_images_are_built_from_parts_of_the_one_lock() -> None:
    everything = locked(ROOT / "requirements" / "dev.lock")
    runtime, build = (locked(ROOT / "requirements" / f"{name}.lock") for name in ("runtime", "build"))

    assert runtime.items() <= everything.items()
    assert build.items() <= everything.items()
    assert "hatchling" in build
    assert "pytest" not in runtime
    assert needs("telecine", "tracing") <= set(runtime)


def needs(package: str, extra: str = "") -> set[str]:
    """All that a package needs here, and what that needs."""
    found: set[str] = set()
    waiting = [(package, extra)]
    while waiting:
        name, with_extra = waiting.pop()
        for text in requires(name) or ():
            wanted = Requirement(text)
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": with_extra}):
                continue
            plain = re.sub(r"[-_.]+", "-", wanted.name).lower()
            if plain not in found:
                found.add(plain)
                waiting += [(wanted.name, inner) for inner in ("", *wanted.extras)]
    return found


def test_the_files_that_the_compose_file_mounts_exist() -> None:
    services = compose()["services"]
    mounted = [v.split(":")[0] for s in services.values() for v in s.get("volumes", ()) if v.startswith("./")]
    volumes = {v.split(":")[0] for s in services.values() for v in s.get("volumes", ()) if v[0] not in "./"}

    assert [path for path in mounted if not (DEPLOY / path).exists()] == []
    assert volumes == set(compose()["volumes"])
    variables = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    assert variables == set(re.findall(r"^(\w+)=", (DEPLOY / "example.env").read_text(), re.MULTILINE))
