"""OpenAI's older completions: text that a model goes on with."""
