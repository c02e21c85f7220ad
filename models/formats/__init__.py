"""Checked readers of model files."""
