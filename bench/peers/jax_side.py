"""JAX's side of an update: one jitted function, with lax.scan over the micro-batches."""
import os
import sys

import side

os.environ["JAX_PLATFORMS"] = "cpu"  # threads are as many as the cores that this process may use
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
except ModuleNotFoundError as error:
    sys.exit(f"JAX is absent: {error}")


def loss_of(parameters, pictures, labels, rows):
    x = pictures
    for i in range(0, len(parameters), 2):
        x = x @ parameters[i] + parameters[i + 1]
        if i + 2 < len(parameters):
            x = jax.nn.relu(x)
    return -jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], axis=1).sum() / rows


class Work:
    def __init__(self, problem):
        def on_the_device(shape_and_numbers):
            return jnp.array(np.asarray(shape_and_numbers[1]).reshape(shape_and_numbers[0]))

        self.parameters = [on_the_device(p) for p in problem.parameters]
        self.data = [on_the_device(d) for d in (problem.pictures, problem.labels)]
        gradient = jax.grad(loss_of)

        def gradients(parameters, pictures, labels):
            if problem.micro == problem.rows:
                return gradient(parameters, pictures, labels, problem.rows)

            def add(total, part):
                return jax.tree.map(jnp.add, total, gradient(parameters, *part, problem.rows)), None

            parts = [d.reshape(-1, problem.micro, *d.shape[1:]) for d in (pictures, labels)]
            return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, parameters), parts)[0]

        def update(parameters, pictures, labels):
            return jax.tree.map(lambda p, g: p - problem.rate * g, parameters, gradients(parameters, pictures, labels))

        self.gradients = jax.jit(gradients)
        self.update = jax.jit(update, donate_argnums=0)

    def run(self, updates):
        for _ in range(updates):
            self.parameters = self.update(self.parameters, *self.data)
        jax.block_until_ready(self.parameters)

    def numbers(self):
        gradients = self.gradients(self.parameters, *self.data)
        self.run(1)
        return [np.asarray(numbers).ravel() for numbers in gradients + self.parameters]


if __name__ == "__main__":
    side.serve(f"JAX {jax.__version__}, jit", Work)
