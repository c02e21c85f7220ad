"""The tables a step reads: where its tokens, runs and block tables are, and where its results go.

`step` is int64 [STEP_FIELDS]; names ending in S hold addresses of arrays, one entry per row, run or sampled row:

    ROWS, RUN_TOTAL, SAMPLE_TOTAL       how many
    TOKENS          int32 [rows]        -1: the token its slot sampled last
    POSITIONS       int32 [rows]
    ROW_SLOTS       int32 [rows]
    RUNS            int32 [runs, RUN_FIELDS]
    SAMPLE_ROWS     int32 [samples]     the row whose logits are wanted
    SAMPLE_SLOTS    int32 [samples]
    TABLES          int32 [slots, ...]  block ids; TABLE_STRIDE bytes per slot
    LAST_TOKENS     int32 [slots]
    CHOICES         CHOICE_FIELDS per sample: how to choose (see sample.py)
    CHOSEN          what was chosen (see sample.py)
"""

(
    ROWS,
    RUN_TOTAL,
    SAMPLE_TOTAL,
    TOKENS,
    POSITIONS,
    ROW_SLOTS,
    RUNS,
    SAMPLE_ROWS,
    SAMPLE_SLOTS,
    TABLES,
    TABLE_STRIDE,
    LAST_TOKENS,
    CHOICES,
    CHOSEN,
) = range(14)
STEP_FIELDS = 14

RUN_ROW, RUN_COUNT, RUN_POSITION, RUN_SLOT = range(4)
"""First row in the batch, rows, position of the first row, slot."""
RUN_FIELDS = 4
