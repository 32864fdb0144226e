"""Compiles an answer, runs its check and explains the result."""
import os
import re
import signal
from typing import NamedTuple, Sequence

import child
from common import BUILD, Problem, make_folder
from exercises import text_of

FOLDER = BUILD / "exercises"
DISK = "error writing to|cannot open output file|final link failed|No space left|File size limit"
NO_MEMORY = "out of memory"
# Explains common errors of g++ and clang++. The first pattern that an error contains explains the error.
ERRORS = (
    (NO_MEMORY, "The compiler asked for more memory than it is given (4 GiB). Does something that it computes or includes grow "
     "without end?"),
    ("signal terminated", "The compiler was ended, perhaps because memory was short. Try once more."),
    ("';' before|expected ';'", "A semicolon is missing, here or at the end of the line before."),
    ("expected '}' at end", "A closing brace } is missing: the file ends inside of a block."),
    ("expected '}'", "A closing brace } is missing, or there is something extra before it."),
    (r"expected '\)'", "A closing parenthesis ) is missing, here or a little before."),
    ("no return statement|non-void function does not return|control reaches end", "The function can end without returning anything."),
    ("ambiguating new declaration|differ only in their return type",
     "The function's first line was changed: what it returns is part of the exercise."),
    ("redefinition", "The same thing is defined twice."),
    ("was not declared|use of undeclared", "There is nothing of this name here: a typing error, or a variable of another block?"),
    ("is not a member of 'std'|in namespace 'std'", "The standard library has nothing of this name, or its header is not included."),
    ("has no member|no member named", "The object has no member of this name."),
    ("non-class type|is not a structure or union", "A number or a pointer has no members."),
    ("no match for|invalid operands", "These two do not fit together: what is the type of each of them?"),
    ("no matching function", "No function of this name takes such arguments: how many are there, and of which types?"),
    ("cannot convert|could not convert|no viable conversion", "The type of this value is not the type that is required here."),
    ("ambiguous", "Several functions of this name would do: of which types are the arguments?"),
    ("discards qualifiers|read-only|const-qualified|not marked const|drops 'const'|returns a const value",
     "Something that is declared const is changed here."),
    ("No such file", "This file was not found. All headers that an exercise needs are included already."))
SENTENCES = {
    "passed": "",
    "wrong": "Not right yet, and not a mistake that this exercise knows. These are the results:",
    "todo": "Not done yet: the check reached todo(), where code is missing.",
    "too-long": "It was stopped after 5 seconds. Is there a loop that never ends, or something found again and again?",
    "waits": "It was stopped after half a minute in which it mostly waited. Does it read from the keyboard, sleep, or print without end?",
    "crashed": "It crashed: it read or wrote memory that it does not have. An index out of range? A function that calls itself without "
               "end?",
    "aborted": "It ended itself (abort). An index out of range, or an error that was not caught?",
    "divided-by-zero": "It divided a whole number by zero.",
    "too-much-memory": "It asked for more memory than an exercise has (2 GiB). Does something grow without end?"}


class Verdict(NamedTuple):
    judged: str                # passed, wrong, todo, does-not-compile, or broken: a crash, a timeout, ...
    mistake: str = ""          # the name of the recognised mistake
    sentence: str = ""         # one or two sentences about the mistake
    where: str = ""            # the test case in which the mistake appeared
    shown: Sequence = ()       # lines of output for this test case
    parts: str = ""            # "Right: f and g (2 of 5). Still wrong: h, i and j."
    trained: Sequence = ()     # results of a training with the learner's code, after a pass
    cases: str = ""            # "5 of 8 cases are right (seed 0)"


def meaning(error):
    return next((sentence for pattern, sentence in ERRORS if re.search(pattern, error)), "It does not compile.")


def members(kind, given):
    """The members of a struct in a given.hpp, such as "sum", "lost" or "norm()"."""
    found = re.search(rf"\b(?:struct|class) {kind}\b[^;{{]*{{(.*)", re.sub("//.*", "", given), re.S)
    if not found:
        return []
    body, inner = found[1], 1
    while inner:
        body, inner = re.subn(r"{[^{}]*}", ";", body)
    names = []
    for declaration in body.partition("}")[0].split(";"):
        if re.search(r"\bstatic\b", declaration):
            continue
        for _ in range(3):  # nested template arguments contain names that are not members
            declaration = re.sub("<[^<>]*>", "", declaration)
        declaration = re.sub("=[^,]*", "", declaration)
        if function := re.search(r"(\w+) *\(", declaration):
            names.append(function[1] + "()")
        else:
            names += [name[1] for part in declaration.split(",") if (name := re.search(r"(\w+)(\[[^\]]*\])?\s*$", part))]
    return names


def missing_member(error, given):
    """Explains the error "has no member": lists the members of a type from given.hpp, or those of a tensor."""
    gcc, clang = re.search(r"'([^']+)'.* has no member named '(\w+)'", error), re.search(r"no member named '(\w+)' in '([^']+)'", error)
    if not gcc and not clang:
        return ""
    kind, member = gcc.groups() if gcc else clang.groups()[::-1]
    aliased = re.search("aka '([^']+)'", error)  # g++ says: 'const Value' {aka 'const class std::shared_ptr<Node>'}
    extra = r"\b(const|using|class|struct) | = .*|\w+::(?=\w+(<|$))|\w+::(?=\w+::)"
    kind, aliased = re.sub(extra, "", kind), re.sub(extra, "", aliased[1] if aliased else kind)
    if re.match("Tensor|Tensor64|Scalar|Var<", kind):
        return (f"A tensor has no member {member}. Common members are x.shape()[0] (the number of rows), x.grad() and x.item(). "
                "docs/tensors.md lists the others.")
    if re.match("(shared|unique)_ptr<", aliased):
        return f"A {kind} is a pointer. Write -> instead of the dot."
    names = members(aliased, given) if re.fullmatch(r"\w+", aliased) else []
    if not names:
        return ""
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{aliased} has no member {member}. The members of {aliased} are {listed}."


def first_error(said, file, given):
    """Explains the compiler's first error with a sentence, and with the lines of the file that caused the error."""
    said = re.sub("[‘’]", "'", said)
    error = re.search("error: (.*)", said)
    if not error:
        words = said.strip("\n").partition("\n")[0]
        return Verdict("does-not-compile", sentence=meaning(words) if NO_MEMORY in words else f"The compiler failed: {words}" if words else
                       "The compiler ended without a message. Try once more.")
    position = rf"^{re.escape(str(file))}:(\d+)"  # the last one before the error, or else the first one
    numbers = re.findall(position, said[:error.end()], re.M)[-1:] or re.findall(position, said, re.M)[:1]
    shown = [error[1]]
    for number in numbers:
        line = (text_of(file).split("\n")[int(number) - 1:] or [""])[0].rstrip(" \t\r")  # empty if the file has changed
        shown.append(f"{number:>5} | {line}")
        code = re.search(r"^ +\d+ \|(.*)\n +\| (.*)", said[error.end():], re.M)
        if code and line and line in code[1]:
            shown.append(f"      | {code[2]}")
    return Verdict("does-not-compile", sentence=missing_member(error[1], given) or meaning(error[1]),
                   where=f"line {numbers[0]}" if numbers else "", shown=shown)


def missing_function(exercise, function):
    declared = re.search(rf"^([^\n;/]*\b{function}\([^;]*?\));", exercise.given, re.M)
    return (f"The check looks for {function}, and the file has no function of this name with the required parameters. Keep its first "
            f"line as it was, outside of any namespace, below the #include: {declared[1] if declared else function}")


def why_not_loaded(exercise, said):
    symbol = re.search(r"undefined symbol: (\w+)", said)
    if not symbol:
        return f"It cannot be loaded: {said}"
    name = child.run(["c++filt", symbol[1]], "stdout").text.strip()
    function = next((each for each in exercise.functions if name.startswith(each + "(")), None)
    return missing_function(exercise, function) if function else f"{name} is declared and used, but not defined."


def explained(exercise, result):
    """The verdict in a report of exercise-checks."""
    lines = [line.partition(" ")[::2] for line in result.text.split("\n")]
    said, trained = ([text for word, text in lines if word == name] for name in ("say", "trained"))
    report, sentence = dict(lines), ""
    verdict, cases = report.get("verdict"), ""
    if verdict in ("passed", "wrong"):
        right, count, seed = report["cases"].split(" ")
        cases = (f"{count} cases, seed {seed}" if right == count else
                 f"{right} of {count} cases {'is' if right == '1' else 'are'} right (seed {seed})")
    elif verdict == "threw":
        sentence = f"It ended with an error that was not caught: {(said or ['the thrown object is not a std::exception'])[0]}"
    elif verdict == "missing":
        sentence = missing_function(exercise, report["function"])
    elif verdict == "not-loaded":
        sentence = why_not_loaded(exercise, (said or ["an error"])[0])
    elif result.signal:
        sentence = f"It was ended by signal {result.signal} ({signal.strsignal(result.signal)})."
    unknown = SENTENCES.get(verdict, "It ended the program itself (exit?) before the check was complete.")
    return Verdict(verdict if verdict in ("passed", "wrong", "todo") else "broken", report.get("mistake", ""),
                   report.get("sentence") or sentence or unknown, report.get("where", ""), said if cases else [],
                   report.get("parts", ""), trained, cases)


def judge(exercise, file, scratch, seed):
    """Compiles a file to a library in the folder `scratch`, checks the library and deletes the library."""
    settings = FOLDER / "settings"  # the compiler's command, a word in each line
    if not settings.exists():
        raise Problem(f"no exercises in {FOLDER}; build them first")
    make_folder(scratch)
    library = f"{scratch}/{exercise.name}.{os.getpid()}.so"
    # LC_ALL=C selects the English messages in ERRORS. The limits are 4 GiB and two minutes.
    command = ["/bin/sh", "-c", '{ ulimit -v 4194304; ulimit -t 120; } 2>/dev/null; LC_ALL=C exec "$@"', "sh",
               *filter(None, text_of(settings).split("\n")), f"-I{exercise.folder}", "-shared", "-o", library, str(file)]
    try:
        compiled = child.run(command, "stderr")
        if not compiled.code and not compiled.signal:
            return explained(exercise, child.run([str(FOLDER / "exercise-checks"), exercise.slug, library, str(seed)], "3"))
        if full := re.search(DISK, compiled.text):  # the learner did not cause this error
            raise Problem(f"cannot write {library}: {full[0]}")
        return first_error(compiled.text, file, exercise.given)
    finally:
        if os.path.exists(library):
            os.remove(library)
