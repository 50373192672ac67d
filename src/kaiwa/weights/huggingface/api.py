"""The Hugging Face Hub over HTTP: what a repository holds, and the bytes of its files.

Address, token, offline mode and proxies are those that `huggingface_hub` knows (`HF_ENDPOINT`, `HF_TOKEN`,
`HF_HUB_OFFLINE`, `hf auth login`). Its own downloads are not used: docs/design.md says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from kaiwa.errors import DownloadFailed, KaiwaError, ModelNotFound

_TIMEOUT_S = 30.0
_NUM_NEAR = 4
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _NO_SUCH_RANGE, _TOO_MANY, _PARTIAL = 401, 403, 404, 416, 429, 206
WAITS_S = (0.2, 1.0, 3.0, 8.0)
"""Between attempts that bring nothing."""
MAX_WAIT_S = 60.0
_BUSY = (408, 429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file as the hub describes it. `sha256` is "" for small ones, which git keeps and knows by their `git_sha1`."""

    name: str
    num_bytes: int
    sha256: str = ""
    git_sha1: str = ""

    @property
    def key(self) -> str:
        """What the file is called in the cache that all of Hugging Face's programs share."""
        return self.sha256 or self.git_sha1


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at one commit."""

    name: str
    commit: str
    files: Mapping[str, HubFile]
    licence: str = ""
    is_gated: bool = False


class Interrupted(Exception):
    """The connection ended, or the server asks to come again; `wait_s` says when, where it does."""

    def __init__(self, reason: str, *, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class Unreachable(DownloadFailed):
    """There is no network, no such server, or Kaiwa was told to stay offline."""


class HubClient:
    """Talks to the hub on behalf of one person. `token` is None for the one that they have set up, if any."""

    def __init__(self, token: str | None = None) -> None:
        import huggingface_hub
        from huggingface_hub import constants

        self._hub: Any = huggingface_hub
        self._endpoint = constants.ENDPOINT
        self._token = token or huggingface_hub.get_token()

    def look_up(self, repo: str, revision: str) -> Repository:
        """The files of a repository. Raises `ModelNotFound`, or `DownloadFailed` (`Unreachable`) with the reason."""
        with self._translated(repo, revision), self._reached(repo):
            about = {"revision": revision, "files_metadata": True, "timeout": _TIMEOUT_S}
            info = self._ask(lambda: self._api().model_info(repo, **about))
        files = {
            sibling.rfilename: HubFile(
                sibling.rfilename,
                sibling.size or 0,
                sibling.lfs.sha256 if sibling.lfs else "",
                sibling.blob_id or "",
            )
            for sibling in info.siblings or ()
        }
        if nameless := [file.name for file in files.values() if not file.key]:
            raise DownloadFailed(
                f"{self._endpoint} gives no checksum for {nameless[0]} of {repo}, so nothing could be checked",
                hint="unset HF_ENDPOINT, or use a mirror that passes on what the hub says of its files",
            )
        licence = (info.card_data.get("license") if info.card_data else None) or _tagged(info.tags or [], "license:")
        return Repository(repo, info.sha or revision, files, str(licence or ""), bool(info.gated))

    @contextmanager
    def read(self, repo: str, commit: str, file: str, *, start: int) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Where the answer begins (`start`, or 0 where the server knows no ranges), and the bytes from there.

        Raises `Interrupted` where trying again may help, `DownloadFailed` where it does not.
        """
        import httpx2

        url = self._hub.hf_hub_url(repo, file, revision=commit, endpoint=self._endpoint)
        headers = {
            **self._hub.utils.build_hf_headers(token=self._token or False, library_name="kaiwa"),
            "Accept-Encoding": "identity",  # so that bytes and their number are those of the file
        }
        if start:
            headers["Range"] = f"bytes={start}-"
        session = self._hub.get_session()
        try:
            with self._translated(repo, commit), session.stream("GET", url, headers=headers, timeout=_TIMEOUT_S) as got:
                if got.status_code in _BUSY:
                    raise Interrupted(f"the hub answered {got.status_code}", wait_s=_wait_s(got.headers))
                if start and got.status_code == _NO_SUCH_RANGE:
                    yield 0, iter(())  # what is here is longer than the file: it begins anew
                    return
                self._hub.utils.hf_raise_for_status(got)
                yield (start if got.status_code == _PARTIAL else 0), got.iter_bytes()
        except httpx2.TransportError as error:
            raise Interrupted(str(error) or type(error).__name__) from error

    def _ask(self, question: Callable[[], Any]) -> Any:
        """The answer, asked for again where the hub is busy: when it says, or a little later each time."""
        from huggingface_hub import errors

        for wait_s in WAITS_S:
            try:
                return question()
            except errors.HfHubHTTPError as error:
                if error.response.status_code not in _BUSY:
                    raise
                asked_s = _wait_s(error.response.headers)
                time.sleep(min(wait_s if asked_s is None else asked_s, MAX_WAIT_S))
        return question()

    def _api(self) -> Any:
        return self._hub.HfApi(endpoint=self._endpoint, token=self._token or False, library_name="kaiwa")

    @contextmanager
    def _translated(self, repo: str, revision: str) -> Iterator[None]:
        """Our errors for what the hub refuses; a connection that ends is left to the caller."""
        from huggingface_hub import errors

        try:
            yield
        except errors.OfflineModeIsEnabled as error:
            raise Unreachable(
                f"{repo} is not on this machine, and HF_HUB_OFFLINE says to stay offline",
                hint="unset HF_HUB_OFFLINE, or copy the model here and pass its path",
            ) from error
        except errors.RevisionNotFoundError as error:
            raise ModelNotFound(
                f"{repo} has no revision {revision!r}", hint="a revision is a branch, a tag or a commit"
            ) from error
        except errors.HfHubHTTPError as error:
            raise self._refused(repo, error) from error

    @contextmanager
    def _reached(self, repo: str) -> Iterator[None]:
        import httpx2

        try:
            yield
        except httpx2.TransportError as error:
            raise Unreachable(
                f"{repo} is not on this machine, and {self._endpoint} cannot be reached: "
                f"{str(error) or type(error).__name__}",
                hint="check the network, HTTPS_PROXY and HF_ENDPOINT; what is fetched once works offline",
            ) from error

    def _refused(self, repo: str, error: Any) -> KaiwaError:
        from huggingface_hub import errors

        status = error.response.status_code
        page = f"{self._endpoint}/{repo}"
        if isinstance(error, errors.GatedRepoError):
            return DownloadFailed(
                f"{repo} is gated: its makers give it to people who accept their terms",
                hint=f"accept them at {page}, then "
                + ("wait for their consent" if self._token else "log in with `hf auth login`, or set HF_TOKEN"),
            )
        if status == _UNAUTHORIZED and self._token:
            return DownloadFailed(
                "the hub does not know the token that it was given",
                hint=f"make a new one at {self._endpoint}/settings/tokens and set HF_TOKEN, or unset it",
            )
        if status in (_UNAUTHORIZED, _NOT_FOUND):
            return ModelNotFound(
                f"there is no model {repo!r} on {self._endpoint}, or it is private", hint=self._near(repo)
            )
        if status == _FORBIDDEN:
            return DownloadFailed(
                f"the hub refuses to give {repo} to this token", hint="give the token the right to read it"
            )
        if status == _TOO_MANY:
            instead = "" if self._token else ", or log in with `hf auth login` to be allowed more"
            return DownloadFailed(
                f"{self._endpoint} answers no more of your questions for now ({status})",
                hint=f"wait some minutes{instead}",
            )
        return DownloadFailed(f"{self._endpoint} answered {status} when asked for {repo}", hint="try again later")

    def _near(self, repo: str) -> str:
        """A hint with the names that come nearest, by the hub's own search."""
        import httpx2
        from huggingface_hub import errors

        found: list[str] = []
        # A search that fails costs the hint and nothing else.
        with suppress(errors.HfHubHTTPError, httpx2.HTTPError, ValueError):
            words = repo.partition("/")[2]
            found = [model.id for model in self._api().list_models(search=words, limit=_NUM_NEAR, sort="downloads")]
        own = "log in with `hf auth login` if it is yours"
        return f"did you mean {' or '.join(found)}? Or {own}" if found else f"check its name; {own}"


def _tagged(tags: list[str], prefix: str) -> str:
    return next((tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)), "")


def _wait_s(headers: Mapping[str, str]) -> float | None:
    """What `Retry-After` asks for; a date there is not worth its parsing."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None
