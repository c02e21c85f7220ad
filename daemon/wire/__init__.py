"""The OpenAI shapes on the wire and their translation to the engine's messages."""
