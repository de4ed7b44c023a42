"""A package of mails in the layout of the real one, made up here."""

import io
import json
import random
import tarfile

VOCABULARY = (
    "amber bridge candle door elbow forest garden harbour island jacket kettle ladder mirror needle orchard pebble"
    " quarry ribbon saddle timber umbrella valley window yard zebra anchor basket copper dragon engine feather glacier"
)
WORDS = VOCABULARY.split()


def text(seed: int, words: int = 40) -> str:
    """Words in an order that no other seed gives."""
    draw = random.Random(seed)
    return " ".join(draw.choice(WORDS) for _ in range(words))


def mail(body: str, *, subject: str = "hello", sender: str = "a@example.org", headers: str = "") -> bytes:
    """A plain mail as a mailbox keeps it."""
    return (
        f"From a@example.org  Thu Aug 22 12:36:23 2002\nReceived: from tell-tale.example.org\n"
        f"From: {sender}\nSubject: {subject}\n{headers}\n{body}\n"
    ).encode()


def package(mails: dict[str, bytes]) -> bytes:
    """An archive that holds `mails` by `<directory>/<name>`, each with the JSON twin that the real one has."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in mails.items():
            twin = json.dumps({"id": name, "text": content.decode("latin-1")}).encode()
            for suffix, data in ((".txt", content), (".json", twin)):
                member = tarfile.TarInfo(f"package/data/{name}{suffix}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def many(number: int = 120) -> dict[str, bytes]:
    """Different mails, every third one spam."""
    return {
        f"{'spam-1' if each % 3 == 0 else 'easy-ham-1'}/{each:05d}.aa": mail(text(each), subject=text(each + 1000, 3))
        for each in range(number)
    }
