"""One file per family of weight formats: its packed layout, its product with activations, its single row.

Packed weights come in tiles of sixteen outputs, so that one vector lane belongs to one output. A tile holds, for each
block of inputs, the sixteen scales and then the weights, four consecutive inputs of an output per 32-bit lane.
"""
