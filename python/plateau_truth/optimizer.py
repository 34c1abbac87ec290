"""AdamW with clipping by the global norm, and the update of correction biases, in float64."""

import dataclasses
import math

import numpy as np

from plateau_truth.config import CORRECTION_BIAS, is_trained


@dataclasses.dataclass
class AdamW:
    """The update of PyTorch's AdamW; matrices decay, vectors (the norms' weights) do not."""

    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float
    clip_norm: float
    step: int = 0
    first: dict = dataclasses.field(default_factory=dict)
    second: dict = dataclasses.field(default_factory=dict)

    def update(self, parameters, gradients, learning_rate):
        """New parameters, and the norm of the gradients before clipping. What is not trained stays as it is."""
        self.step += 1
        norm = math.sqrt(sum(float(np.sum(gradient * gradient)) for gradient in gradients.values()))
        factor = min(1.0, self.clip_norm / norm) if norm > 0 else 1.0
        updated = {}
        for name, value in parameters.items():
            if not is_trained(name):
                updated[name] = value
                continue
            gradient = gradients[name] * factor
            first = self.beta1 * self.first.get(name, 0.0) + (1 - self.beta1) * gradient
            second = self.beta2 * self.second.get(name, 0.0) + (1 - self.beta2) * gradient**2
            self.first[name], self.second[name] = first, second
            decay = self.weight_decay if value.ndim > 1 else 0.0
            unbiased_first = first / (1 - self.beta1**self.step)
            unbiased_second = second / (1 - self.beta2**self.step)
            updated[name] = (1 - learning_rate * decay) * value - learning_rate * unbiased_first / (
                np.sqrt(unbiased_second) + self.epsilon
            )
        return updated, norm


def correct_biases(parameters, counts, rate):
    """New parameters: b_e grows by `rate` where expert e had fewer routes than the mean, and shrinks where it had more.

    `counts` has for each layer the routes to each expert, of all tokens of a step.
    """
    updated = dict(parameters)
    for layer, count in counts.items():
        name = f"model.layers.{layer}.{CORRECTION_BIAS}"
        updated[name] = parameters[name] + rate * np.sign(np.mean(count) - count)
    return updated
