"""What to type for each command: its help ends with these lines, and so does the page of the command line."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("uqprism demo", "uqprism demo deliveries"),
    "score": (
        "uqprism score predictions.csv -o scored.csv",
        "uqprism score 'runs/*.parquet' -o scored --measures 'crps.*' --on-bad null",
        "uqprism score landing -o scored --resume --max-bad 1% --summary night.json",
    ),
    "inspect": ("uqprism inspect predictions.parquet",),
    "flag": (
        "uqprism flag predictions.parquet -o flagged.parquet --share 0.1",
        "uqprism flag predictions.csv -o review.csv --budget 100 --only",
    ),
    "recalibrate": ("uqprism recalibrate calibration.csv new.csv --target y -o recalibrated.csv --save factors.json",),
    "intervals": (
        "uqprism intervals calibration.csv new.csv --target y -o intervals.csv",
        "uqprism intervals calibration.csv new.csv --target y -o intervals.csv --coverage 0.8 --group region",
    ),
    "export": ("uqprism export model.safetensors -o model.onnx",),
    "watch": (
        "uqprism watch reference.parquet new/ --state watch",
        "uqprism watch reference.parquet new/ --state watch --target y -o watch.html",
    ),
    "report": (
        "uqprism report predictions.csv --target y --unit minutes",
        "uqprism report known.parquet --target y --ood unfamiliar.parquet -o page.html",
    ),
    "app": ("uqprism app predictions.csv", "uqprism app --port 8600 --no-browser"),
    "recommend": ("uqprism recommend ood_detection",),
    "select": (
        "uqprism select predictions.csv --target y",
        "uqprism select known.parquet --ood unfamiliar.parquet --metric aupr_out",
    ),
    "selective": (
        "uqprism selective predictions.csv --target y --plot retention.png",
        "uqprism selective scored.parquet --error-column e --format json",
    ),
    "ood": (
        "uqprism ood known.parquet unfamiliar.parquet",
        "uqprism ood known.parquet left.parquet right.parquet --metric fpr95",
    ),
    "active": (
        "uqprism active table.csv --target y --plot learning.png",
        "uqprism active table.csv --target y -a random,log.excess.members.members --selection top --folder rounds",
    ),
    "audit": (
        "uqprism audit train.parquet --target y",
        "uqprism audit train.parquet --target y --model forest --save audit.npz --plot audit.png",
    ),
    "correlation": ("uqprism correlation scored.parquet --measures 'crps.*' --plot tau.png",),
    "catalogue": ("uqprism catalogue", "uqprism catalogue --rule crps --rule quantile"),
    "reproduce": ("uqprism reproduce shifts", "uqprism reproduce all --preset paper --dry-run"),
    "cite": ("uqprism cite > references.bib",),
}


def listed(command: str) -> str:
    """The examples of a command as a paragraph of its help; nothing for a command without."""
    lines = EXAMPLES.get(command, ())
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)]) if lines else ""  # \b: Click keeps the line breaks
