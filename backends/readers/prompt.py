"""The prompt of a reading set, in pieces that are tokenised apart, so that sets share exact token prefixes."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Prompt:
    """Template of a prompt: ``head``, then one ``passage`` for each that is shown, then ``tail``.

    Attributes:
        head: Opens every prompt; may hold ``{question}``.
        passage: One shown passage; holds ``{passage}``.
        tail: Closes every prompt; may hold ``{question}``. The answer follows it.
        stops: A generated token that holds one of these ends the answer. The default opens the answer with a back
            quote and stops at the next: a small reader asked without it talks about the question instead
            (docs/decisions.md has the trial's figures).
    """

    head: str = "Documentation:\n"
    passage: str = "- {passage}\n"
    tail: str = "Question: {question}\nAnswer: it is `"
    stops: tuple[str, ...] = ("\n", "`")

    def to_dict(self) -> dict[str, Any]:
        """Returns the template as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Prompt":
        """Makes a template from plain data, as a table's index holds it."""
        return cls(**{**fields, "stops": tuple(fields["stops"])})
