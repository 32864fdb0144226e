"""Checks an exercise with dev-check and the programs of a build. Usage: exercise_test.py BUILD NAME"""

import subprocess
import sys

from terminal_driver import RUNNER, clean_environment, given_build

root, environment = given_build(sys.argv[1])
with root:
    sys.exit(subprocess.run([*RUNNER, "dev-check", sys.argv[2]], env=clean_environment(**environment), check=False).returncode)
