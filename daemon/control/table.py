"""`pumactl status` for people."""

from collections.abc import Sequence

from puma.daemon.control.messages import Status

COLUMNS = ("request", "state", "prompt", "generated", "blocks")


def status_text(status: Status) -> str:
    """A few lines about the daemon, then one per sequence."""
    share = 100 * status.blocks_used / status.blocks_total
    hits = 100 * status.cached_tokens / max(1, status.prompt_tokens)
    tokens = status.tokens_per_block
    lines = [
        f"Puma {status.version} · {status.model} · {status.address} · {status.state}",
        f"process   {status.pid}, up {duration(status.uptime_seconds)}",
        f"blocks    {status.blocks_used:,} of {status.blocks_total:,} in use ({share:.0f} %), {tokens} tokens each",
        f"cached    {status.blocks_cached:,} blocks more, {hits:.0f} % of prompt tokens were found cached",
        f"context   {status.context_length:,} tokens",
        f"tokens    {status.prompt_tokens:,} of prompts, {status.generated_tokens:,} generated",
        f"steps     {status.steps:,}, {status.busy_seconds:,.1f} s computing",
        f"sequences {len(status.sequences)}",
    ]
    if status.sequences:
        rows = [
            (line.request_id, line.state, str(line.prompt_tokens), str(line.generated), str(line.blocks))
            for line in status.sequences
        ]
        lines += ["", *_aligned([COLUMNS, *rows])]
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """The two largest units: "2 h 5 min", "3 s"."""
    whole = int(seconds)
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next((index for index, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2])


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
