"""What PyTorch reaches on this GPU: copies, a large product, grouped products, attention; for `weft bench gpu`.

usage: torch_kernels.py SETTINGS   (JSON, written by weft: products, attention, rounds)
Prints one JSON object with the median seconds of each, by CUDA events, after a warm-up. An attention backend
that does not take a shape is listed with its reason. Progress goes to standard error.
"""
import json
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}
CALLS = 10  # of a round


def say(what):
    print(what, file=sys.stderr, flush=True)


def seconds_of(call, rounds):
    """The median of single calls, issued while the GPU is still busy with a large write."""
    lead = torch.empty(1 << 28, device="cuda")
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    taken = []
    for _ in range(rounds):
        begin = [torch.cuda.Event(enable_timing=True) for _ in range(CALLS)]
        end = [torch.cuda.Event(enable_timing=True) for _ in range(CALLS)]
        lead.zero_()
        for b, e in zip(begin, end):
            b.record()
            call()
            e.record()
        torch.cuda.synchronize()
        taken += [b.elapsed_time(e) * 1e-3 for b, e in zip(begin, end)]
    return statistics.median(taken)


def random(*shape, deviation=1.0):
    return (torch.randn(*shape, device="cuda", dtype=torch.float32) * deviation).bfloat16()


def ceilings(size, copy_bytes, rounds):
    x, w = random(size, size), random(size, size)
    product = seconds_of(lambda: torch.mm(x, w.t()), rounds)
    source = torch.empty(copy_bytes, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copy = seconds_of(lambda: target.copy_(source), rounds)
    return {"flops_per_second": 2 * size**3 / product, "copy_bytes_per_second": 2 * copy_bytes / copy}


def grouped_mm():
    public = getattr(F, "grouped_mm", None)
    return public if public is not None else torch._grouped_mm


def product(case, rounds):
    """x (R, K), w (E, N, K); the gradient of the weights is bf16 here."""
    rows, n, k = case["rows"], case["n"], case["k"]
    total = sum(rows)
    ends = torch.tensor(rows, device="cuda").cumsum(0).to(torch.int32)
    x, dy = random(total, k), random(total, n)
    w = random(len(rows), n, k, deviation=0.02)
    mm = grouped_mm()
    calls = {
        "forward": lambda: mm(x, w.transpose(-2, -1), offs=ends),
        "dgrad": lambda: mm(dy, w, offs=ends),
        "wgrad": lambda: mm(dy.t(), x, offs=ends),
    }
    result = {}
    for name, call in calls.items():
        try:
            result[name] = seconds_of(call, rounds)
        except Exception as error:  # a shape it does not take is a result
            result[name + "_error"] = reason(error)
    return result


def reason(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def attention_with(backend, case, rounds):
    batch, sequence = case["batch"], case["sequence"]
    heads, groups = case["heads"], case["groups"]
    # As a model has them: heads beside each other in a row of a token.
    q = random(batch, sequence, heads, case["head_width"]).transpose(1, 2).requires_grad_(True)
    k = random(batch, sequence, groups, case["head_width"]).transpose(1, 2).requires_grad_(True)
    v = random(batch, sequence, groups, case["value_width"]).transpose(1, 2).requires_grad_(True)

    def attend():
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != groups)

    with sdpa_kernel([backend]):
        out = attend()
        gradient = torch.randn_like(out)
        with torch.no_grad():
            forward = seconds_of(attend, rounds)
        backward = seconds_of(lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True), rounds)
    return {"forward": forward, "backward": backward}


def attention(case, rounds, deterministic):
    torch.use_deterministic_algorithms(deterministic)
    torch.utils.deterministic.fill_uninitialized_memory = False  # it would be timed, too
    results = {}
    for name, backend in BACKENDS.items():
        try:
            results[name] = attention_with(backend, case, rounds)
        except Exception as error:  # a backend that does not take the shape is a result
            results[name] = {"error": reason(error)}
    torch.use_deterministic_algorithms(False)
    return results


def main(settings):
    rounds = settings["rounds"]
    torch.manual_seed(0)
    say("PyTorch: ceilings")
    result = {"version": torch.__version__, "card": torch.cuda.get_device_name()}
    result.update(ceilings(8192, 2 << 30, rounds))
    result["products"], result["attention"] = [], []
    for i, case in enumerate(settings["products"]):
        say(f"PyTorch: product {i + 1}/{len(settings['products'])}")
        result["products"].append(product(case, rounds))
        torch.cuda.empty_cache()
    for i, case in enumerate(settings["attention"]):
        say(f"PyTorch: attention {i + 1}/{len(settings['attention'])}")
        result["attention"].append({
            "varying": attention(case, rounds, False),
            "deterministic": attention(case, rounds, True),
        })
        torch.cuda.empty_cache()
    print(json.dumps(result))


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        main(json.load(file))
