"""Prints the tensors of a safetensors file, one per line: name, type, shape, bytes. Follows the format's public description,
independent of tally. With --library the safetensors library reads the file.
"""
import json
import struct
import sys

WIDTH = {"F32": 4, "F64": 8, "I32": 4, "I64": 8}


def no_duplicates(pairs):
    assert len(dict(pairs)) == len(pairs), "a key twice"
    return dict(pairs)


def read_by_description(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    assert data[8:9] == b"{" and length % 8 == 0 and 8 + length <= len(data), "the header"
    header = json.loads(data[8:8 + length].decode("utf-8"), object_pairs_hook=no_duplicates)
    metadata = header.pop("__metadata__", {})
    assert all(isinstance(word, str) for pair in metadata.items() for word in pair), "the metadata"
    numbers, reached = data[8 + length:], 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        assert set(entry) == {"dtype", "shape", "data_offsets"}, name
        begin, end = entry["data_offsets"]
        count = 1
        for extent in entry["shape"]:
            count *= extent
        assert begin == reached and end - begin == count * WIDTH[entry["dtype"]] and begin % WIDTH[entry["dtype"]] == 0, name
        reached = end
        yield name, entry["dtype"], entry["shape"], numbers[begin:end]
    assert reached == len(numbers), "bytes after the last tensor"
    for key, value in metadata.items():
        yield f"metadata {key}", value, [], b""


def read_by_library(path):
    import numpy
    from safetensors import safe_open
    names = {"float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64"}
    with safe_open(path, framework="numpy") as file:
        for name in file.keys():
            tensor = file.get_tensor(name)
            yield name, names[str(tensor.dtype)], list(tensor.shape), numpy.ascontiguousarray(tensor).tobytes()
        for key, value in (file.metadata() or {}).items():
            yield f"metadata {key}", value, [], b""


if __name__ == "__main__":
    read = read_by_library if sys.argv[1] == "--library" else read_by_description
    for line in sorted(f"{ascii(name)} {ascii(kind)} {shape} {data.hex()}" for name, kind, shape, data in read(sys.argv[-1])):
        print(line)
