"""What secrets and identities look like in text. Too much is taken rather than too little."""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

TOKEN, CREDENTIAL, RANDOM = "token", "credential", "random text"
PERSON, HOST, HOME, ENVIRONMENT = "person", "host", "home folder", "environment"

_KEY_BLOCK: Final = (
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s:,\-]|\\[nr])*(?:-----END[A-Z0-9 ]*-----)?"
    r"|-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
)
_TOKENS: Final = (
    r"(?:ak|as|wk|ws)-[A-Za-z0-9]{14,}",  # Modal: tokens and proxy tokens
    r"(?:hf|api_org)_[A-Za-z0-9]{12,}",  # Hugging Face
    r"(?:sk|pk|rk|csk|xai|pplx|nvapi|glpat|gldt|glrt|dapi)-[\w-]{16,}",  # model and code hosts
    r"(?:sk|pk|rk)_(?:live|test)_\w{10,}",  # Stripe
    r"(?:gsk|r8|tgp|rpa|npm|dop_v1|lin_api|whsec|fw|github_pat|gh[pousr])_\w{16,}",
    r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA|AIPA|ANPA|ANVA)[A-Z0-9]{12,}",  # AWS
    r"xox[abeoprs]-[\w-]{10,}",
    r"AIza[\w-]{30,}",
    r"ya29\.[\w-]{16,}",
    r"pypi-[\w-]{16,}",
    r"SG\.[\w-]{16,}\.[\w-]{16,}",
    r"(?:hooks\.slack\.com|discord(?:app)?\.com/api/webhooks)/[\w/-]{8,}",
    r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",  # JSON web tokens
)
SHAPED: Final = re.compile(rf"{_KEY_BLOCK}|(?<![A-Za-z0-9])(?:{'|'.join(_TOKENS)})")

HEADERS: Final = re.compile(
    r"(?i)(?P<before>\b(?:proxy-)?authorization\b(?:\\?[\"'])?\s*[:=]\s*(?:\\?[\"'])?)"
    r"(?P<secret>(?:basic|bearer|token|digest|negotiate|aws4-\S+)\s+[^\"'\r\n\\]+|[\w.~+/=-]{16,})"
    r"|(?P<cookie>\b(?:set-)?cookie\b(?:\\?[\"'])?\s*[:=]\s*(?:\\?[\"'])?)(?P<crumbs>[^\"'\r\n\\]+)"
    r"|(?P<scheme>\bbearer\s+)(?P<bearer>[\w.~+/=-]{6,})"
)
"""The money of a session is called its authorization: what follows that word must look like a header's."""

USERINFO: Final = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*:(?:\\?/){2})(?P<secret>[^\s/@\"'\\]+)@", re.IGNORECASE)
QUERY: Final = re.compile(
    r"(?i)(?P<before>[?&][\w.-]*(?:token|secret|sign?a?t?u?r?e?|sig|key|passw|auth|credential|code)[\w.-]*=)"
    r"(?P<secret>[^&\s\"'#\\]+)"
)

_ALWAYS_SECRET: Final = (
    r"secret|passw(?:or)?d|passwd|passphrase|(?:api|access|private|signing)[_-]?key|credential|cookie"
)
_SECRET_NAME: Final = re.compile(
    rf"(?i){_ALWAYS_SECRET}|(?:auth|access|refresh|bearer|id|api|session)[_-]?token"
    r"|(?:^|[_.-])(?:token(?:[_-]?(?:id|secret|value))?|pat)$"
)
ASSIGNED: Final = re.compile(
    rf"(?i)(?<![\w.-])(?P<name>-{{0,2}}(?:[\w.-]{{0,40}}?(?:{_ALWAYS_SECRET}|token|pat)[\w.-]{{0,40}}))"
    r"(?P<between>(?:\\?[\"'])?(?:\s*[:=]\s*|[ \t]+)(?:\\?[\"'])?)(?P<secret>[^\s\"'\\,;&}\])]+)"
)
"""A name and what follows it; `is_secret_value` says whether that is to be taken out."""

_MAY_BE_SHORT: Final = re.compile(r"(?i)secret|passw|passphrase|(?:api|access|private|signing)[_-]?key")
_FIGURE: Final = re.compile(r"[-+.,\d%]+")
NOT_SECRET: Final = re.compile(
    r"(?i)true|false|none|null|yes|no|is|was|are|not|and|or|for|in|of|to|the|a|an|has|with|from|set|missing"
)

ENVIRONMENT_LINE: Final = re.compile(
    r"(?m)^(?P<before>[ \t]*(?:export |declare -x |set )?[A-Z][A-Z0-9_]{2,}=)(?P<secret>.*)$"
)

_LONG: Final = re.compile(r"[A-Za-z0-9+/_=-]{32,}")

_SEGMENT: Final = r"[^\\/\s\"'<>|:*?,;)\]}]+"
HOMES: Final = re.compile(
    rf"(?<![\w.~-])(?:[A-Za-z]:)?(?:[\\/]+[\w.-]+){{0,4}}?[\\/]+(?:home\d*|[Uu]sers)[\\/]+(?P<name>{_SEGMENT}"
    rf"(?: [A-Z][\w.-]*(?=[\\/]))?)"
    r"|(?<![\w.~/-])/root(?![\w.-])"
    rf"|(?<![\w/])~(?P<tilde>[a-z_][\w-]+)(?=/)"
)
ACCOUNT: Final = re.compile(
    r"(?<![\w./-])(?P<person>[A-Za-z_][\w.+-]*)@(?P<host>[A-Za-z0-9][\w-]*(?:\.[\w-]+)*)", re.ASCII
)
CALLED: Final = re.compile(
    r"(?i)(?<![\w-])(?:(?:user|user_?name|login|logname)(?:\\?[\"'])?\s*[=:]\s*(?:\\?[\"'])?(?P<person>[A-Za-z_][\w.-]*)"
    r"|(?:host|host_?name|nodename)(?:\\?[\"'])?\s*[=:]\s*(?:\\?[\"'])?(?P<host>[A-Za-z0-9][\w.-]*))"
)
"""`user=kim`, `'HOSTNAME': 'gpu-box-7'`: somebody or some machine, called so in a text."""

_REVISION: Final = re.compile(r"[0-9a-f]{7,64}|v?\d+(?:\.\d+)*\w*|main|master|latest")

AUTHORITY: Final = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*:(?:\\?/){2})(?P<host>[^\s/\"'?#\\\[\]]+)", re.IGNORECASE)
PUBLIC_HOSTS: Final = frozenset(
    ("huggingface.co", "github.com", "modal.com", "pypi.org", "pytorch.org", "arxiv.org", "localhost", "127.0.0.1")
)
INTERNAL: Final = re.compile(
    r"(?i)(?<![\w@.-])(?:[a-z0-9][a-z0-9-]*\.)+"
    r"(?:internal|local|lan|corp|intranet|localdomain|home\.arpa|modal\.(?:run|host)|amazonaws\.com|ts\.net)(?![\w-])"
    r"|(?<![\w.-])ip-\d{1,3}(?:-\d{1,3}){3}(?![\w-])"
)
_ADDRESSES: Final = re.compile(
    r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\w)"
    r"|(?<![\w.:])(?:(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}|(?:[0-9a-f]{2}:){5}[0-9a-f]{2})(?![\w.:]*\w)"
)

GENERIC: Final = frozenset(
    """
    root user users admin administrator ubuntu debian runner nobody guest owner git docker node worker server host
    localhost local demo test tests main data runs run round rounds arm arms read reads trial trials study studies
    step steps loss time text kind name state status session night start end the and for was has not new old engine
    watcher unknown none null true false info warning error critical done failed running modal home
    """.split()  # noqa: SIM905  a list of 70 words, one a line, is no easier to read
)
"""Names that say nothing of anybody, and words that any file has: not looked for in free text."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A stretch of a text that is taken out."""

    start: int
    end: int
    kind: str


def accounts(text: str) -> Iterator[tuple[re.Match[str], str, str]]:
    """(match, person, host) of each `person@host`, mail addresses included; a model at a revision is none."""
    for match in ACCOUNT.finditer(text):
        if not _REVISION.fullmatch(match["host"]):
            yield match, match["person"], match["host"]


def called(text: str) -> Iterator[Spot]:
    """Whom and which machine a text calls so."""
    for match in CALLED.finditer(text):
        kind = PERSON if match["person"] else HOST
        name = match[kind]
        if not NOT_SECRET.fullmatch(name) and name.lower() not in PUBLIC_HOSTS:
            yield Spot(*match.span(kind), kind)


def addresses(text: str) -> Iterator[Spot]:
    """Addresses of machines on a network, but for the loopback and for what only looks like one."""
    for match in _ADDRESSES.finditer(text):
        word = match.group()
        if word.count(":") == 5 and "::" not in word and all(len(part) == 2 for part in word.split(":")):
            yield Spot(match.start(), match.end(), HOST)
            continue
        try:
            address = ipaddress.ip_address(word)
        except ValueError:
            continue
        if not address.is_loopback and not address.is_unspecified:
            yield Spot(match.start(), match.end(), HOST)


def random_texts(text: str) -> Iterator[Spot]:
    """Long stretches in which the kind of character changes as often as in random ones, and seldom in names."""
    for match in _LONG.finditer(text):
        if looks_random(match.group()):
            yield Spot(match.start(), match.end(), RANDOM)


def looks_random(word: str) -> bool:
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", word) if part]
    kinds = ["".join("d" if sign.isdigit() else "u" if sign.isupper() else "l" for sign in part) for part in parts]
    changes = sum(a != b for part in kinds for a, b in pairwise(part))
    return len(set("".join(kinds))) == 3 and changes >= 0.35 * sum(map(len, kinds))


def is_secret_value(name: str, value: str) -> bool:
    """Whether `value` under the name `name` is to be taken out. `max_tokens`, `tokenizer` and the like hide nothing."""
    if not _SECRET_NAME.search(name.strip("-")) or NOT_SECRET.fullmatch(value):
        return False
    # A token is long and no figure; a password may be as short and plain as its owner likes.
    if _MAY_BE_SHORT.search(name):
        return len(value) >= 3
    return len(value) >= 8 and not _FIGURE.fullmatch(value)
