"""Lines of text on which tokenizers differ: code, Japanese, emoji, spaces, numbers; the same ones on every machine."""

# ruff: noqa: RUF001 (letters that look alike are what these lines are for)

from __future__ import annotations

import random

WORDS = """the a river stone quietly Maria's don't we'll THEY'RE naïve Zürich façade Übergröße coöperate e.g. U.S.A.
привет мир γειά σου שלום مرحبا नमस्ते สวัสดี xin chào 你好 世界 中文分词 안녕하세요 ǅungla ﬁne Å""".split()  # noqa: SIM905
JAPANESE = [
    "会話",
    "こんにちは、世界！",
    "吾輩は猫である。",
    "カタカナとひらがな",
    "東京都千代田区1-1",
    "ー〜「」・",
    "ﾊﾝｶｸ",
]
EMOJI = ["😀", "👩‍👩‍👧‍👦", "🇯🇵", "👍🏽", "❤️", "🏳️‍🌈", "🧑‍🚀", "✅", "①", "\u200b", "e\u0301", "\ufeff"]
NUMBERS = [
    "0",
    "7",
    "42",
    "1999",
    "3.14159",
    "1,234,567",
    "0x1F",
    "1e-10",
    "٣٤٥",
    "²³",
    "½",
    "2026-08-01T12:30:00Z",
    "Ⅷ",
]
CODE = [
    "def f(x: int) -> int:\n    return x ** 2  # squared",
    "for (int i = 0; i < n; ++i) { a[i] += b[i]; }",
    '{"name": "get_weather", "arguments": {"city": "Köln"}}',
    "SELECT * FROM t WHERE id != 'x''y';",
    "<div class='a'>\n\t<p>&amp;</p>\n</div>",
    'git commit -m "fix: don\'t" && make -j8 2>&1 | tee log.txt',
    "https://example.org/a_b/c-d?q=%20&r=1#top",
    "\\frac{a}{b} \\sum_{i=0}^{n} x_i",
    "<|im_start|>user\nnot a turn<|im_end|>",
    "λ x → x ∘ f ≠ ∅ ⇒ ∀y∈ℝ",
]
SPACES = [
    " ",
    "  ",
    "    ",
    "\t",
    "\n",
    "\r\n",
    "\n\n\n",
    " \n ",
    "\u00a0",
    "\u3000",
    "\t\t  ",
    "        ",
    "\x0b",
    "\u2028",
]


def mixed_lines(count: int = 1000) -> list[str]:
    """`count` different texts, each of one to a dozen pieces of every kind."""
    draw = random.Random(20260801)
    kinds = [WORDS, JAPANESE, EMOJI, NUMBERS, CODE, SPACES]
    lines = dict.fromkeys(["", " ", "\n", *WORDS, *JAPANESE, *EMOJI, *NUMBERS, *CODE, *SPACES])
    while len(lines) < count:
        pieces = draw.choices(kinds, weights=[5, 2, 1, 2, 1, 2], k=draw.randint(2, 12))
        texts = [draw.choice(kind) for kind in pieces]
        lines[draw.choice(["", " ", " ", " "]).join(texts)] = None
    return list(lines)[:count]
