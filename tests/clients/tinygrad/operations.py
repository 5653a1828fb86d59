"""Tensor operations of tinygrad one by one, each on its HIP device and on its CPU device, with the same random inputs."""

import numpy as np
from both import DEVICES, difference, draw, report, tensor
from tinygrad import Tensor, dtypes

OPERATIONS = {}


def operation(*shapes, tolerance=1e-4, **how):
    """Adds a function of tensors, with the shapes of its inputs; `how` says what they are drawn from."""
    def add(function):
        OPERATIONS[function.__name__.strip("_")] = (function, shapes, tolerance, how)
        return function
    return add


@operation((37, 53), (37, 53))
def add(a, b): return a + b

@operation((37, 53), (53,))
def multiply_broadcast(a, b): return a * b

@operation((40, 30), (40, 30))
def divide(a, b): return a / (b.abs() + 1)

@operation((500,), (500,), dtype=np.int32, low=1, high=1000)
def integer_divide(a, b): return a // b

@operation((500,), (500,), dtype=np.int32, low=1, high=1000)
def remainder(a, b): return a % b

@operation((500,), (500,), dtype=np.int32, low=0, high=1 << 20)
def bits(a, b): return (a ^ b) & (a | 0x55) ^ (b >> 3) ^ (a << 2)

@operation((300,))
def relu(a): return a.relu()

@operation((300,))
def gelu(a): return a.gelu()

@operation((300,))
def sigmoid(a): return a.sigmoid()

@operation((300,))
def tanh(a): return a.tanh()

@operation((300,))
def exp(a): return a.exp()

@operation((300,))
def log(a): return (a.abs() + 0.1).log()

@operation((300,))
def sqrt(a): return a.abs().sqrt()

@operation((300,))
def rsqrt(a): return (a.abs() + 0.1).rsqrt()

@operation((300,))
def sin(a): return (a * 10).sin()

@operation((300,), (300,))
def power(a, b): return (a.abs() + 0.5) ** b

@operation((300,))
def rounding(a): return (a * 10).floor() + (a * 10).ceil() * 2 + (a * 10).trunc() * 4 + (a * 10).round() * 8

@operation((300,), (300,))
def maximum(a, b): return a.maximum(b) - a.minimum(b)

@operation((300,), (300,))
def compare(a, b): return (a < b).int() + (a == b).int() * 2 + (a >= b).int() * 4

@operation((300,), (300,))
def where(a, b): return (a > 0).where(a, b)

@operation((300,))
def clip(a): return a.clip(-0.5, 0.5)

@operation((64, 100))
def sum_rows(a): return a.sum(axis=1)

@operation((64, 100))
def sum_columns(a): return a.sum(axis=0)

@operation((64, 100))
def sum_all(a): return a.sum()

@operation((64, 100))
def mean(a): return a.mean(axis=0)

@operation((64, 100))
def variance(a): return a.var(axis=1)

@operation((64, 100))
def max_rows(a): return a.max(axis=1)

@operation((9, 7))
def product(a): return a.prod(axis=1)

@operation((40, 50))
def argmax(a): return a.argmax(axis=1)

@operation((40, 50))
def argmin(a): return a.argmin(axis=0)

@operation((64, 100))
def cumulative_sum(a): return a.cumsum(axis=1)

@operation((10, 20))
def cumulative_product(a): return a.cumprod(axis=1)

@operation((20, 64))
def softmax(a): return a.softmax()

@operation((20, 64))
def log_softmax(a): return a.log_softmax()

@operation((20, 64))
def log_sum_exp(a): return a.logsumexp(axis=1)

@operation((24, 96))
def layer_norm(a): return a.layernorm()

@operation((4, 6, 10, 10), (6,), (6,))
def batch_norm(a, scale, shift):
    return a.batchnorm(scale, shift, a.mean(axis=(0, 2, 3)), (a.var(axis=(0, 2, 3)) + 1e-5).rsqrt())

@operation((96, 80), (80, 112))
def matmul(a, b): return a @ b

@operation((67, 31), (31, 45))
def matmul_odd(a, b): return a @ b

@operation((64, 64), (64, 64), tolerance=1e-3)
def matmul_half(a, b): return a.half().matmul(b.half(), dtype=dtypes.float)

@operation((64, 64), (64, 64), tolerance=1e-3)
def matmul_bfloat16(a, b):
    a, b = a.bfloat16(), b.bfloat16()
    # The CPU device rounds each product to bfloat16, which the matrix instructions do not.
    return a.matmul(b, dtype=dtypes.float) if a.device == "HIP" else a.float() @ b.float()

@operation((64, 64), (64, 64), dtype=np.int8, low=-128, high=128)
def matmul_int8(a, b): return a.matmul(b, dtype=dtypes.int32)

@operation((5, 32, 48), (5, 48, 24))
def matmul_batched(a, b): return a @ b

@operation((192, 256), (256,))
def matmul_vector(a, x): return a @ x

@operation((4, 5, 6), (4, 6, 7))
def einsum(a, b): return Tensor.einsum("bij,bjk->bik", a, b)

@operation((2, 8, 14, 14), (16, 8, 3, 3))
def convolution(x, w): return x.conv2d(w, padding=1)

@operation((1, 6, 17, 17), (12, 6, 5, 5))
def convolution_strided(x, w): return x.conv2d(w, stride=2)

@operation((1, 12, 16, 16), (12, 1, 3, 3))
def convolution_depthwise(x, w): return x.conv2d(w, groups=12)

@operation((1, 8, 7, 7), (8, 4, 3, 3))
def convolution_transposed(x, w): return x.conv_transpose2d(w, stride=2)

@operation((2, 6, 12, 12))
def max_pool(x): return x.max_pool2d()

@operation((2, 6, 12, 12))
def average_pool(x): return x.avg_pool2d()

@operation((1, 4, 24, 16), (1, 4, 24, 16), (1, 4, 24, 16))
def attention(q, k, v): return q.scaled_dot_product_attention(k, v, is_causal=True)

@operation((50, 32))
def gather_rows(a): return a[Tensor(draw("rows", 17, dtype=np.int32, low=0, high=50), device=a.device)]

@operation((12, 20))
def gather(a): return a.gather(1, Tensor(draw("gather", 12, 5, dtype=np.int32, low=0, high=20), device=a.device))

@operation((10, 16), (25, 16))
def scatter_add(a, b):
    index = Tensor(draw("scatter", 25, 1, dtype=np.int32, low=0, high=10), device=a.device).expand(25, 16)
    return a.scatter_reduce(0, index, b, "sum")

@operation((30, 40))
def slices(a): return a[3:20:2, ::-1].contiguous() + 1

@operation((30, 40))
def transpose(a): return a.T.contiguous() * 2

@operation((6, 8, 10))
def permute(a): return a.permute(2, 0, 1).reshape(20, 24).contiguous() * 2

@operation((12, 20), (7, 20))
def concatenate(a, b): return a.cat(b, dim=0) + 0.5

@operation((12, 20))
def pad(a): return a.pad(((1, 2), (0, 3)), value=-1.0) + 0.5

@operation((20, 20))
def triangle(a): return a.tril() - a.triu(1)

@operation((6, 40))
def sort(a): return a.sort(dim=1)[0]

@operation((64,))
def top_k(a): return a.topk(5)[1]

@operation((100,), dtype=np.int32, low=0, high=16)
def one_hot(a): return a.one_hot(16)

@operation((20, 16), (20,))
def cross_entropy(a, b): return a.cross_entropy((b * 8).abs().int().clip(0, 15))

@operation((300,), tolerance=5e-3)
def half_precision(a): return (a.half() * 3 + 1).exp().float()

@operation((300,), dtype=np.float64, tolerance=1e-9)
def double_precision(a): return ((a * a + 1).sqrt() / (a.abs() + 2)).sum()

@operation((300,), tolerance=1e-6)
def conversions(a): return (a * 20).cast(dtypes.int8).cast(dtypes.float) + a.cast(dtypes.bfloat16).float() + (a * 9).cast(dtypes.int64).float()

@operation((16, 64), (64, 32), (32, 10), tolerance=1e-3)
def gradients(x, w1, w2):
    w1, w2 = w1.clone(), w2.clone()
    loss = ((x @ w1).relu() @ w2).square().mean()
    a, b = loss.gradient(w1, w2)
    return a.flatten().cat(b.flatten())

@operation((1,), tolerance=0)
def random_uniform(a):
    Tensor.manual_seed(20)
    return Tensor.rand(33, 65, device=a.device)

@operation((1,))
def random_normal(a):
    Tensor.manual_seed(21)
    return Tensor.randn(50, 20, device=a.device)

@operation((1,), tolerance=0)
def random_integers(a):
    Tensor.manual_seed(22)
    return Tensor.randint(100, low=-50, high=50, device=a.device)


def compare_devices(name):
    function, shapes, tolerance, how = OPERATIONS[name]
    inputs = [draw(f"{name} {i}", *shape, **how) for i, shape in enumerate(shapes)]
    got, expected = (function(*(tensor(values, device) for values in inputs)).numpy() for device in DEVICES)
    return difference(got, expected, tolerance)


for name in OPERATIONS:
    report(name, lambda: compare_devices(name))
