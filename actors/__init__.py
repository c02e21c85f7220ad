"""Intake, scheduler, KV cache and executor: thin async loops around plain cores."""
