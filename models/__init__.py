"""What a model is: files, text, architectures, weights. Synchronous; no trio."""
