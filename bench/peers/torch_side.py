"""Computes a row with PyTorch in eager mode and usual style: gradients are unset, and weights change in place."""
import sys

import side

try:
    import torch
    from torch.nn import functional
except ModuleNotFoundError as error:
    sys.exit(f"PyTorch is absent: {error}")


def tensor(shape_and_numbers):
    return torch.frombuffer(shape_and_numbers[1], dtype=torch.float32).reshape(shape_and_numbers[0]).clone()


def label_tensor(problem):
    return torch.tensor(problem.labels[1], dtype=torch.int64)


class Work:
    """Calls a given function `backward`, which leaves gradients in the parameters."""

    def __init__(self, parameters, backward):
        self.parameters, self.backward = [p.requires_grad_() for p in parameters], backward

    def run(self, times):
        for _ in range(times):
            for p in self.parameters:
                p.grad = None
            self.backward(*self.parameters)

    def numbers(self):
        self.run(1)
        return [p.grad.flatten().tolist() for p in self.parameters]


class Network(Work):
    def __init__(self, problem):
        *parameters, pictures = [tensor(a) for a in problem.arrays]
        labels = label_tensor(problem)

        def backward(*parameters):
            for some, of_them in zip(pictures.split(problem.micro), labels.split(problem.micro), strict=True):
                x = some
                for i in range(0, len(parameters), 2):
                    x = torch.addmm(parameters[i + 1], x, parameters[i])
                    if i + 2 < len(parameters):
                        x = torch.relu(x)
                (functional.cross_entropy(x, of_them, reduction="sum") / problem.rows).backward()

        super().__init__(parameters, backward)
        self.rate = problem.rate

    def run(self, times):
        for _ in range(times):
            super().run(1)
            with torch.no_grad():
                for p in self.parameters:
                    p.add_(p.grad, alpha=-self.rate)

    def numbers(self):
        gradients = super().numbers()  # this also makes an update
        return gradients + [p.detach().flatten().tolist() for p in self.parameters]


def deep(problem):
    *parameters, data = [tensor(a) for a in problem.arrays]

    def backward(*parameters):
        for x in data.split(problem.micro):
            for i in range(0, len(parameters), 2):
                x = torch.relu(torch.addmm(parameters[i + 1], x, parameters[i]))
            (x.sum() / problem.rows).backward()

    return Work(parameters, backward)


def cross_entropy(problem):
    labels = label_tensor(problem)
    return Work([tensor(problem.arrays[0])], lambda x: functional.cross_entropy(x, labels).backward())


def mse(problem):
    x, target = [tensor(a) for a in problem.arrays]
    return Work([x], lambda x: functional.mse_loss(x, target).backward())


def forward_and_back(function):
    def work(problem):
        *arguments, seed = [tensor(a) for a in problem.arrays]
        return Work(arguments, lambda *a: function(*a).backward(seed))

    return work


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    side.serve(f"PyTorch {torch.__version__}, eager", {
        "mlp": Network, "deep": deep, "cross-entropy": cross_entropy, "mse": mse,
        "softmax": forward_and_back(lambda x: torch.softmax(x, 1)),
        "layer-norm": forward_and_back(lambda x, gain, bias: functional.layer_norm(x, gain.shape, gain, bias))})
