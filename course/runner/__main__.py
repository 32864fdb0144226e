"""Starts the runner: python3 course/runner ARGUMENTS."""
import main

if __name__ == "__main__":
    main.start()
