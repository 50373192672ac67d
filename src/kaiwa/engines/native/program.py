"""A model's program: what a family's file writes down once, and C++ replays for every batch.

    x = program.embed(table)
    q, k, v = program.linear(program.rms_norm(x, weight, eps), [wq, wk, wv])

A value is a row of numbers per token. Values live in slots that are taken again once nobody reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kaiwa.engines.native import _native
from kaiwa.engines.native._native import Matrix, Vector
from kaiwa.engines.native.rope import Rope


@dataclass(frozen=True, slots=True)
class Value:
    """Something that each token has: `width` numbers."""

    index: int
    width: int


@dataclass(frozen=True, slots=True)
class Normed:
    """A value under a norm, which the step that reads it applies as it reads."""

    value: Value
    weight: Vector
    eps: float


@dataclass(frozen=True, slots=True)
class Projection:
    """A matrix and its bias."""

    weights: Matrix
    bias: Vector | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Of group g: `width` numbers of a value from `g * stride + first` on."""

    value: Value
    stride: int
    first: int
    width: int


@dataclass(frozen=True, slots=True)
class Heads:
    """How attention splits its rows, and what it does to them before and while it compares."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    scale: float
    rope: Rope | None
    rope_is_interleaved: bool = False
    window: int = 0
    softcap: float = 0.0
    temperature: float = 0.0
    """Queries are also multiplied by `1 + temperature * log(1 + position // temperature_length)`."""
    temperature_length: int = 0
    query_norm: Vector | None = None
    key_norm: Vector | None = None
    value_norm: Vector | None = None
    norm_eps: float = 0.0
    is_gated: bool = False
    """Each query head is followed by as many numbers, whose sigmoid multiplies what the head finds."""
    sinks: Vector | None = None
    """A score for each query head that weighs no value and takes its share of the attention all the same."""


@dataclass(frozen=True, slots=True)
class Expert:
    """One gated feed-forward network of a mixture."""

    gate: Projection
    up: Projection
    down: Projection


@dataclass(frozen=True, slots=True)
class Routing:
    """How a token's experts are chosen by the logits of `router`: the `num_chosen` largest.

    Their weights are the softmax over all experts, divided by the sum of the chosen ones' where `is_renormalized`,
    times `scale` and the expert's own of `expert_scales`, where there are any. The `shared` experts come on top,
    weighed by the sigmoid of what `shared_gate` says, or by 1. The router reads what the experts read, or `input`.

    Where `is_sigmoid`, sigmoids take the place of the softmax, and `choice_biases` are added as they are compared. Of
    `num_groups` groups of neighbours only the best `num_chosen_groups` are looked at: those with the largest logit, or
    sum of two sigmoids.
    """

    router: Projection
    num_chosen: int
    is_renormalized: bool
    scale: float = 1.0
    expert_scales: Sequence[float] = ()
    input: Normed | None = None
    is_sigmoid: bool = False
    choice_biases: Sequence[float] = ()
    num_groups: int = 1
    num_chosen_groups: int = 1
    shared: Sequence[Expert] = ()
    shared_gate: Projection | None = None


@dataclass(frozen=True, slots=True)
class DeltaHeads:
    """The heads of a gated delta net, and the weights that it has beside its projections."""

    num_key_heads: int
    num_value_heads: int
    key_dim: int
    value_dim: int
    convolution: Matrix
    decays: Sequence[float]
    biases: Sequence[float]
    norm: Vector
    norm_eps: float
    is_tiled: bool = False
    """Value head h goes with key head h % num_key_heads; else neighbouring value heads share a key head."""

    @property
    def num_channels(self) -> int:
        """Numbers of all queries, keys and values."""
        return 2 * self.num_key_heads * self.key_dim + self.num_value_heads * self.value_dim


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program in C++, and where it leaves its results for the rows that were asked for."""

    native: _native.Program
    logits: int
    """The slot of the logits."""
    hidden: int
    """The slot of the last hidden states, before this norm."""
    norm: Vector
    eps: float


Emit = Callable[[_native.Program, dict[int, int]], None]


class Program:
    """Records steps; `compile` gives them slots and hands them to C++."""

    def __init__(self) -> None:
        self._values: list[Value] = []
        self._steps: list[tuple[Emit, tuple[int, ...]]] = []
        self._ending: tuple[Normed, Value] | None = None
        """The last hidden states, and the logits."""
        self._cache_layers: dict[int, tuple[int, int]] = {}
        self.state_sizes: list[int] = []
        """Numbers that each recurrent layer remembers of a sequence."""
        self._long_after = 0

    @property
    def long_after(self) -> int:
        """How many tokens a sequence may have before its rope turns by other angles; 0 where it never does."""
        return self._long_after

    @property
    def cache_shapes(self) -> list[tuple[int, int]]:
        """Key-value heads and their size, for each layer that stores any."""
        return list(self._cache_layers.values())

    def embed(self, table: Matrix, *, scale: float = 1.0) -> Value:
        """The table's row for each token id."""
        out = self._value(table.columns)
        self._record([out], lambda native, slot: native.embed(table, slot[out.index], scale))
        return out

    def rms_norm(self, x: Value, weight: Vector, eps: float) -> Normed:
        """`weight * x / sqrt(mean(x²) + eps)` (Zhang and Sennrich 2019)."""
        return Normed(x, weight, eps)

    def linear(
        self,
        x: Value | Normed,
        projections: Sequence[Projection],
        *,
        onto: Value | None = None,
        is_precise: bool = False,
    ) -> list[Value]:
        """`x · weightsᵀ + bias` for each projection; with `onto` the (one) result is added to that value.

        Quantized weights meet inputs of 8 bits, or of about 15 where `is_precise`.
        """
        source, norm, eps = _unwrap(x)
        outs = [onto] if onto is not None else [self._value(p.weights.rows) for p in projections]
        pairs = list(zip(projections, outs, strict=True))

        def emit(native: _native.Program, slot: dict[int, int]) -> None:
            parts = [(p.weights, p.bias, slot[out.index]) for p, out in pairs]
            native.linear(slot[source.index], norm, eps, parts, onto is not None, is_precise)

        self._record([source, *outs], emit)
        return outs

    def add(self, x: Value | Normed, onto: Value) -> Value:
        """Adds `x` to the value `onto`; spends `x`."""
        source, norm, eps = _unwrap(x)
        self._record([source, onto], lambda native, slot: native.add(slot[source.index], slot[onto.index], norm, eps))
        return onto

    def norm_groups(self, x: Value, weight: Vector, width: int, eps: float) -> Value:
        """Norms each `width` neighbouring numbers of `x` by themselves, in place."""
        self._record([x], lambda native, slot: native.norm_groups(slot[x.index], weight, width, eps))
        return x

    def gate(self, gate: Value, activation: str, x: Value, *, first: int) -> Value:
        """`activation(gate) * x[first : first + gate.width]`, in the place of `gate`."""
        self._record([gate, x], lambda native, slot: native.gate(slot[gate.index], activation, slot[x.index], first))
        return gate

    def scale(self, x: Value, factor: float) -> Value:
        """Multiplies `x`, in place."""
        self._record([x], lambda native, slot: native.scale(slot[x.index], factor))
        return x

    def gated(self, x: Value | Normed, gate: Matrix, up: Matrix, activation: str) -> Value:
        """`activation(x · gateᵀ) * (x · upᵀ)` (Shazeer 2020)."""
        source, norm, eps = _unwrap(x)
        out = self._value(gate.rows)

        def emit(native: _native.Program, slot: dict[int, int]) -> None:
            native.gated(slot[source.index], norm, eps, gate, up, activation, slot[out.index])

        self._record([source, out], emit)
        return out

    def regroup(self, parts: Sequence[Part], num_groups: int, width: int) -> Value:
        """`num_groups` groups of `width` numbers: in each the parts one after another, and zeros."""
        out = self._value(num_groups * width)

        def emit(native: _native.Program, slot: dict[int, int]) -> None:
            pieces = [(slot[part.value.index], part.stride, part.first, part.width) for part in parts]
            native.regroup(pieces, num_groups, width, slot[out.index])

        self._record([*(part.value for part in parts), out], emit)
        return out

    def experts(
        self,
        x: Value | Normed,
        experts: Sequence[Expert],
        routing: Routing,
        *,
        activation: str,
        onto: Value | None = None,
    ) -> Value:
        """What the experts that a router chooses for each token make of `x` (Shazeer et al. 2017).

        With `onto` it is added to that value. An expert that no token chose is not read.
        """
        source, norm, eps = _unwrap(x)
        out = self._value(experts[0].down.weights.rows) if onto is None else onto
        gates = [] if routing.shared_gate is None else [routing.shared_gate]
        router, *shared_gate = self.linear(routing.input or x, [routing.router, *gates], is_precise=True)

        def emit(native: _native.Program, slot: dict[int, int]) -> None:
            native.experts(
                slot[source.index],
                norm,
                eps,
                slot[router.index],
                slot[shared_gate[0].index] if shared_gate else -1,
                [
                    (e.gate.weights, e.up.weights, e.down.weights, e.gate.bias, e.up.bias, e.down.bias)
                    for e in (*experts, *routing.shared)
                ],
                num_chosen=routing.num_chosen,
                renormalized=routing.is_renormalized,
                scale=routing.scale,
                expert_scales=routing.expert_scales,
                sigmoid=routing.is_sigmoid,
                choice_biases=routing.choice_biases,
                num_groups=routing.num_groups,
                num_chosen_groups=routing.num_chosen_groups,
                activation=activation,
                out=slot[out.index],
                accumulate=onto is not None,
            )

        self._record([source, router, *shared_gate, out], emit)
        return out

    def attention(self, queries: Value, keys: Value | None, values: Value | None, layer: int, heads: Heads) -> Value:
        """Rotates queries and keys, stores keys and values in the cache, and attends to all that the cache holds.

        Without `keys` and `values` it attends to what this `layer` of the cache was given before.
        """
        out = self._value(heads.num_heads * heads.head_dim)
        if keys is not None:
            self._cache_layers[layer] = (heads.num_kv_heads, heads.head_dim)
        cache_layer = list(self._cache_layers).index(layer)
        stored = [value for value in (keys, values) if value is not None]

        if heads.rope is not None:
            self._long_after = max(self._long_after, heads.rope.long_after)

        def emit(native: _native.Program, slot: dict[int, int]) -> None:
            rope = -1
            if (r := heads.rope) is not None:
                rope = native.add_rope(r.frequencies, r.long_frequencies or r.frequencies, r.magnitude)
            native.attention(
                slot[queries.index],
                -1 if keys is None else slot[keys.index],
                -1 if values is None else slot[values.index],
                slot[out.index],
                layer=cache_layer,
                num_heads=heads.num_heads,
                num_kv_heads=heads.num_kv_heads,
                head_dim=heads.head_dim,
                scale=heads.scale,
                temperature=heads.temperature,
                temperature_length=heads.temperature_length,
                softcap=heads.softcap,
                window=heads.window,
                rope=rope,
                interleaved=heads.rope_is_interleaved,
                query_norm=heads.query_norm,
                key_norm=heads.key_norm,
                value_norm=heads.value_norm,
                norm_eps=heads.norm_eps,
                gated=heads.is_gated,
                sinks=heads.sinks,
            )

        self._record([queries, *stored, out], emit)
        return out

    def delta_net(self, channels: Value, gate: Value, beta: Value, alpha: Value, heads: DeltaHeads) -> Value:
        """The gated delta rule (Yang et al. 2024) on queries, keys and values, `channels`, convolved over time."""
        out = self._value(heads.num_value_heads * heads.value_dim)
        layer = len(self.state_sizes)
        past = (heads.convolution.columns - 1) * heads.num_channels
        self.state_sizes.append(past + heads.num_value_heads * heads.key_dim * heads.value_dim)

        def emit(native: _native.Program, slot: dict[int, int]) -> None:
            native.delta_net(
                slot[channels.index],
                slot[gate.index],
                slot[beta.index],
                slot[alpha.index],
                slot[out.index],
                layer=layer,
                num_key_heads=heads.num_key_heads,
                num_value_heads=heads.num_value_heads,
                key_dim=heads.key_dim,
                value_dim=heads.value_dim,
                tiled=heads.is_tiled,
                convolution=heads.convolution,
                decays=heads.decays,
                biases=heads.biases,
                norm=heads.norm,
                eps=heads.norm_eps,
            )

        self._record([channels, gate, beta, alpha, out], emit)
        return out

    def logits(self, x: Value, weight: Vector, eps: float, head: Matrix, *, softcap: float = 0.0) -> None:
        """Ends the program: norm and output head, for the tokens whose logits are asked for only.

        Where it is not 0, `softcap` bounds them: `softcap * tanh(logit / softcap)`.
        """
        chosen = self._value(x.width)
        self._record([x, chosen], lambda native, slot: native.select(slot[x.index], slot[chosen.index]))
        hidden = Normed(chosen, weight, eps)
        (logits,) = self.linear(hidden, [Projection(head)], is_precise=True)
        self._ending = (hidden, logits)
        if softcap:
            self._record([logits], lambda native, slot: native.softcap(slot[logits.index], softcap))

    def compile(
        self,
        pool: _native.ThreadPool,
        cache: _native.KvCache,
        states: _native.StateCache,
        *,
        max_rows: int,
        isa: str = "",
    ) -> Compiled:
        """The program in C++."""
        native = _native.Program(pool, cache, states, max_rows, isa)
        last_use = {index: step for step, (_, used) in enumerate(self._steps) for index in used}
        slot: dict[int, int] = {}
        free: dict[int, list[int]] = {}
        for step, (emit, used) in enumerate(self._steps):
            for index in used:
                if index not in slot:
                    spare = free.get(self._values[index].width)
                    slot[index] = spare.pop() if spare else native.add_slot(self._values[index].width)
            emit(native, slot)
            for index in set(used):
                if last_use[index] == step:
                    free.setdefault(self._values[index].width, []).append(slot[index])
        assert self._ending is not None, "a program ends with logits"
        hidden, logits = self._ending
        return Compiled(native, slot[logits.index], slot[hidden.value.index], hidden.weight, hidden.eps)

    def _value(self, width: int) -> Value:
        value = Value(len(self._values), width)
        self._values.append(value)
        return value

    def _record(self, used: Sequence[Value], emit: Emit) -> None:
        self._steps.append((emit, tuple(value.index for value in used)))


def _unwrap(x: Value | Normed) -> tuple[Value, Vector | None, float]:
    return (x.value, x.weight, x.eps) if isinstance(x, Normed) else (x, None, 0.0)
