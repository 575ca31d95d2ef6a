"""Forward and backward of the model of `weft bench gpu` in Transformers with torch.compile.

usage: transformers_step.py FOLDER   (config.json, *.safetensors, tokens.i32, settings.json; written by weft)
settings.json: sequence, rounds, tolerance, losses (weft's, of each sequence alone), sequences (of the batches to
time, one after the other).

bf16, experts by grouped_mm. Every attention that Transformers offers here is tried without torch.compile; the
fastest is compiled. The losses of all sequences are compared with weft's before anything is timed: where they
differ by more than the tolerance (relative), the script fails. The routers' balancing loss is left out.
Prints one JSON object; progress goes to standard error.
"""
import json
import os
import statistics
import sys

import numpy
import torch
import torch.nn.functional as F
import transformers

EAGER_ROUNDS = 3


def say(what):
    print(what, file=sys.stderr, flush=True)


def reason(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def use_sdpa(*names):
    """Which backends F.scaled_dot_product_attention may choose from."""
    torch.backends.cuda.enable_cudnn_sdp("cudnn" in names)
    torch.backends.cuda.enable_flash_sdp("flash" in names)
    torch.backends.cuda.enable_mem_efficient_sdp("efficient" in names)
    torch.backends.cuda.enable_math_sdp("math" in names)


def ways():
    """(name, what to tell Transformers, backends of sdpa)"""
    everything = ("cudnn", "flash", "efficient", "math")
    found = [("sdpa, cuDNN", "sdpa", ("cudnn",)), ("sdpa, flash", "sdpa", ("flash",))]
    for version in ("3", "2"):
        is_there = getattr(transformers.utils, f"is_flash_attn_{version}_available", lambda: False)
        if is_there():
            found.append((f"flash_attention_{version}", f"flash_attention_{version}", everything))
    return found


def read_tokens(folder, sequence):
    tokens = numpy.fromfile(os.path.join(folder, "tokens.i32"), dtype=numpy.int32).reshape(-1, sequence + 1)
    return torch.from_numpy(tokens.astype(numpy.int64)).cuda()


class Step:
    def __init__(self, model, compiled):
        self.model = model
        self.losses = torch.compile(self.plain_losses, dynamic=False) if compiled else self.plain_losses

    def plain_losses(self, ids, labels):
        """The mean of each sequence, (B)."""
        logits = self.model(input_ids=ids, use_cache=False).logits
        loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="none")
        return loss.view(labels.shape).mean(1)

    def run(self, tokens):
        """Seconds and losses of forward and backward."""
        self.model.zero_grad(set_to_none=True)
        ids, labels = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        losses = self.losses(ids, labels)
        losses.mean().backward()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e-3, losses.detach().double().cpu().tolist()


def compare(losses, expected, tolerance):
    largest = max(abs(a - b) / abs(b) for a, b in zip(losses, expected, strict=True))
    if not largest <= tolerance:
        sys.exit(f"another model is computed: losses {losses}, weft's {expected}, differ by {largest:.1e} "
                 f"(at most {tolerance:.0e})")
    return largest


def try_all(model, tokens, settings):
    """Every attention without torch.compile, with its seconds or its error; those that work, fastest first."""
    attempts, good = [], []
    for name, implementation, backends in ways():
        say(f"Transformers: attention {name}")
        try:
            use_sdpa(*backends)
            model.set_attn_implementation(implementation)
            step = Step(model, compiled=False)
            runs = [step.run(tokens) for _ in range(EAGER_ROUNDS)]
            compare(runs[-1][1], settings["losses"], settings["tolerance"])
            seconds = min(taken for taken, _ in runs)
            attempts.append({"attention": name, "eager_seconds": seconds})
            good.append((seconds, name, implementation, backends))
        except Exception as error:  # an attention that is not there is a result
            attempts.append({"attention": name, "error": reason(error)})
            model.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
    return attempts, sorted(good)


def time_compiled(model, tokens, settings):
    batches = []
    step = Step(model, compiled=True)
    difference = 0.0
    for sequences in settings["sequences"]:
        say(f"Transformers: torch.compile, {sequences} x {settings['sequence']}")
        part = tokens[:sequences]
        for _ in range(3):
            _, losses = step.run(part)
        difference = max(difference, compare(losses, settings["losses"][:sequences], settings["tolerance"]))
        seconds = [step.run(part)[0] for _ in range(settings["rounds"])]
        batches.append({"sequences": sequences, "seconds": statistics.median(seconds)})
    return batches, difference


def main(folder):
    with open(os.path.join(folder, "settings.json")) as file:
        settings = json.load(file)
    tokens = read_tokens(folder, settings["sequence"])
    say("Transformers: loading the weights")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, attn_implementation="sdpa", experts_implementation="grouped_mm").cuda()
    model.train()
    attempts, good = try_all(model, tokens, settings)
    if not good:
        sys.exit("no attention of Transformers works here: " + json.dumps(attempts))
    for _, name, implementation, backends in good:
        try:
            use_sdpa(*backends)
            model.set_attn_implementation(implementation)
            torch._dynamo.reset()
            batches, difference = time_compiled(model, tokens, settings)
            break
        except Exception as error:  # the next attention may compile
            attempts.append({"attention": name, "compiled": True, "error": reason(error)})
            model.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
    else:
        sys.exit("torch.compile fails: " + json.dumps(attempts))
    print(json.dumps({"version": transformers.__version__, "torch": torch.__version__, "attention": name,
                      "batches": batches, "loss_difference": difference, "attempts": attempts}))


if __name__ == "__main__":
    main(sys.argv[1])
