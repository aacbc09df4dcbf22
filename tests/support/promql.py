"""As much of PromQL as our rules and panels need, with Prometheus' own arithmetic of `increase` and of lookback.

    history.add(0.0, text_of_a_scrape)
    history.value("sum(increase(telecine_recoveries_total[15m])) > 3", at=60.0)   →   {labels: value}

A vector is a dictionary from labels to values; a scalar is a float. What is not known raises `SyntaxError`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Samples = list[tuple[float, float]]
LOOKBACK = 300.0
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d+)?(?![\w.]))|([a-zA-Z_:][\w:]*)|(\[\w+\])|(\{[^}]*\})|(==|!=|>=|<=|[-+*/<>(),]))"
)
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": lambda a, b: a / b if b else float("nan") if not a else float("inf"),
}  # fmt: skip
_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le,
}  # fmt: skip
_LEVELS = (("or",), ("and", "unless"), tuple(_COMPARED), ("+", "-"), ("*", "/"))
_AGGREGATES: dict[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min}


class History:
    """What was scraped, and when."""

    def __init__(self) -> None:
        self.series: dict[Labels, Samples] = {}

    def add(self, at: float, text: str, **target: str) -> None:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = frozenset({**sample.labels, **target, "__name__": sample.name}.items())
                self.series.setdefault(key, []).append((at, float(sample.value)))

    def value(self, query: str, at: float) -> Vector:
        query = "\n".join(line.partition("#")[0] for line in query.splitlines())
        found = _Reader(self, at, query).whole()
        return found if isinstance(found, dict) else {frozenset(): found}


class _Reader:
    def __init__(self, history: History, at: float, query: str) -> None:
        self._history, self._at = history, at
        self._tokens, place = [], 0
        while query[place:].strip():
            found = _TOKEN.match(query, place)
            if found is None:
                raise SyntaxError(f"not understood: {query[place:]!r}")
            self._tokens.append(found.group().strip())
            place = found.end()
        self._tokens.append("")

    def whole(self) -> Any:
        found = self._binary(0)
        if self._tokens[0]:
            raise SyntaxError(f"not understood: {self._tokens}")
        return found

    def _take(self, *wanted: str) -> str:
        if wanted and self._tokens[0] not in wanted:
            raise SyntaxError(f"{self._tokens[0]!r} instead of one of {wanted}")
        return self._tokens.pop(0)

    def _binary(self, level: int) -> Any:
        if level == len(_LEVELS):
            return self._one()
        left = self._binary(level + 1)
        while self._tokens[0] in _LEVELS[level]:
            sign = self._take()
            on_nothing = self._tokens[0] == "on"
            if on_nothing:  # then anything on the left stands for all of it
                self._take("on"), self._take("("), self._take(")")
            right = self._binary(level + 1)
            left = left or right if on_nothing and sign == "or" else _combined(sign, left, right)
        return left

    def _one(self) -> Any:
        token = self._take()
        if token == "(":
            inner = self._binary(0)
            self._take(")")
            return inner
        if token[0].isdigit():
            return float(token)
        if token in _AGGREGATES:
            return self._aggregate(token)
        if self._tokens[0] == "(":
            return self._function(token)
        return self._selected(token)

    def _aggregate(self, name: str) -> Vector:
        by = self._by()
        self._take("(")
        vector = self._binary(0)
        self._take(")")
        by = by or self._by()
        groups: dict[Labels, list[float]] = {}
        for labels, value in vector.items():
            groups.setdefault(frozenset(one for one in labels if one[0] in by), []).append(value)
        return {labels: _AGGREGATES[name](values) for labels, values in groups.items()}

    def _by(self) -> set[str]:
        names: set[str] = set()
        if self._tokens[0] == "by":
            self._take("by")
            self._take("(")
            while (token := self._take()) != ")":
                names.add(token.strip(","))
        return names - {""}

    def _function(self, name: str) -> Any:
        self._take("(")
        if name == "vector":
            inner: Any = {frozenset(): self._binary(0)}
        elif name in ("histogram_quantile", "topk"):
            number = self._binary(0)
            self._take(",")
            vector = self._binary(0)
            inner = _quantiles(number, vector) if name == "histogram_quantile" else _largest(int(number), vector)
        elif name in ("increase", "rate", "delta", "deriv"):
            inner = self._over_time(name)
        else:
            raise SyntaxError(f"the function {name} is not known here")
        self._take(")")
        return inner

    def _over_time(self, name: str) -> Vector:
        metric = self._take()
        matchers = self._take() if self._tokens[0].startswith("{") else "{}"
        window = self._take().strip("[]")
        seconds = int(window[:-1]) * UNITS[window[-1]]
        found: Vector = {}
        for labels, samples in self._matching(metric, matchers):
            recent = [one for one in samples if self._at - seconds < one[0] <= self._at]
            if name == "deriv":
                value = _slope(recent)
            else:
                value = _extrapolated(recent, self._at, seconds, counter=name != "delta")
            if value is not None:
                found[_nameless(labels)] = value / seconds if name == "rate" else value
        return found

    def _selected(self, metric: str) -> Vector:
        matchers = self._take() if self._tokens[0].startswith("{") else "{}"
        latest = ((labels, [one for one in samples if self._at - LOOKBACK < one[0] <= self._at])
                  for labels, samples in self._matching(metric, matchers))  # fmt: skip
        return {_nameless(labels): recent[-1][1] for labels, recent in latest if recent}

    def _matching(self, metric: str, matchers: str) -> list[tuple[Labels, Samples]]:
        wanted = _MATCHER.findall(matchers)
        return [
            (labels, samples)
            for labels, samples in self._history.series.items()
            if dict(labels)["__name__"] == metric and all(_fits(dict(labels).get(n, ""), *rest) for n, *rest in wanted)
        ]


def _fits(value: str, sign: str, wanted: str) -> bool:
    same = value == wanted if sign in ("=", "!=") else re.fullmatch(wanted, value) is not None
    return same == (sign in ("=", "=~"))


def _nameless(labels: Labels) -> Labels:
    return frozenset(one for one in labels if one[0] != "__name__")


def _extrapolated(samples: Samples, at: float, seconds: float, *, counter: bool) -> float | None:
    """What Prometheus makes of samples in a window: it reckons on to the window's edges, never below zero."""
    if len(samples) < 2:
        return None
    grown = samples[-1][1] - samples[0][1]
    if counter:
        grown += sum(before for (_, before), (_, after) in pairwise(samples) if after < before)
    spanned = samples[-1][0] - samples[0][0]
    average = spanned / (len(samples) - 1)
    before, after = samples[0][0] - (at - seconds), at - samples[-1][0]
    before = average / 2 if before >= average * 1.1 else before
    if counter and grown > 0:
        before = min(before, spanned * samples[0][1] / grown)
    after = average / 2 if after >= average * 1.1 else after
    return grown * (spanned + before + after) / spanned


def _slope(samples: Samples) -> float | None:
    """The slope of a line through samples by least squares, per second."""
    if len(samples) < 2:
        return None
    middle_at, middle = (sum(column) / len(samples) for column in zip(*samples, strict=True))
    above = sum((at - middle_at) * (value - middle) for at, value in samples)
    return above / sum((at - middle_at) ** 2 for at, _ in samples)


def _largest(count: int, vector: Vector) -> Vector:
    """NaN counts as the smallest, as in Prometheus."""
    ranked = sorted(vector.items(), key=lambda one: -math.inf if math.isnan(one[1]) else one[1], reverse=True)
    return dict(ranked[:count])


def _quantiles(share: float, vector: Vector) -> Vector:
    """A value for each histogram: linear within the bucket where the share is reached; NaN without observations."""
    histograms: dict[Labels, list[tuple[float, float]]] = {}
    for labels, count in vector.items():
        edge = float(dict(labels)["le"])
        histograms.setdefault(frozenset(one for one in labels if one[0] != "le"), []).append((edge, count))
    return {labels: _quantile(share, sorted(buckets)) for labels, buckets in histograms.items()}


def _quantile(share: float, buckets: list[tuple[float, float]]) -> float:
    wanted = share * buckets[-1][1]
    if len(buckets) < 2 or buckets[-1][0] != math.inf or not buckets[-1][1]:
        return math.nan
    number = next(number for number, (_, count) in enumerate(buckets) if count >= wanted)
    if number == len(buckets) - 1:
        return buckets[-2][0]
    edge, count = buckets[number]
    start, before = buckets[number - 1] if number else (0.0, 0.0)
    return start + (edge - start) * (wanted - before) / (count - before) if count > before else edge


def _combined(sign: str, left: Any, right: Any) -> Any:
    if sign == "or":
        return {**{key: one for key, one in right.items() if key not in left}, **left}
    if sign in ("and", "unless"):
        return {key: one for key, one in left.items() if (key in right) == (sign == "and")}
    if isinstance(left, dict):
        others = right if isinstance(right, dict) else dict.fromkeys(left, right)
        pairs = {key: (one, others[key]) for key, one in left.items() if key in others}
    elif isinstance(right, dict):
        pairs = {key: (left, one) for key, one in right.items()}
    else:
        pairs = {frozenset(): (left, right)}
    if sign in _COMPARED:
        return {key: one for key, (one, other) in pairs.items() if _COMPARED[sign](one, other)}
    made = {key: _ARITHMETIC[sign](*pair) for key, pair in pairs.items()}
    return made if isinstance(left, dict) or isinstance(right, dict) else made[frozenset()]
