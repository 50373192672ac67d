"""What an answer may be: grammars of JSON schemas, patterns and calls of tools."""
