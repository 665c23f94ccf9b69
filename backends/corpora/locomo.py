"""LoCoMo: long dated conversations, and questions that name the turns that tell.

Source: Maharana et al. 2024, arXiv:2402.17753.
"""

import re
from datetime import datetime
from pathlib import Path
from typing import Any

from .datasets import DatasetError
from .reading import find, read_json, take
from .records import Conversation, RecallQuestion, Turn

FILE = "locomo10.json"
KINDS = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
REFERENCE = re.compile(r"D:?(\d+):0*(\d+)")
TIME = "%I:%M %p on %d %B, %Y"


def load_locomo(directory: str | Path) -> tuple[Conversation, ...]:
    """Loads LoCoMo.

    A few references to evidence are slips of typing: several turns in one text, a colon too many, a leading zero. They
    are read as what they can only mean; what still leads to no turn is listed as ``unresolved``.

    Args:
        directory: Folder of the data set, or the one that holds it.

    Raises:
        DatasetError: The file is missing or not as published.
    """
    path = find(directory, "locomo", FILE)
    content = read_json(path)
    if not isinstance(content, list):
        raise DatasetError(f"{path}: expected a list of conversations, got {type(content).__name__}")
    return tuple(_conversation(entry, f"{path}: conversation {number}") for number, entry in enumerate(content))


def _conversation(entry: Any, where: str) -> Conversation:
    sessions = take(entry, "conversation", dict, where)
    turns: list[Turn] = []
    numbers = sorted(int(key.removeprefix("session_")) for key in sessions if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        time = _time(take(sessions, f"session_{number}_date_time", str, where), where)
        turns += [_turn(turn, time, where) for turn in take(sessions, f"session_{number}", list, where)]
    known = {turn.id for turn in turns}
    if len(known) < len(turns):
        raise DatasetError(f"{where}: expected turns with ids of their own, got {len(turns) - len(known)} twice")
    questions, unresolved = [], []
    for row in take(entry, "qa", list, where):
        evidence, lost = _evidence(take(row, "evidence", list, where), known)
        questions.append(_question(row, evidence, where))
        unresolved += lost
    return Conversation(take(entry, "sample_id", str, where), tuple(turns), tuple(questions), tuple(unresolved))


def _turn(turn: Any, time: str, where: str) -> Turn:
    text = take(turn, "text", str, where).strip()
    caption = take(turn, "blip_caption", str, where, "")
    if caption:
        text = f"{text} [{caption}]".strip()
    return Turn(take(turn, "dia_id", str, where), take(turn, "speaker", str, where), text, time)


def _question(row: Any, evidence: tuple[str, ...], where: str) -> RecallQuestion:
    category = take(row, "category", int, where)
    if category not in KINDS:
        raise DatasetError(f"{where}: expected a category of 1 to {len(KINDS)}, got {category}")
    answer = row.get("answer")
    if category == 5:  # what the conversation does not tell
        trap = str(row.get("adversarial_answer", ""))
        return RecallQuestion(take(row, "question", str, where), "", evidence, KINDS[category], trap)
    if answer is None:
        raise DatasetError(f"{where}: expected an answer to {take(row, 'question', str, where)[:40]!r}, got none")
    return RecallQuestion(take(row, "question", str, where), str(answer), evidence, KINDS[category])


def _evidence(references: list[Any], known: set[str]) -> tuple[tuple[str, ...], list[str]]:
    found: list[str] = []
    lost = []
    for reference in map(str, references):
        turns = [f"D{session}:{turn}" for session, turn in REFERENCE.findall(reference)]
        found += [turn for turn in turns if turn in known]
        if not turns or any(turn not in known for turn in turns):
            lost.append(reference)
    return tuple(dict.fromkeys(found)), lost


def _time(text: str, where: str) -> str:
    try:
        return datetime.strptime(text.strip(), TIME).isoformat(timespec="minutes")
    except ValueError:
        raise DatasetError(f"{where}: expected a time like '1:56 pm on 8 May, 2023', got {text!r}") from None
