"""Questions to try a model with: what `!example NAME` asks."""

from __future__ import annotations

EXAMPLES = {
    "llama": "How are llamas, alpacas and vicunas related, and how do I tell them apart?",
    "code": "Write a Python function that returns the n-th Fibonacci number without recursion, with a test for it.",
    "helicopter": "How many helicopters could a person eat in one sitting?",
    "numbers": "Count to ten, but leave out every number that has an e in its English name.",
    "birds": "Why can some birds sleep while they fly?",
    "socks": "I have ten red and ten blue socks in a dark drawer. How many must I take out to be sure of a pair?",
    "story": "Begin a story in the rain, in three sentences.",
    "japanese": "自己紹介をしてください。",
}
