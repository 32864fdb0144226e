"""Checks the rules for predictions of a lesson in its events.

  feedback   each wrong option has its own explanation
  hints      the first is a question and the second is not; neither contains more than half of the explanation's words
  lengths    the right option is at most five columns longer or shorter than all other options
  bits       after an answer about rounding or equal bits, the same step or the next step has a check that compares numbers
  number     the step of a prediction with a typed number shows this number, within the tolerance
"""

import re

MARGIN = 5      # columns
OVERLAP = 0.5   # fraction of the explanation's words
COMMON = set("a an and are as at be but by each for from has have how in is it its no not of on one or so that the then there they this to "
             "was what where which who will with".split())


def words(text):
    return {word for word in re.findall(r"[a-z0-9]+(?:[./-][a-z0-9]+)*", text.lower()) if word not in COMMON}


def numbers_in(value):
    if isinstance(value, (int, float)):
        yield value
    elif isinstance(value, str):
        yield from (float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", value))
    elif isinstance(value, list):
        for one in value:
            yield from numbers_in(one)


def shown_after(events, prediction):
    """Returns the numbers that the step shows in tables and values after the answer."""
    step = [event for event in events if event.get("step") == prediction["step"]]
    after = step[next(i for i, event in enumerate(step) if event["event"] == "reveal"):]
    return [number for event in after if event["event"] in ("table", "tensor") for number in numbers_in(event["values"])]


def faults(prediction, events):
    right = prediction["answer"] - 1
    if [i for i, mistake in enumerate(prediction["mistakes"]) if not mistake.strip()] != [right]:
        yield "a wrong option has no explanation"
    wrong = [mistake for i, mistake in enumerate(prediction["mistakes"]) if i != right]
    question, pointer = prediction["hints"]
    if not question.endswith("?") or pointer.endswith("?"):
        yield f"the first hint must be a question and the second must not: {prediction['hints']}"
    explained = words(prediction["why"])
    for hint in prediction["hints"]:
        if len(words(hint) & explained) > OVERLAP * len(explained):
            yield f"the hint repeats the explanation: {hint!r}, {prediction['why']!r}"
    if prediction["kind"] == "choice":
        if len(prediction["options"]) < 3:
            yield "there are fewer than three options"
        lengths = [len(option) for option in prediction["options"]]
        others = lengths[:right] + lengths[right + 1:]
        if not min(others) - MARGIN <= lengths[right] <= max(others) + MARGIN:
            yield f"the length gives the answer away: {prediction['options'][right]!r} among {prediction['options']}"
        if len(set(wrong)) != len(wrong):
            yield "two wrong options have the same explanation"
        if re.search(r"\b(rounding|same bits|equal to)\b", prediction["options"][right]):
            compared = [event for event in events if event.get("step") in (prediction["step"], prediction["step"] + 1) and event["event"] == "check" and "exact" in event]
            if not compared:
                yield f"no check compares numbers for {prediction['options'][right]!r}"
    else:
        answer = float(prediction["options"][right])
        near = max(prediction["within"], 5e-5)  # four digits are shown
        if not any(abs(number - answer) <= near for number in shown_after(events, prediction)):
            yield f"{answer} is not among the numbers that its step shows"
