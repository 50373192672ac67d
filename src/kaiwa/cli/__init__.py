"""The `kaiwa` command: one file per subcommand."""
