"""PyTorch's side of an update, eager, as its users write it: gradients unset before, weights changed in place."""
import sys

import side

try:
    import torch
    from torch.nn import functional
except ModuleNotFoundError as error:
    sys.exit(f"PyTorch is absent: {error}")


class Work:
    def __init__(self, problem):
        def tensor(shape_and_numbers):
            return torch.frombuffer(shape_and_numbers[1], dtype=torch.float32).reshape(shape_and_numbers[0]).clone()

        self.problem = problem
        self.parameters = [tensor(p).requires_grad_() for p in problem.parameters]
        self.pictures = tensor(problem.pictures)
        self.labels = torch.tensor(problem.labels[1], dtype=torch.int64)

    def compute_gradients(self):
        for p in self.parameters:
            p.grad = None
        for pictures, labels in zip(self.pictures.split(self.problem.micro), self.labels.split(self.problem.micro), strict=True):
            x = pictures
            for i in range(0, len(self.parameters), 2):
                x = torch.addmm(self.parameters[i + 1], x, self.parameters[i])
                if i + 2 < len(self.parameters):
                    x = torch.relu(x)
            (functional.cross_entropy(x, labels, reduction="sum") / self.problem.rows).backward()

    def run(self, updates):
        for _ in range(updates):
            self.compute_gradients()
            with torch.no_grad():
                for p in self.parameters:
                    p.add_(p.grad, alpha=-self.problem.rate)

    def numbers(self):
        self.compute_gradients()
        gradients = [p.grad for p in self.parameters]
        self.run(1)
        return [numbers.detach().flatten().tolist() for numbers in gradients + self.parameters]


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    side.serve(f"PyTorch {torch.__version__}, eager", Work)
