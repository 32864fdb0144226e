"""What every prediction of a lesson keeps, seen from its events.

  feedback   each wrong option has a sentence of its own
  hints      the first is a question, the second is none; neither holds more than half of the explanation's words
  lengths    the right option is neither longer nor shorter than every other one by more than five columns
  bits       an answer that speaks of rounding or of the same bits is followed, in its step or the next, by a check that compares numbers
  number     a number that is typed stands, to its tolerance, among those that its step then shows
"""

import re

MARGIN = 5      # columns
OVERLAP = 0.5   # of the explanation's words
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
    """The numbers of the step's tables and values, after its answer."""
    step = [event for event in events if event.get("step") == prediction["step"]]
    after = step[next(i for i, event in enumerate(step) if event["event"] == "reveal"):]
    return [number for event in after if event["event"] in ("table", "tensor") for number in numbers_in(event["values"])]


def faults(prediction, events):
    right = prediction["answer"] - 1
    if [i for i, mistake in enumerate(prediction["mistakes"]) if not mistake.strip()] != [right]:
        yield "a wrong option without its sentence"
    wrong = [mistake for i, mistake in enumerate(prediction["mistakes"]) if i != right]
    question, pointer = prediction["hints"]
    if not question.endswith("?") or pointer.endswith("?"):
        yield f"the first hint is a question, the second a pointer: {prediction['hints']}"
    explained = words(prediction["why"])
    for hint in prediction["hints"]:
        if len(words(hint) & explained) > OVERLAP * len(explained):
            yield f"the hint is the explanation: {hint!r}, {prediction['why']!r}"
    if prediction["kind"] == "choice":
        if len(prediction["options"]) < 3:
            yield "two options are a coin"
        lengths = [len(option) for option in prediction["options"]]
        others = lengths[:right] + lengths[right + 1:]
        if not min(others) - MARGIN <= lengths[right] <= max(others) + MARGIN:
            yield f"told by its length: {prediction['options'][right]!r} among {prediction['options']}"
        if len(set(wrong)) != len(wrong):
            yield "two wrong options have one sentence"
        if re.search(r"\b(rounding|same bits|equal to)\b", prediction["options"][right]):
            compared = [event for event in events if event.get("step") in (prediction["step"], prediction["step"] + 1) and event["event"] == "check" and "exact" in event]
            if not compared:
                yield f"nothing compares what {prediction['options'][right]!r} says"
    else:
        answer = float(prediction["options"][right])
        near = max(prediction["within"], 5e-5)  # four digits are shown
        if not any(abs(number - answer) <= near for number in shown_after(events, prediction)):
            yield f"{answer} is not among what its step shows"
