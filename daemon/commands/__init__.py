"""One file per subcommand of puma."""
