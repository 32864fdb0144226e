"""The expected outcome of each mistake, by the kind of the parameter, written by hand.

A rule is (the mistake, the wrong argument, the outcome). {v} is replaced by the right argument of the row in calls.py.

    error      the call throws a tally::Error that begins with [the call]
    compiler   the call does not compile
    program    as compiler, but `requires` cannot test it: an error inside a function, or a warning of -Wfloat-conversion
    same       the call is not a mistake, and gives the result of the right call
    same type  compiler, if other arguments are tensors of float; same, if it is the only one
    skip       no test, for the reason that EXCEPT gives
    nan        the call is not a mistake, and NaN appears in the result
    settled    an edge case: a result, or a tally::Error that begins with [the call]; never a crash or another exception
"""

TENSOR = [
    ("a temporary", "Tensor({v})", "same"),
    ("an empty tensor", "Tensor()", "error"),
    ("a moved-from tensor", "moved_from({v})", "error"),
    ("a tensor of double", "in_double({v})", "same type"),
    ("zero rows", "no_rows({v})", "settled"),
    ("NaN", "with_nan({v})", "nan"),
]
WHOLE = [("a float for an integer", "2.5", "program")]

RULES = {
    "tensor": TENSOR,
    # NaN in such an operand may not appear in the result, because other operands also determine the result.
    "operand": [rule for rule in TENSOR if rule[0] != "NaN"],
    "tensors": [("no tensors", "std::vector<Tensor>{{}}", "error"), ("an empty tensor among them", "std::vector<Tensor>{{Tensor()}}", "error"),
                ("a tensor alone", "w.x", "compiler")],
    "parameters": [("no parameters", "std::vector<Tensor>{{}}", "error"), ("an empty one", "std::vector<Tensor>{{Tensor()}}", "error"),
                   ("one twice", "std::vector<Tensor>{{w.x, w.x}}", "error"), ("a constant", "std::vector<Tensor>{{constant(w.x)}}", "error")],
    "array": [("a temporary", "Array<float>({v})", "same"), ("an empty array", "Array<float>()", "error"),
              ("an array of double", "in_double({v})", "same type")],
    "labels": [("labels of float", "Array<float>({{2}}, {{0.f, 1.f}})", "compiler"), ("an empty array", "Array<std::int32_t>()", "error"),
               ("a label of no class", "Array<std::int32_t>({{2}}, {{0, 99}})", "error")],
    "axis": WHOLE + [("from the end", "-1", "same"), ("beyond the last", "9", "error"), ("beyond the first from the end", "-9", "error")],
    "along": [("from the end", "-1", "same"), ("beyond the last", "9", "error"), ("beyond the first from the end", "-9", "error"),
              ("a bare bool", "true", "compiler"), ("a float for an axis", "0.5", "compiler"), ("an axis twice", "{{0, 0}}", "error")],
    "count": WHOLE + [("zero", "0", "error"), ("negative", "-1", "error")],
    "size": WHOLE + [("negative", "-1", "error")],
    "position": WHOLE + [("beyond the end", "99", "error"), ("beyond the first from the end", "-99", "error")],
    "probability": [("percent for a fraction", "50", "error"), ("negative", "-0.5", "error"), ("NaN", "NAN", "error"),
                    ("an integer for a float", "0", "settled")],
    "rate": [("negative", "-0.1", "error"), ("NaN", "NAN", "error"), ("infinite", "INFINITY", "error"), ("an integer for a float", "1", "settled")],
    "limit": [("negative", "-1.", "error"), ("NaN", "NAN", "error"), ("an integer for a float", "1", "settled")],
    "eps": [("negative", "-1e-5", "error"), ("NaN", "NAN", "error")],
    "options": [("a bare bool", "true", "compiler"), ("a bare number", "0.5", "compiler")],
    "shape": [("a negative extent", "Shape({{-2, 3}})", "error"), ("a float for a shape", "2.5", "compiler")],
    "path": [("no path", "\"\"", "error"), ("a folder that is missing", "\"missing/file\"", "error")],
    "name": [("a number for a name", "2.5", "compiler")],
    "number": [("an integer for a float", "1", "settled")],
    "bound": [("NaN", "NAN", "error"), ("infinite", "INFINITY", "error")],
    "parts": [("no parts", "std::vector<Items>{{}}", "error"), ("a part alone", "w.items", "compiler")],
    "fixed": [],  # arguments for which no such mistake exists
}

# Tests also exchange the arguments of neighbouring parameters of different groups.
GROUPS = {"tensor": "tensor", "operand": "tensor", "labels": "labels", "axis": "number", "count": "number", "size": "number",
          "position": "number", "probability": "number", "rate": "number", "limit": "number", "path": "path", "shape": "shape"}
