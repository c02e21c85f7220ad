"""Configuration: what the engine and the server may be told, and what it means in memory."""
