"""Taking out of texts what is secret or says who and where: the same stand-in for the same thing, everywhere."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kevtui.record import shapes
from kevtui.record.shapes import CREDENTIAL, ENVIRONMENT, HOME, HOST, PERSON, TOKEN, Spot

_PERSONS = frozenset(("user", "username", "user_name", "login", "owner", "author", "email", "mail", "who", "operator"))
_HOSTS = frozenset(("host", "hostname", "host_name", "fqdn", "node", "ip", "ip_address", "server"))
_ENVIRONMENTS = frozenset(("environment", "environ", "env", "env_vars", "environment_variables"))
_NAMING = _PERSONS | _HOSTS
_KEPT = frozenset(("", "the engine", "engine", "watcher", "kev", "nobody", "unknown"))
"""What stands under a person's key and is none."""

_PLAIN = re.compile(r"[a-z][a-z_]{0,23}|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)")
"""Words and moments, of which a night has hundreds of thousands: there is nothing in them but a name, if it is one."""

PASSES = 8
"""At most: a stand-in can make a name of what stood beside the thing that it is for."""

_MARK = re.compile(r"\[(?:token|credential|random text|environment) \d+\]|\b(?:person|host)-\d+\b", re.ASCII)
_CONTROLS = re.compile(
    "\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?)"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose machine it is that records: looked for everywhere. Empty parts are not known."""

    user: str = ""
    full_name: str = ""
    home: str = ""
    hosts: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    """The folders of the session, by every name they have."""


class Redactor:
    """Learns who and where from everything first, then gives each text back without it. Deterministic."""

    def __init__(self, identity: Identity) -> None:
        self.counts: Counter[str] = Counter()
        """How many stretches were taken out, by kind."""
        self._stand_ins: dict[tuple[str, str], str] = {}
        self._names: dict[str, str] = {}
        self._known: re.Pattern[str] | None = None
        places = [
            *((root, "[session]") for root in sorted(identity.roots, key=len, reverse=True)),
            (identity.home, "~"),
        ]
        self._places = [(place.rstrip("/"), mark) for place, mark in places if len(place.rstrip("/")) > 1]
        for name in (identity.user, identity.full_name):
            self._learn(name, PERSON)
        for host in identity.hosts:
            self._learn(host, HOST)

    # ---- learning

    def learn(self, value: Any) -> None:
        """Note every person and machine that `value`, text or JSON, names as such."""
        for key, text in _texts(value):
            if key not in _NAMING and _PLAIN.fullmatch(text):
                continue
            text = _CONTROLS.sub("", text)
            if key in _HOSTS:
                self._learn(text, HOST)
            elif key in _PERSONS and "@" not in text and text not in _KEPT:
                self._learn(text, PERSON)
            for _, person, host in shapes.accounts(text):
                self._learn(person, PERSON)
                self._learn(host, HOST)
            for match in shapes.HOMES.finditer(text):
                self._learn(match["name"] or match["tilde"] or "", PERSON)
            for spot in shapes.called(text):
                self._learn(text[spot.start : spot.end], spot.kind)
            for match in shapes.AUTHORITY.finditer(text):
                self._learn(_host_of(match["host"]), HOST)

    def _learn(self, name: str, kind: str) -> None:
        name = name.strip()
        if len(name) < 3 or name.lower() in shapes.GENERIC or name.lower() in shapes.PUBLIC_HOSTS or name.isdecimal():
            return
        self._names.setdefault(name.lower(), kind)
        if kind == HOST and "." in name and not name.replace(".", "").isdecimal():
            self._learn(name.partition(".")[0], HOST)
        self._known = None

    # ---- taking out

    def value(self, value: Any, key: str = "") -> Any:
        """`value`, JSON, without what is secret in it, keys included."""
        match value:
            case dict() if key.lower() in _ENVIRONMENTS:
                self.counts[ENVIRONMENT] += 1 if value else 0
                return {}
            case dict():
                return self._object(value)
            case list():
                return [self.value(each, key) for each in value]
            case str():
                return self._string(value, key)
            case int() if not isinstance(value, bool) and shapes.is_secret_value(key, str(value)):
                return self._stand_in(str(value), CREDENTIAL)
        return value

    def text(self, text: str) -> str:
        """`text` without what is secret in it, and without what acts on a terminal or hides between letters."""
        if _PLAIN.fullmatch(text) and text not in self._names:
            return text
        text = _CONTROLS.sub("", text)
        for _ in range(PASSES):
            cleaner = self._pass(text)
            if cleaner == text:
                break
            text = cleaner
        return text

    def _pass(self, text: str) -> str:
        """`text` without what can be seen in it now."""
        for place, mark in self._places:
            if place in text:
                pattern = re.compile(rf"(?<![\w.-]){re.escape(place)}(?![\w.-])")
                text, number = pattern.subn(mark, text)
                self.counts[HOME] += number
        text = self._headers(text)
        for spots in (_shaped, _userinfo, _query, _assigned, _environment, shapes.random_texts):
            text = self._take(text, spots(text))
        text = self._homes(text)
        text = self._accounts(text)
        for spots in (_authorities, shapes.addresses, shapes.called):
            text = self._take(text, spots(text))
        text = self._take(text, (Spot(*match.span(), HOST) for match in shapes.INTERNAL.finditer(text)))
        return self._learned(text)

    def _object(self, value: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, part in value.items():
            name = self.text(key)
            while name in found:
                name += "'"
            found[name] = self.value(part, key)
        return found

    def _string(self, text: str, key: str) -> str:
        lower = key.lower()
        if lower in _ENVIRONMENTS and text:
            self.counts[ENVIRONMENT] += 1
            return ""
        if shapes.is_secret_value(key, text):
            return self._stand_in(text, CREDENTIAL)
        if lower in _HOSTS and text.strip() and text.lower() not in shapes.PUBLIC_HOSTS:
            return self._stand_in(text, HOST)
        if lower in _PERSONS and text not in _KEPT and not next(shapes.accounts(text), None):
            return self._stand_in(text, PERSON)
        return self.text(text)

    def _stand_in(self, text: str, kind: str) -> str:
        self.counts[kind] += 1
        # One machine is one machine, however its name is written.
        same = text.strip().lower() if kind in (PERSON, HOST) else text
        known = self._stand_ins.get((kind, same))
        if known is None:
            number = 1 + sum(of == kind for of, _ in self._stand_ins)
            known = f"{kind}-{number}" if kind in (PERSON, HOST) else f"[{kind} {number}]"
            self._stand_ins[kind, same] = known
        return known

    def _take(self, text: str, spots: Iterable[Spot]) -> str:
        parts, last = [], 0
        for spot in spots:
            word = text[spot.start : spot.end]
            if spot.start < last or not word or _MARK.match(text, spot.start):
                continue
            parts += [text[last : spot.start], self._stand_in(word, spot.kind)]
            last = spot.end
        return "".join([*parts, text[last:]])

    def _headers(self, text: str) -> str:
        spots = []
        for match in shapes.HEADERS.finditer(text):
            group = next(name for name in ("secret", "crumbs", "bearer") if match[name] is not None)
            spots.append(Spot(*match.span(group), CREDENTIAL))
        return self._take(text, spots)

    def _homes(self, text: str) -> str:
        text, number = shapes.HOMES.subn("~", text)
        self.counts[HOME] += number
        return text

    def _accounts(self, text: str) -> str:
        spots = []
        for match, _, _ in shapes.accounts(text):
            spots += [Spot(*match.span("person"), PERSON), Spot(*match.span("host"), HOST)]
        return self._take(text, spots)

    def _learned(self, text: str) -> str:
        if not self._names:
            return text
        if self._known is None:
            longest = sorted(self._names, key=lambda name: (-len(name), name))
            words = "|".join(map(re.escape, longest))
            self._known = re.compile(rf"(?i)(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])")
        marks = [match.span() for match in _MARK.finditer(text)]
        spots = [
            Spot(*match.span(), self._names[match.group().lower()])
            for match in self._known.finditer(text)
            if not any(start <= match.start() < end for start, end in marks)
        ]
        return self._take(text, spots)


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """(key in lower case, text) of every text in `value`; keys are texts too."""
    match value:
        case dict():
            for name, part in value.items():
                yield "", str(name)
                yield from _texts(part, str(name))
        case list():
            for part in value:
                yield from _texts(part, key)
        case str():
            yield key.lower(), value


def _shaped(text: str) -> Iterator[Spot]:
    return (Spot(*match.span(), TOKEN) for match in shapes.SHAPED.finditer(text))


def _userinfo(text: str) -> Iterator[Spot]:
    return (Spot(*match.span("secret"), CREDENTIAL) for match in shapes.USERINFO.finditer(text))


def _query(text: str) -> Iterator[Spot]:
    return (Spot(*match.span("secret"), CREDENTIAL) for match in shapes.QUERY.finditer(text))


def _assigned(text: str) -> Iterator[Spot]:
    at = 0
    while match := shapes.ASSIGNED.search(text, at):
        if shapes.is_secret_value(match["name"], match["secret"]):
            yield Spot(*match.span("secret"), CREDENTIAL)
            at = match.end()
        else:
            # What follows this name may be a name itself.
            at = match.end("name")


def _environment(text: str) -> Iterator[Spot]:
    return (Spot(*match.span("secret"), ENVIRONMENT) for match in shapes.ENVIRONMENT_LINE.finditer(text))


def _authorities(text: str) -> Iterator[Spot]:
    for match in shapes.AUTHORITY.finditer(text):
        host = _host_of(match["host"])
        if host.lower() not in shapes.PUBLIC_HOSTS and not _MARK.fullmatch(host):
            start = match.start("host") + match["host"].index(host)
            yield Spot(start, start + len(host), HOST)


def _host_of(authority: str) -> str:
    return authority.rpartition("@")[2].partition(":")[0]
