"""The control socket: its messages, its server, and pumactl."""
