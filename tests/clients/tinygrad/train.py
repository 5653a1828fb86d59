"""Trains a multi-layer perceptron for 50 steps on both devices: the losses have to fall, and step by step in the same way."""

import numpy as np
from both import DEVICES, difference, draw, report, tensor
from tinygrad import Context, nn

STEPS, SAMPLES, FEATURES, HIDDEN, CLASSES = 50, 128, 20, 64, 5


class Perceptron:
    def __init__(self, device):
        self.w1 = tensor(draw("w1", FEATURES, HIDDEN) * FEATURES ** -0.5, device)
        self.b1 = tensor(np.zeros(HIDDEN, np.float32), device)
        self.w2 = tensor(draw("w2", HIDDEN, CLASSES) * HIDDEN ** -0.5, device)
        self.b2 = tensor(np.zeros(CLASSES, np.float32), device)

    def __call__(self, x):
        return (x @ self.w1 + self.b1).relu() @ self.w2 + self.b2


def losses(device, optimizer):
    features = draw("features", SAMPLES, FEATURES)
    labels = (features @ draw("truth", FEATURES, CLASSES)).argmax(axis=1).astype(np.int32)
    x, y = tensor(features, device), tensor(labels, device)
    model = Perceptron(device)
    steps = optimizer(nn.state.get_parameters(model))
    result = []
    with Context(TRAINING=1):
        for _ in range(STEPS):
            steps.zero_grad()
            loss = model(x).cross_entropy(y).backward()
            steps.step()
            result.append(loss.item())
    return np.array(result, np.float32)


def compare(optimizer):
    got, expected = (losses(device, optimizer) for device in DEVICES)
    if not (got[-1] < got[0] / 2 and np.isfinite(got).all()):
        return f"the loss does not fall: {got[0]} to {got[-1]}"
    return difference(got, expected, 1e-3)


report("train_sgd", lambda: compare(lambda parameters: nn.optim.SGD(parameters, lr=0.5)))
report("train_adam", lambda: compare(lambda parameters: nn.optim.Adam(parameters, lr=0.02)))
