"""Computes a row with JAX: one jitted function, with lax.scan over the micro-batches."""
import os
import sys

import side

os.environ["JAX_PLATFORMS"] = "cpu"  # uses as many threads as this process has cores
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
except ModuleNotFoundError as error:
    sys.exit(f"JAX is absent: {error}")


def on_the_device(shape_and_numbers):
    return jnp.array(np.asarray(shape_and_numbers[1]).reshape(shape_and_numbers[0]))


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).sum()


def summed_over_parts(gradient, parameters, parts):
    """Sums the gradients of micro-batches. The first axis of each array in `parts` counts the micro-batches."""
    if parts[0].shape[0] == 1:
        return gradient(parameters, *(part[0] for part in parts))

    def add(total, part):
        return jax.tree.map(jnp.add, total, gradient(parameters, *part)), None

    return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, parameters), parts)[0]


def in_parts(array, rows):
    return array.reshape(-1, rows, *array.shape[1:])


class Network:
    """Makes updates of the MLP with `rows` pictures, in micro-batches of `micro`."""

    def __init__(self, problem):
        self.problem = problem
        *parameters, pictures = [on_the_device(a) for a in problem.arrays]
        self.parameters, self.data = parameters, (pictures, on_the_device(problem.labels))
        self.gradients = jax.jit(self.gradients_of)
        self.update = jax.jit(self.updated, donate_argnums=0)

    @staticmethod
    def loss(parameters, pictures, labels, rows):
        x = pictures
        for i in range(0, len(parameters), 2):
            x = x @ parameters[i] + parameters[i + 1]
            if i + 2 < len(parameters):
                x = jax.nn.relu(x)
        return cross_entropy(x, labels) / rows

    def gradients_of(self, parameters, pictures, labels):
        def gradient(parameters, pictures, labels_of_them):
            return jax.grad(self.loss)(parameters, pictures, labels_of_them, len(labels))

        return summed_over_parts(gradient, parameters, [in_parts(d, self.problem.micro) for d in (pictures, labels)])

    def updated(self, parameters, pictures, labels):
        gradients = self.gradients_of(parameters, pictures, labels)
        return jax.tree.map(lambda p, g: p - self.problem.rate * g, parameters, gradients)

    def run(self, times):
        for _ in range(times):
            self.parameters = self.update(self.parameters, *self.data)
        jax.block_until_ready(self.parameters)

    def numbers(self):
        gradients = self.gradients(self.parameters, *self.data)
        self.run(1)
        return [np.asarray(numbers).ravel() for numbers in gradients + self.parameters]


class Epoch(Network):
    """Compiles an epoch as one function: a scan over the updates, and an update by the remaining pictures."""

    def updated(self, parameters, pictures, labels):
        def step(parameters, part):
            return super(Epoch, self).updated(parameters, *part), None

        rows = self.problem.rows
        whole = len(labels) // rows * rows
        parameters = jax.lax.scan(step, parameters, (in_parts(pictures[:whole], rows), in_parts(labels[:whole], rows)))[0]
        return super().updated(parameters, pictures[whole:], labels[whole:]) if whole < len(labels) else parameters

    def numbers(self):
        start = [np.array(p) for p in self.parameters]
        self.run(1)
        return [(np.asarray(p) - s).ravel() for p, s in zip(self.parameters, start, strict=True)]


class Function:
    """Calls a jitted function with the same arrays each time. `compared` of its results are compared gradients."""

    def __init__(self, function, arguments, compared):
        self.arguments, self.compared = arguments, compared
        self.jitted = jax.jit(function)

    def run(self, times):
        for _ in range(times):
            results = self.jitted(*self.arguments)
        jax.block_until_ready(results)

    def numbers(self):
        results = jax.tree.leaves(self.jitted(*self.arguments))
        return [np.asarray(numbers).ravel() for numbers in results[-self.compared:]]

    def mebibytes(self):
        return self.jitted.lower(*self.arguments).compile().memory_analysis().temp_size_in_bytes / 2**20


def deep(problem):
    *parameters, data = [on_the_device(a) for a in problem.arrays]

    def loss(parameters, x):
        for i in range(0, len(parameters), 2):
            x = jax.nn.relu(x @ parameters[i] + parameters[i + 1])
        return x.sum() / problem.rows

    def gradients(parameters, data):
        return summed_over_parts(jax.grad(loss), parameters, [in_parts(data, problem.micro)])

    return Function(gradients, (parameters, data), len(parameters))


def mean_cross_entropy(problem):
    def loss(logits, labels):  # the fastest of four versions if there are many classes
        return (jax.nn.logsumexp(logits, axis=1) - logits[jnp.arange(len(labels)), labels]).mean()

    return Function(jax.value_and_grad(loss), (on_the_device(problem.arrays[0]), on_the_device(problem.labels)), 1)


def mse(problem):
    arguments = [on_the_device(a) for a in problem.arrays]
    return Function(jax.value_and_grad(lambda x, target: ((x - target) ** 2).mean()), arguments, 1)


def forward_and_back(function):
    """Computes the value of a function of several arrays, and their gradients from a given gradient."""

    def work(problem):
        *arguments, seed = [on_the_device(a) for a in problem.arrays]

        def both(seed, *arguments):
            value, back = jax.vjp(function, *arguments)
            return value, back(seed)

        return Function(both, (seed, *arguments), len(arguments))

    return work


def layer_norm(x, gain, bias):
    distance = x - x.mean(axis=1, keepdims=True)
    return distance * jax.lax.rsqrt((distance**2).mean(axis=1, keepdims=True) + 1e-5) * gain + bias


if __name__ == "__main__":
    side.serve(f"JAX {jax.__version__}, jit", {
        "mlp": Network, "epoch": Epoch, "deep": deep, "cross-entropy": mean_cross_entropy, "mse": mse,
        "softmax": forward_and_back(jax.nn.softmax), "layer-norm": forward_and_back(layer_norm)})
