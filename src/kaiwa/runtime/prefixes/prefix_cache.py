"""What the engine has already read: sequences kept after their answers, for the next prompt that begins like them.

Each belongs to a scope, and is used within that only; what has the scope "" is for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass

from kaiwa.engines.engine import Engine
from kaiwa.errors import OutOfMemory, UnusableFile
from kaiwa.runtime.prefixes.prefix_store import PrefixStore, Stored
from kaiwa.runtime.prefixes.radix_tree import RadixTree, common_prefix

SHARED = ""
WORTH_SAVING = 64
"""Tokens from which on a sequence is worth a file, and so many more than memory has are worth reading one."""
MAX_SEQUENCES = 256
MAX_RECURRENT_SEQUENCES = 4
"""Recurrent layers hold a state of its own size for each sequence, however short."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A sequence of the engine, and the tokens that it has computed. One that `is_running` belongs to a request."""

    sequence: int
    token_ids: list[int]
    scope: str
    is_running: bool = False
    num_shared: int = 0
    """How many of the tokens were another sequence's when this one began."""

    @property
    def num_own(self) -> int:
        """The tokens whose memory is free when this sequence is closed, unless others have begun with them since."""
        return max(len(self.token_ids) - self.num_shared, 0)


@dataclass(frozen=True, slots=True)
class Match:
    """How many tokens of a prompt are known, and of what."""

    known: Known
    num_tokens: int


class PrefixCache:
    """Keeps finished sequences, as many as the engine has room for; the least recently used go first."""

    def __init__(self, engine: Engine, store: PrefixStore | None = None) -> None:
        self._engine = engine
        self._store = store
        self._unsaved: dict[Known, None] = {}
        """Kept sequences that the store does not have yet."""
        self._fetch: tuple[Stored, Future[bytes | None]] | None = None
        """The one file that is being read, or was read last and not used yet."""
        most = MAX_RECURRENT_SEQUENCES if engine.info.is_recurrent else MAX_SEQUENCES
        self._max_sequences = min(most, max(engine.info.max_sequences // 2, 1))  # the others are for what runs
        self._trees: dict[str, RadixTree[Known]] = {}
        self._kept: dict[Known, None] = {}
        """The least recently used one first."""
        self.num_tokens = 0
        """Whose memory would be free if nothing were kept."""

    def __len__(self) -> int:
        return len(self._kept)

    def match(self, token_ids: list[int], scope: str, running: Iterable[Known] = ()) -> Match | None:
        """The longest known beginning of a prompt, never all of it.

        The prompt's last token is always left to compute, as the answer's first token is sampled after it.
        """
        prompt = token_ids[:-1]
        best: Match | None = None
        for known, common in self._candidates(prompt, scope, running):
            if best is None or common > best.num_tokens:
                keepable = self._engine.keepable(known.sequence, common)
                if keepable and (best is None or keepable > best.num_tokens):
                    best = Match(known, keepable)
        return best

    def is_fetching(self, token_ids: list[int], scope: str, running: Iterable[Known] = ()) -> bool:
        """Whether a file has to be read before this prompt is opened. The store reads one after the other."""
        if self._store is None:
            return False
        match = self.match(token_ids, scope, running)
        found = self._worth_reading(token_ids, scope, at_least=match.num_tokens if match is not None else 0)
        if found is None:
            return False
        stored, _ = found
        if self._fetch is None or (self._fetch[0] is not stored and self._fetch[1].done()):
            self._fetch = stored, self._store.read_soon(stored)
        return self._fetch[0] is not stored or not self._fetch[1].done()

    def wait_for_file(self, timeout_s: float) -> None:
        """Wait until a file is read that is being read, but no longer than that."""
        if self._fetch is not None:
            wait([self._fetch[1]], timeout_s)

    def open(self, token_ids: list[int], scope: str, running: Iterable[Known] = ()) -> tuple[int, int]:
        """A sequence for a prompt, and how many of the prompt's tokens it holds already."""
        match = self.match(token_ids, scope, running)
        restored = self._restore(token_ids, scope, at_least=match.num_tokens if match is not None else 0)
        if restored is not None:
            return restored, self._engine.length(restored)
        if match is None:
            return self._engine.open(), 0
        known = match.known
        if known.is_running:
            sequence = self._engine.fork(known.sequence, match.num_tokens)
        elif known.scope == scope and match.num_tokens == len(known.token_ids):
            self._forget(known)  # the prompt goes on where it ended, and what will be kept then holds it all
            sequence = known.sequence
        else:
            self._kept[known] = self._kept.pop(known)
            sequence = self._engine.fork(known.sequence, match.num_tokens)
        return sequence, self._engine.length(sequence)

    def keep(self, sequence: int, token_ids: list[int], scope: str, *, num_shared: int = 0) -> None:
        """Take a sequence of which at most the tokens `token_ids` are computed, until its memory is needed.

        When it began, `num_shared` of them were computed.
        """
        length = min(self._engine.length(sequence), len(token_ids))
        self._engine.truncate(sequence, length)
        length = self._engine.length(sequence)
        if not length:
            self._engine.close(sequence)
            return
        known = Known(sequence, token_ids[:length], scope, num_shared=num_shared)
        same = self._trees.setdefault(scope, RadixTree()).insert(known.token_ids, known)
        if same is not None:
            self._drop(same)
            self._engine.close(same.sequence)
        self._kept[known] = None
        if self._store is not None and length >= WORTH_SAVING:
            self._unsaved[known] = None
        self.num_tokens += known.num_own
        while len(self._kept) > self._max_sequences:
            self.forget_oldest()

    def save_one(self) -> bool:
        """Hand one sequence to the store that it does not have yet; whether there was one.

        What was read of a file for somebody who left is forgotten.
        """
        if self._fetch is not None and self._fetch[1].done():
            self._fetch = None
        if self._store is None or not self._unsaved:
            return False
        known, _ = self._unsaved.popitem()
        self._store.write(known.token_ids, known.scope, self._engine.save(known.sequence))
        return True

    def close(self) -> None:
        """Hand all to the store, and wait until it is written, and nothing is read."""
        while self.save_one():
            pass
        if self._store is not None:
            self._store.flush()
        if self._fetch is not None:
            self._fetch[1].result()

    def make_room(self, num_tokens: int) -> None:
        """Forget old sequences until the engine has a place for `num_tokens` more, or nothing is kept."""
        while self._kept and self._engine.num_free_tokens() < num_tokens:
            self.forget_oldest()

    def forget_oldest(self) -> bool:
        """Give back the memory of what was used least recently; whether anything was kept."""
        oldest = next(iter(self._kept), None)
        if oldest is None:
            return False
        self._forget(oldest)
        self._engine.close(oldest.sequence)
        return True

    def _candidates(self, prompt: list[int], scope: str, running: Iterable[Known]) -> Iterator[tuple[Known, int]]:
        for name in dict.fromkeys((scope, SHARED)):
            if name in self._trees:
                yield from self._trees[name].longest(prompt)
        for known in running:
            if known.scope in (scope, SHARED):
                yield known, common_prefix(known.token_ids, prompt)

    def _forget(self, known: Known) -> None:
        self._trees[known.scope].remove(known.token_ids)
        if self._trees[known.scope].is_empty:
            del self._trees[known.scope]
        self._drop(known)

    def _worth_reading(self, token_ids: list[int], scope: str, *, at_least: int) -> tuple[Stored, int] | None:
        """The file that has clearly more of a prompt than memory, and how many tokens of it."""
        found = self._store.find(token_ids, scope) if self._store is not None else None
        return found if found is not None and found[1] >= at_least + WORTH_SAVING else None

    def _restore(self, token_ids: list[int], scope: str, *, at_least: int) -> int | None:
        """A sequence from the file that was read for it."""
        found = self._worth_reading(token_ids, scope, at_least=at_least)
        if self._store is None or found is None or self._fetch is None or self._fetch[0] is not found[0]:
            return None
        stored, num_common = found
        saved, self._fetch = self._fetch[1].result(), None
        if saved is None:
            return None
        try:
            self.make_room(len(stored.token_ids))
            sequence = self._engine.restore(saved)
        except (UnusableFile, OutOfMemory) as error:
            if isinstance(error, UnusableFile):
                self._store.discard(stored, str(error))
            return None
        self._engine.truncate(sequence, num_common)
        return sequence

    def _drop(self, known: Known) -> None:
        del self._kept[known]
        self._unsaved.pop(known, None)
        self.num_tokens -= known.num_own
