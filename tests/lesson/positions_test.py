"""Over all lessons nothing but the subject tells the right option: not its place, not its length. Usage: positions_test.py LESSON...

For every seed the kit's own test shows that each of n options stands in each place once in n seeds in a row (so 25 times of
100, of four); here is what a class sees that changes no seed. Where a new prediction tips that, shuffle() may number its streams in another way.
"""

import json
import subprocess
import sys
from collections import Counter

from terminal_driver import clean_environment

MOST = 0.35  # of the predictions may have the right one in one place, or as the longest, or as the shortest


def asked_by(lessons):
    for lesson in lessons:
        device = ["--device=pretend"] if "_22_" in lesson else []
        done = subprocess.run([lesson, "--json", *device], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env=clean_environment(TALLY_IMAGES="1312"))
        assert done.returncode in (0, 77), done.stderr  # 77: skipped, where there is no device
        yield from (event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "prediction")


def main(lessons):
    asked = list(asked_by(lessons))
    choices = [event for event in asked if event["kind"] == "choice"]
    of_four = [event for event in choices if len(event["options"]) == 4]
    counted = {f"in place {place}": (sum(event["answer"] == place for event in of_four), len(of_four)) for place in range(1, 5)}
    for name, extreme in (("the longest", max), ("the shortest", min)):
        alone = 0
        for event in choices:
            lengths = [len(option) for option in event["options"]]
            alone += extreme(lengths) == lengths[event["answer"] - 1] and lengths.count(extreme(lengths)) == 1
        counted[name] = (alone, len(choices))
    print(f"{len(asked)} predictions: {len(choices)} choices, {len(asked) - len(choices)} numbers to type")
    print("typed, by lesson:", dict(Counter(event["lesson"] for event in asked if event["kind"] == "number")))
    for name, (right, of) in counted.items():
        print(f"the right one is {name}: {right} of {of}, {100 * right / of:.0f} %")
    too_often = [name for name, (right, of) in counted.items() if right > MOST * of]
    print("\n".join(f"[FAIL] the right one is {name} in more than {MOST:.0%}" for name in too_often) or "[ok]")
    return 1 if too_often else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
