"""Who comes next: the client that was served least, and of its jobs the one that was asked first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from kaiwa.runtime.job import Job

J = TypeVar("J", bound=Job)


class FairQueue(Generic[J]):
    """Waiting jobs of many clients, and how many tokens each client has had.

    Who comes anew, or back, starts level with the client that was served least: nobody saves up by waiting.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[J]] = {}
        self._num_tokens: dict[str, int] = {}
        self._num_jobs: dict[str, int] = {}
        """Of each client, waiting or running; who has none is forgotten."""

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def join(self, job: J) -> None:
        """A new job, behind the others of its client."""
        if job.client not in self._num_jobs:
            self._num_jobs[job.client] = 0
            self._num_tokens[job.client] = min(self._num_tokens.values(), default=0)
        self._num_jobs[job.client] += 1
        self._waiting.setdefault(job.client, deque()).append(job)

    def put_back(self, job: J) -> None:
        """A job that was begun and has to wait again: before all others of its client."""
        self._waiting.setdefault(job.client, deque()).appendleft(job)

    def take(self, job: J) -> None:
        """A waiting job begins."""
        jobs = self._waiting[job.client]
        jobs.remove(job)
        if not jobs:
            del self._waiting[job.client]

    def leave(self, job: J) -> None:
        """A job that does not wait, or does no longer, is over."""
        self._num_jobs[job.client] -= 1
        if not self._num_jobs[job.client]:
            del self._num_jobs[job.client], self._num_tokens[job.client]

    def charge(self, client: str, num_tokens: int) -> None:
        """The client had that many tokens computed."""
        self._num_tokens[client] += num_tokens

    def rank(self, job: J) -> tuple[int, int]:
        """What orders jobs: the lowest comes first."""
        return self._num_tokens[job.client], job.number

    def by_client(self) -> Iterator[tuple[str, tuple[J, ...]]]:
        """Clients with waiting jobs, who comes next first, and their jobs in order."""
        clients = sorted(self._waiting.items(), key=lambda item: self.rank(item[1][0]))
        return ((client, tuple(jobs)) for client, jobs in clients)

    def in_order(self) -> list[J]:
        """All waiting jobs as they will begin if each takes as long as the others: every client in turn."""
        clients = [jobs for _, jobs in self.by_client()]
        return [
            jobs[place] for place in range(max(map(len, clients), default=0)) for jobs in clients if place < len(jobs)
        ]
