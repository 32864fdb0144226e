"""Reads the weights that an example has saved after every update, for its PyTorch version."""
import json

import numpy as np
import torch

TYPES = {"F32": "<f4", "F64": "<f8"}


def weights(folder, update):
    """Reads weights-UPDATE.safetensors, which contains the length of a JSON header in eight bytes, the header, and the numbers."""
    file = (folder / f"weights-{update}.safetensors").read_bytes()
    numbers = 8 + int.from_bytes(file[:8], "little")
    tensors = {}
    for name, about in json.loads(file[8:numbers]).items():
        if name != "__metadata__":
            begin, end = (numbers + offset for offset in about["data_offsets"])
            array = np.frombuffer(file[begin:end], TYPES[about["dtype"]]).reshape(about["shape"])
            tensors[name] = torch.from_numpy(array.copy())
    return tensors


def differences(model, folder, update):
    """Returns the absolute difference of every weight between the PyTorch version and the example."""
    theirs = weights(folder, update)
    return {name: (ours - theirs[name]).abs() for name, ours in model.state_dict().items()}
