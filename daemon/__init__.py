"""The process: HTTP, control socket, boot and shutdown, commands."""
