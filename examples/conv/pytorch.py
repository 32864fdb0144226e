#!/usr/bin/python3
"""Trains the network of conv.cpp with PyTorch, on the same pictures, micro-batches and initial weights.

    example_conv UPDATES FOLDER [float|double] && pytorch.py FOLDER
"""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np
import recorded
import torch
from torch import nn
from torch.nn import functional as F

BATCH = 64
MICRO_BATCHES = [24, 24, 16]


class Network(nn.Module):
    """Has two convolutions of 5 x 5, each followed by pooling that halves the size, and a linear layer. These have 11 274 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 5, padding=2)
        self.conv2 = nn.Conv2d(8, 16, 5, padding=2)
        self.last = nn.Linear(16 * 7 * 7, 10)

    def forward(self, pictures):  # takes (n, 784) and returns (n, 10)
        x = ((pictures - 0.286) / 0.353).reshape(-1, 1, 28, 28)
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)  # (n, 8, 14, 14)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)  # (n, 16, 7, 7)
        return self.last(x.reshape(-1, 16 * 7 * 7))


def train(folder):
    images = torch.from_numpy(np.load(folder / "images.npy"))
    labels = torch.from_numpy(np.load(folder / "labels.npy")).long()
    order = torch.from_numpy(np.load(folder / "order.npy")).long()  # a row of 64 pictures for each update

    network = Network().to(images.dtype)
    network.load_state_dict(recorded.weights(folder, 0))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    for update, drawn in enumerate(order, 1):
        total = 0.0
        # PyTorch has no window, so this code divides by the batch, and calls zero_grad() and step() itself.
        optimizer.zero_grad()
        for micro in drawn.split(MICRO_BATCHES):
            loss = F.cross_entropy(network(images[micro]), labels[micro], reduction="sum")
            (loss / BATCH).backward()
            total += loss.item()
        optimizer.step()
        dw = max(each.max().item() for each in recorded.differences(network, folder, update).values())
        print(f"update {update}   loss {total / BATCH!r}   max|dw| {dw!r}")


torch.set_num_threads(1)
train(pathlib.Path(sys.argv[1]))
