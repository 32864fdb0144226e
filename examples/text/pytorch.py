#!/usr/bin/python3
"""Trains the model of text.cpp with PyTorch, on the same lines, micro-batches and initial weights.

    example_text UPDATES FOLDER [float|double] && pytorch.py FOLDER
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

TEXT = pathlib.Path(__file__).resolve().parent / "snark.txt"
WIDTH, HEADS, ASCII, PLACES = 32, 4, 128, 66
MICRO_BATCHES = [16, 8, 4]
NO_LETTER = -100  # the label of padding, which is not counted


def read(path):
    """Returns two rows for each line: the letters, and the letters that follow each letter. The rest of a row is padding."""
    lines = [torch.tensor(list(f"\n{line}\n".encode())) for line in path.read_text().splitlines() if line]
    letters = torch.full((len(lines), PLACES), ord("\n"))
    following = torch.full((len(lines), PLACES), NO_LETTER)
    for row, line in enumerate(lines):
        letters[row, :len(line) - 1] = line[:-1]
        following[row, :len(line) - 1] = line[1:]
    return letters, following


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.letter = nn.Embedding(ASCII, WIDTH)
        self.place = nn.Embedding(PLACES, WIDTH)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(WIDTH) for _ in range(3))
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.guess = nn.Linear(WIDTH, ASCII)

    def forward(self, letters):  # takes (lines, places); the result has a row for each letter
        x = self.letter(letters) + self.place.weight
        y = self.norm1(x)
        later = torch.ones(PLACES, PLACES, dtype=torch.bool).triu(1)
        x = x + self.attention(y, y, y, attn_mask=later, need_weights=False)[0]
        x = x + self.down(F.gelu(self.up(self.norm2(x))))
        return self.guess(self.norm3(x)).flatten(0, 1)


def train(folder):
    letters, following = read(TEXT)
    order = torch.from_numpy(np.load(folder / "order.npy")).long()  # a row of 28 lines for each update

    weights = recorded.weights(folder, 0)
    model = Transformer().to(weights["letter.weight"].dtype)
    model.load_state_dict(weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
    for update, drawn in enumerate(order, 1):
        total, count = 0.0, 0
        # PyTorch has no window, so this code adds up sums and counts, and divides every gradient before the step.
        optimizer.zero_grad()
        for micro in drawn.split(MICRO_BATCHES):
            labels = following[micro].flatten()
            loss = F.cross_entropy(model(letters[micro]), labels, ignore_index=NO_LETTER, reduction="sum")
            loss.backward()
            total += loss.item()
            count += (labels != NO_LETTER).sum().item()
        for parameter in model.parameters():
            parameter.grad /= count
        optimizer.step()
        apart = recorded.differences(model, folder, update)
        keys = apart["attention.in_proj_bias"][WIDTH:2 * WIDTH]  # rounding alone moves the bias of the keys, see README.md
        of_keys = keys.max().item()
        keys.zero_()
        others = max(each.max().item() for each in apart.values())
        print(f"update {update}   loss {total / count!r}   max|dw| {max(others, of_keys)!r}   others {others!r}")


torch.set_num_threads(1)
train(pathlib.Path(sys.argv[1]))
