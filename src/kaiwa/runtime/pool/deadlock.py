"""Who waits for a model that can never come, because it needs the room of one that whoever waits does not give back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kaiwa.errors import OutOfMemory
from kaiwa.runtime.loading.planning import in_megabytes
from kaiwa.runtime.pool.room import Room, Visit
from kaiwa.runtime.pool.shelf import Shelf


def stuck(rooms: Mapping[str, Room], shelf: Shelf) -> Visit | None:
    """Somebody who waits, directly or by way of others, for themselves."""
    holding = {user.owner for room in rooms.values() for user in room.users}
    # Whoever holds nothing is in nobody's way: in a server that is everybody, so that this costs it next to nothing.
    waiting = [visit for room in rooms.values() for visit in room.visits if visit.owner in holding]
    return next((visit for visit in waiting if visit.owner in _holders(visit, waiting, rooms, shelf)), None)


def why_stuck(visit: Visit, rooms: Mapping[str, Room], shelf: Shelf) -> OutOfMemory:
    """What whoever is stuck is told."""
    wanted = visit.room.place
    held = [room.place for room in rooms.values() if any(user.owner is visit.owner for user in room.users)]
    names = ", ".join(place.name for place in held)
    if shelf.max_models is not None and shelf.held()[0] >= shelf.max_models:
        limit = f"of the models, {shelf.max_models} may be in memory at once"
    else:
        sizes = [f"{place.name} takes {in_megabytes(place.held_bytes)}" for place in held if place.held_bytes]
        if wanted.asked_bytes:
            sizes.append(f"{wanted.name} needs {in_megabytes(wanted.asked_bytes)}")
        most = f"all models together may take {in_megabytes(shelf.memory_bytes or 0)}"
        limit = f"{', '.join(sizes)}, and {most}"
    return OutOfMemory(
        f"{wanted.name} would be waited for in vain: it has no place before {names} leaves, which whoever asks holds "
        f"({limit})",
        hint="give the first model back before asking for the second, or let the pool have room for both",
    )


def _holders(visit: Visit, waiting: list[Visit], rooms: Mapping[str, Room], shelf: Shelf) -> set[object]:
    """Everybody who has to give a model back, or to get one first, before this visit ends."""
    found: set[object] = set()
    unseen = [visit]
    while unseen:
        new = {user.owner for user in _in_the_way(unseen.pop(), rooms, shelf)} - found
        found |= new
        unseen += (other for other in waiting if other.owner in new)
    return found


def _in_the_way(visit: Visit, rooms: Mapping[str, Room], shelf: Shelf) -> Iterator[Visit]:
    for place in shelf.hindrances(visit.room.place):
        yield from rooms[place.name].users
