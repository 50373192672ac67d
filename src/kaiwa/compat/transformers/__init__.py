"""The words of Hugging Face's transformers: pipeline, AutoModelForCausalLM, AutoTokenizer, streamers, quantization.

Shapes and defaults are transformers' own. Where it goes wrong without a word, this raises an error that says so.
"""
