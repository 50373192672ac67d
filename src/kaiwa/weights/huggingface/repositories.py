"""Fetch a model from the hub by its name, or find what is here of it where the hub cannot be reached."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from kaiwa.errors import ModelNotFound, did_you_mean
from kaiwa.events import Progress
from kaiwa.weights.huggingface import downloads, folders, receipts
from kaiwa.weights.huggingface.api import HubClient, Repository, Unreachable
from kaiwa.weights.huggingface.choice import Choice, choose
from kaiwa.weights.huggingface.hub_name import HubName
from kaiwa.weights.huggingface.receipts import Receipt
from kaiwa.weights.safetensors import INDEX


def fetch(name: HubName, *, token: str | None, on_progress: Callable[[Progress], None]) -> Receipt:
    """The model of this name as the hub has it now; offline, as it was fetched last.

    `on_progress` hears of a quantization that Kaiwa chose itself in the stage "choose", before any byte is fetched.
    Raises what `hub.resolve` says.
    """
    folder = folders.folder(name.repo)
    client = HubClient(token)
    try:
        repository = client.look_up(name.repo, name.revision)
    except Unreachable as error:
        if receipt := _without_network(name, folder):
            return receipt
        raise _with_near_name(error, name) from error
    choice = choose(repository.files, name)
    total = sum(repository.files[file].num_bytes for file in choice.files)
    if choice.others:
        on_progress(Progress("choose", 0, total, detail=_words(name, choice)))
    snapshot = downloads.fetch(client, repository, choice.files, folder, on_progress=on_progress)
    folder.note(name.revision, repository.commit)
    return _keep(name, repository, choice, snapshot)


def fetch_file(name: HubName, file: str) -> Path:
    """One file of a repository that is of use without a model; offline, as it was fetched last.

    Raises `ModelNotFound` where there is none, and what `fetch` raises.
    """
    folder = folders.folder(name.repo)
    client = HubClient()
    try:
        repository = client.look_up(name.repo, name.revision)
    except Unreachable:
        place = folder.snapshot(folder.commit_of(name.revision) or name.revision) / file
        if place.is_file():
            return place
        raise
    if file not in repository.files:
        raise ModelNotFound(f"{name.repo} has no file {file!r}", hint=did_you_mean(file, repository.files))
    snapshot = downloads.fetch(client, repository, [file], folder, on_progress=lambda progress: None)
    folder.note(name.revision, repository.commit)
    return snapshot / file


def _with_near_name(error: Unreachable, name: HubName) -> Unreachable:
    """The error, which offers what is here under nearly this name."""
    here = [receipt.name for receipt in receipts.all_receipts() if receipt.is_whole()]
    near = did_you_mean(str(name), here)
    return Unreachable(str(error), hint=f"{near} It is here. Else {error.hint}") if near.startswith("did") else error


def _keep(name: HubName, repository: Repository, choice: Choice, snapshot: Path) -> Receipt:
    receipt = Receipt(
        name=str(name),
        repo=name.repo,
        revision=name.revision,
        commit=repository.commit,
        folder=str(snapshot),
        entry=choice.entry,
        files={file: repository.files[file].num_bytes for file in choice.files},
        quantization=choice.quantization,
        licence=repository.licence,
    )
    receipt.write()
    return receipt


def _without_network(name: HubName, folder: folders.RepositoryFolder) -> Receipt | None:
    """What Hugging Face's own programs, or an earlier revision of this name, left whole in the shared cache."""
    commit = folder.commit_of(name.revision)
    here = folder.files_of(commit) if commit else []
    try:
        choice = choose(here, name)
    except ModelNotFound:
        return None
    snapshot = folder.snapshot(commit)
    if len(choice.files) < choice.num_parts or (INDEX in choice.files and not _has_all_shards(snapshot)):
        return None
    sizes = {file: (snapshot / file).stat().st_size for file in choice.files}
    return Receipt(str(name), name.repo, name.revision, commit, str(snapshot), choice.entry, sizes, choice.quantization)


def _has_all_shards(snapshot: Path) -> bool:
    try:
        shards = set(json.loads((snapshot / INDEX).read_text())["weight_map"].values())
    except (OSError, ValueError, LookupError, AttributeError):
        return False
    return all((snapshot / str(shard)).is_file() for shard in shards)


def _words(name: HubName, choice: Choice) -> str:
    """What was chosen, and how to choose otherwise."""
    others = ", ".join(choice.others)
    return f"{name} is there as {others} too; taking {choice.quantization} (choose with {name.repo}:NAME)"
