"""What `native/bindings.cpp` offers. Buffers are C-contiguous; float buffers hold float32."""

from collections.abc import Sequence
from typing import TypeAlias

Floats: TypeAlias = memoryview[float]
Buffer: TypeAlias = bytes | bytearray | memoryview | Floats

class ThreadPool:
    def __init__(self, num_threads: int) -> None: ...
    @property
    def num_threads(self) -> int: ...

class Vector: ...

class Matrix:
    def __init__(self, format: str, data: Buffer, rows: int, columns: int, pool: ThreadPool | None = None) -> None: ...
    @property
    def format(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def to_vector(self, offset: float = 0.0) -> Vector: ...
    def unpack(self) -> Floats: ...

# Matrices out of several tensors: native/pack_parts.h says what each part holds. A range is total, first, step: which
# of the rows of the parts the matrix has.
def pack_int8(
    weights: Buffer,
    scales: Buffer,
    rows: int,
    columns: int,
    range: tuple[int, int, int] | None = None,
    pool: ThreadPool | None = None,
) -> Matrix: ...
def pack_gptq(
    weights: Buffer,
    zeros: Buffer,
    scales: Buffer,
    group: int,
    zero_offset: int,
    rows: int,
    columns: int,
    range: tuple[int, int, int] | None = None,
    pool: ThreadPool | None = None,
) -> Matrix: ...
def pack_awq(
    weights: Buffer,
    zeros: Buffer,
    scales: Buffer,
    group: int,
    rows: int,
    columns: int,
    range: tuple[int, int, int] | None = None,
    pool: ThreadPool | None = None,
) -> Matrix: ...
def pack_float8(
    weights: Buffer,
    scales: Buffer,
    tile_rows: int,
    tile_columns: int,
    rows: int,
    columns: int,
    range: tuple[int, int, int] | None = None,
    pool: ThreadPool | None = None,
) -> Matrix: ...
def pack_table4(
    weights: Buffer,
    table: Buffer,
    scales: Buffer,
    block: int,
    rows: int,
    columns: int,
    range: tuple[int, int, int] | None = None,
    pool: ThreadPool | None = None,
) -> Matrix: ...
def pack_mxfp4(
    weights: Buffer,
    exponents: Buffer,
    rows: int,
    columns: int,
    range: tuple[int, int, int] | None = None,
    pool: ThreadPool | None = None,
) -> Matrix: ...
def unpack_nested(indices: Buffer, table: Buffer, scales: Buffer, block: int, offset: float) -> Floats: ...
def unpack(format: str, data: Buffer, rows: int, columns: int) -> Floats: ...
def quantize(format: str, data: Buffer, to: str, pool: ThreadPool) -> bytes: ...
def divergence(
    expected: Floats, actual: Floats, targets: Sequence[int], pool: ThreadPool
) -> list[tuple[float, float, float, bool]]: ...
def checksum(data: Buffer, pool: ThreadPool) -> int: ...
def matmul(
    matrix: Matrix, x: Buffer, threads: int = 1, isa: str = "", precise: bool = False, prompt: bool = False
) -> Floats: ...
def available_isas() -> list[str]: ...
def dot_peak(num_threads: int, isa: str = "") -> float: ...
def read_bandwidth(num_threads: int, num_bytes: int) -> float: ...

class KvCache:
    def __init__(self, layers: Sequence[tuple[int, int]], num_blocks: int, dtype: str) -> None: ...
    @property
    def num_blocks(self) -> int: ...
    @property
    def block_bytes(self) -> int: ...
    def copy(self, from_: int, to: int) -> None: ...
    def read(self, blocks: BlockTable, count: int) -> bytes: ...
    def write(self, blocks: BlockTable, data: Buffer) -> None: ...
    def discard(self, block: int) -> None: ...

class BlockTable:
    def __init__(self, cache: KvCache) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> int: ...
    def append(self, block: int) -> None: ...
    def replace(self, index: int, block: int) -> None: ...
    def cut(self, size: int) -> None: ...

class StateCache:
    def __init__(self, layers: Sequence[int], num_slots: int) -> None: ...
    @property
    def num_layers(self) -> int: ...
    @property
    def num_slots(self) -> int: ...
    @property
    def slot_bytes(self) -> int: ...
    def copy(self, from_: int, to: int) -> None: ...
    def read(self, slot: int) -> bytes: ...
    def write(self, slot: int, data: Buffer) -> None: ...
    def discard(self, slot: int) -> None: ...

class Sampler:
    def __init__(
        self,
        *,
        greedy: bool,
        temperature: float,
        top_k: int,
        top_p: float,
        min_p: float,
        repetition_penalty: float,
        presence_penalty: float,
        frequency_penalty: float,
        logit_bias: Sequence[tuple[int, float]],
        seed: int,
        vocab_size: int,
    ) -> None: ...
    def set_prompt(self, token_ids: Sequence[int]) -> None: ...
    def sample(self, logits: Buffer, allowed: bytes | None = None) -> int: ...

# start, count, blocks, whether it is of a prompt, whether the sequence is long, state, checkpoint, checkpoint_tokens
SliceTuple: TypeAlias = tuple[int, int, BlockTable, bool, bool, int, int, int]
# sampler, first row, guesses, what is allowed, number of logprobs or -1
DrawTuple: TypeAlias = tuple[Sampler, int, Sequence[int], bytes | None, int]
# of the sampled token, and the best ones with theirs
LogprobsTuple: TypeAlias = tuple[float, list[tuple[int, float]]]

class Program:
    def __init__(self, pool: ThreadPool, cache: KvCache, states: StateCache, max_rows: int, isa: str = "") -> None: ...
    def add_rope(self, frequencies: Sequence[float], long_frequencies: Sequence[float], magnitude: float) -> int: ...
    def add_slot(self, width: int) -> int: ...
    def embed(self, table: Matrix, out: int, scale: float = 1.0) -> None: ...
    def linear(
        self,
        in_: int,
        norm: Vector | None,
        eps: float,
        parts: Sequence[tuple[Matrix, Vector | None, int]],
        accumulate: bool,
        precise: bool,
    ) -> None: ...
    def gated(
        self, in_: int, norm: Vector | None, eps: float, gate: Matrix, up: Matrix, activation: str, out: int
    ) -> None: ...
    def experts(
        self,
        in_: int,
        norm: Vector | None,
        eps: float,
        router: int,
        shared_gate: int,
        experts: Sequence[tuple[Matrix, Matrix, Matrix, Vector | None, Vector | None, Vector | None]],
        *,
        num_chosen: int,
        renormalized: bool,
        scale: float,
        expert_scales: Sequence[float],
        sigmoid: bool,
        choice_biases: Sequence[float],
        num_groups: int,
        num_chosen_groups: int,
        activation: str,
        out: int,
        accumulate: bool,
    ) -> None: ...
    def attention(
        self,
        queries: int,
        keys: int,
        values: int,
        out: int,
        *,
        layer: int,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        scale: float,
        temperature: float,
        temperature_length: int,
        softcap: float,
        window: int,
        rope: int,
        interleaved: bool,
        query_norm: Vector | None,
        key_norm: Vector | None,
        value_norm: Vector | None,
        norm_eps: float,
        gated: bool,
        sinks: Vector | None,
    ) -> None: ...
    def delta_net(
        self,
        channels: int,
        gate: int,
        beta: int,
        alpha: int,
        out: int,
        *,
        layer: int,
        num_key_heads: int,
        num_value_heads: int,
        key_dim: int,
        value_dim: int,
        tiled: bool,
        convolution: Matrix,
        decays: Sequence[float],
        biases: Sequence[float],
        norm: Vector,
        eps: float,
    ) -> None: ...
    def select(self, in_: int, out: int) -> None: ...
    def norm_groups(self, slot: int, weight: Vector, group: int, eps: float) -> None: ...
    def regroup(self, parts: Sequence[tuple[int, int, int, int]], num_groups: int, width: int, out: int) -> None: ...
    def gate(self, gate: int, activation: str, in_: int, first: int) -> None: ...
    def scale(self, slot: int, factor: float) -> None: ...
    def add(self, in_: int, out: int, norm: Vector | None = None, eps: float = 0.0) -> None: ...
    def softcap(self, slot: int, cap: float) -> None: ...
    def run(
        self,
        token_ids: Sequence[int],
        slices: Sequence[SliceTuple],
        logit_rows: Sequence[int],
        headless: bool = False,
    ) -> None: ...
    def draw(self, slot: int, draws: Sequence[DrawTuple]) -> list[tuple[list[int], list[LogprobsTuple]]]: ...
    def add_up(self, slot: int, norm: Vector, eps: float, first: int, end: int) -> list[float]: ...
    def read(self, slot: int, rows: int) -> Floats: ...
    def set_profiling(self, on: bool) -> None: ...
    @property
    def profile(self) -> list[tuple[str, float]]: ...
