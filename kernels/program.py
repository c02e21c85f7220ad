"""An architecture as data: the operations that a step walks, and the tables they refer to.

A program is int64 [operations, OPERATION_FIELDS]. Its operations, with the fields they use:

    EMBED       MATRIX, OUT                    rows of the embedding matrix, for the step's tokens
    NORM        IN, OUT, VECTOR, PARAMETER, OUTLIER   RMS norm: float32 weights at VECTOR, epsilon's bits in PARAMETER
    MULTIPLY    IN, OUT, MATRIX                OUT = IN x MATRIX
    ADD         IN, OUT, MATRIX                OUT += IN x MATRIX, the residual connection
    GATED       IN, OUT, MATRIX, SECOND        OUT = silu(IN x MATRIX) * (IN x SECOND)
    ROTATE      IN, LAYER                      queries and keys rotated in place; keys and values into the cache
    ATTEND      IN, OUT, LAYER
    QUANTISE    IN, OUTLIER                    its float32 rows as integers too; NORM has done so for its own
    SELECT      IN, OUT                        the rows whose logits are wanted; the rest works on these alone
    SAMPLE      IN                             tokens from logits

OUTLIER holds a float32's bits: see quantise in activations.py.

IN and OUT number rows of the buffer table, int64 [buffers, BUFFER_FIELDS]: float32 rows at FLOATS, STRIDE bytes apart,
padded with zeros to PADDED values; the same rows quantised at QUANTISED (see activations.py), or 0 if no product takes
them so; SIZE is the number of values that count.
"""

EMBED, NORM, MULTIPLY, ADD, GATED, ROTATE, ATTEND, QUANTISE, SELECT, SAMPLE = range(10)

CODE, IN, OUT, MATRIX, SECOND, VECTOR, PARAMETER, LAYER, OUTLIER = range(9)
OPERATION_FIELDS = 9

FLOATS, STRIDE, QUANTISED, QUANTISED_STRIDE, SIZE, PADDED = range(6)
BUFFER_FIELDS = 6

(
    PROGRAM,
    OPERATIONS,
    MATRICES,
    MATRIX_TOTAL,
    BUFFERS,
    BUFFER_TOTAL,
    SHAPE,
    STEP,
    KEYS,
    VALUES,
    LAYER_BYTES,
    COSINES,
    SINES,
    PARTIALS,
    SCRATCH,
    SCRATCH_STRIDE,
    WEIGHTS,
    WEIGHTS_STRIDE,
    SHARED,
) = range(19)
"""Fields of the machine table, int64: where everything that outlives a step is.

PROGRAM, MATRICES, BUFFERS, SHAPE and STEP are addresses of tables, with their number of rows after them; LAYER_BYTES of
keys, and as many of values, belong to one layer; COSINES and SINES are float32 [positions, head_dim / 2]; SCRATCH, and
WEIGHTS for sampling, have one part per thread, so many bytes apart; SHARED are the team's words (see team.py).
"""
MACHINE_FIELDS = 19
