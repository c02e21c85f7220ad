"""One file per architecture: from a file's metadata to a program the kernels walk."""
