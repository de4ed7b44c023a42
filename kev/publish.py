"""Upload a checkpoint to the Hub, if its owner says so.

    python -m kev.publish --run CKPT --repo owner/name --card README.md --i-am-the-owner-of owner/name

Nothing is uploaded without `--i-am-the-owner-of`, which repeats the repository; a public one needs `--public` as
well. Unattended sessions have no way to say either. An incomplete checkpoint and an empty card are refused before the
Hub is reached.
"""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kev import files
from kev.checkpoint import read_head
from kev.console import run
from kev.errors import KevError, Refused, UsageError
from kev.model.layout import find_layout

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
LEFT_OUT = ("resume/*", "hub.json", "*.tmp", ".*")
"""What lies in a checkpoint's directory and is no part of it."""


class HubFailed(KevError):
    """The Hub did not take an upload."""


@dataclass(frozen=True, slots=True)
class Upload:
    """What goes where."""

    run: Path
    repo: str
    card: Path
    message: str
    public: bool = False
    revision: str | None = None
    tag: str | None = None


class Hub(Protocol):
    """The part of the Hub that an upload needs."""

    def upload(self, upload: Upload) -> str:
        """Create the repository if it is not there, upload, and return the commit. Raises HubFailed or Refused."""
        ...


def check(upload: Upload, owner_of: str | None) -> None:
    """Raise Refused or UsageError unless the owner asked for exactly this, and it is complete."""
    if not REPOSITORY.fullmatch(upload.repo):
        raise UsageError(f"--repo {upload.repo!r}: a repository is owner/name")
    if owner_of is None:
        raise Refused(
            f"{upload.repo}: nothing is published without its owner's word; the owner adds "
            f"--i-am-the-owner-of {upload.repo}"
        )
    if owner_of != upload.repo:
        raise Refused(f"--i-am-the-owner-of names {owner_of}, and --repo {upload.repo}; they must be the same")
    head = read_head(upload.run)
    if (upload.run / "resume").exists():
        raise Refused(f"{upload.run}: still in training; its resume points are there")
    if left_over := find_layout(upload.run, head).remarks:
        raise Refused(f"{left_over[0]}; remove what is not meant, other programs choose by name")
    if not files.read_bytes(upload.card).strip():
        raise Refused(f"{upload.card}: an empty card")


def publish(upload: Upload, owner_of: str | None, hub: Hub) -> str:
    """Upload after every check; the commit. Raises as `check` and `Hub.upload`."""
    check(upload, owner_of)
    return hub.upload(upload)


class HuggingFaceHub:
    """The Hub itself, with the token its client finds."""

    def upload(self, upload: Upload) -> str:
        try:
            from huggingface_hub import HfApi
        except ImportError:
            raise UsageError("publishing needs the Hub's client: `pip install 'kevtui[hub]'`") from None
        api = HfApi()
        try:
            private = not upload.public
            api.create_repo(upload.repo, private=private, exist_ok=True)
            if private and not api.repo_info(upload.repo).private:
                raise Refused(f"{upload.repo}: is public; say --public to publish there")
            api.upload_file(path_or_fileobj=str(upload.card), path_in_repo="README.md", repo_id=upload.repo,
                            revision=upload.revision)  # fmt: skip
            commit = api.upload_folder(
                repo_id=upload.repo,
                folder_path=upload.run,
                commit_message=upload.message,
                revision=upload.revision,
                ignore_patterns=list(LEFT_OUT),
            )
            if upload.tag:
                api.create_tag(upload.repo, tag=upload.tag, revision=commit.oid)
        except KevError:
            raise
        except Exception as error:  # the client's own errors, which are many and change between its versions
            raise HubFailed(f"{upload.repo}: not published ({type(error).__name__})") from error
        return str(commit.oid)


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 0 after an upload, 1 for a refusal in one line."""
    parser = argparse.ArgumentParser(
        prog="python -m kev.publish", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True, metavar="CHECKPOINT", help="the checkpoint's directory")
    parser.add_argument("--repo", required=True, metavar="OWNER/NAME", help="the repository")
    parser.add_argument("--card", type=Path, required=True, metavar="FILE", help="the model card")
    parser.add_argument("--message", default="Upload checkpoint", help="the commit message")
    visibility = parser.add_mutually_exclusive_group()
    visibility.add_argument("--private", action="store_true", help="a private repository (the default)")
    visibility.add_argument("--public", action="store_true", help="a public repository")
    parser.add_argument("--revision", metavar="BRANCH", help="the branch (main)")
    parser.add_argument("--tag", metavar="NAME", help="tag the commit")
    parser.add_argument("--i-am-the-owner-of", metavar="OWNER/NAME", help="the owner's word: the repository again")
    given = parser.parse_args(arguments)
    upload = Upload(given.run, given.repo, given.card, given.message, given.public, given.revision, given.tag)
    return run(lambda: _report(upload, given.i_am_the_owner_of))


def _report(upload: Upload, owner_of: str | None) -> int:
    print(f"published {upload.repo} at {publish(upload, owner_of, HuggingFaceHub())}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
