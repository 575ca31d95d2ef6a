"""Makes a reference run for `weft verify` with Hugging Face Transformers (5 or later).

usage: make_reference.py FOLDER                     from the model in FOLDER (config.json, model.safetensors)
       make_reference.py FOLDER --new JSON          from a new random model; JSON is its config
       make_reference.py FOLDER --bf16              for a folder that has a reference run already
The first two add about.json and expected.safetensors: logits, loss and gradients of one batch, then the
losses of training. float32 on the CPU.

--bf16 adds bf16.safetensors, for `weft verify FOLDER model.bf16=true`: the experts that every token of
that batch chose in float32, and how far Transformers in bfloat16 is from the float32 reference where its
routers are made to choose the same. Transformers has several ways to compute attention and experts; their
errors scatter, most in small tensors, so the largest of each tensor counts. On the GPU where there is one.
"""
import argparse
import contextlib
import json
import os
import re
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

# The ways of Transformers to compute them, in bfloat16.
ATTENTION = ["eager", "sdpa"]
EXPERTS = ["eager", "batched_mm", "grouped_mm"]


def loss_of(model, ids):
    logits = model(input_ids=ids, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())
    return logits, loss


def values_of_batch(model, ids):
    """Logits, loss and gradients of one batch, in double, under the names of expected.safetensors."""
    model.zero_grad(set_to_none=True)
    logits, loss = loss_of(model, ids.to(model.device))
    loss.backward()
    values = {"logits": logits, "loss": loss.reshape(1)}
    for name, p in model.named_parameters():
        values["grad." + name] = p.grad
    return {name: value.detach().double().cpu() for name, value in values.items()}


def errors_of(values, expected):
    """As `weft verify` measures in bfloat16: the root of the mean square difference, over that of the reference."""
    errors = {}
    for name, value in values.items():
        reference = expected[name].double()
        size = reference.norm().item()
        difference = (value - reference).norm().item()
        errors[name] = difference / size if size > 0 else difference
    return errors


def routers_of(model):
    """The number of experts of each MoE layer, by layer, in order of use."""
    routers = {}
    for name, module in model.named_modules():
        found = re.fullmatch(r"model\.layers\.(\d+)\.mlp\.gate", name)
        if found:
            routers[int(found.group(1))] = module.weight.shape[0]
    return dict(sorted(routers.items()))


@contextlib.contextmanager
def choices(model, choose):
    """Gives the routers' choices into other hands while the model runs: choose(layer, own) is
    called for each MoE layer in turn, where own() is what the router itself would choose, (T, k), and
    returns the experts to take. Every architecture chooses its experts with torch.topk over all of
    them; what it takes of the scores at its choice keeps its gradient."""
    top_k = torch.topk
    left = list(routers_of(model).items())
    k_of_model = model.config.num_experts_per_tok

    def replaced(scores, k, *arguments, **named):
        def own():
            return top_k(scores, k, *arguments, **named)[1]

        # Groups of experts are compared by topk as well, and are fewer than the experts.
        chooses = left and scores.dim() == 2 and k == k_of_model and scores.shape[-1] == left[0][1]
        if not chooses:
            return top_k(scores, k, *arguments, **named)
        layer, _ = left.pop(0)
        experts = choose(layer, own)
        return torch.return_types.topk((scores.gather(-1, experts), experts))

    torch.topk = replaced
    try:
        yield
    finally:
        torch.topk = top_k
    if left:
        sys.exit(f"no choice was seen in layers {[layer for layer, _ in left]}: this version of Transformers "
                 "chooses experts in another way")


def compare_bf16(a):
    file = os.path.join(a.folder, "expected.safetensors")
    if not os.path.exists(file):
        sys.exit(f"{file} is missing: make the float32 reference first")
    expected = load_file(file)
    ids = expected["input_ids"].long()
    chosen = {}

    def record(layer, own):
        chosen[layer] = own().sort(dim=-1).values
        return chosen[layer]

    def replay(layer, own):
        return chosen[layer].to(own().device)

    model = transformers.AutoModelForCausalLM.from_pretrained(
        a.folder, dtype=torch.float32, attn_implementation="eager")
    model.train()
    with torch.no_grad(), choices(model, record):
        model(input_ids=ids, use_cache=False)
    # Were the choice another, or did gradients not pass its probabilities, this would not be the reference.
    with choices(model, replay):
        for name, error in errors_of(values_of_batch(model, ids), expected).items():
            if not error < 1e-5:
                sys.exit(f"{name}: float32 with the replayed choice is {error:.1e} away from {file}")

    device = "cuda" if torch.cuda.is_available() else "cpu"
    errors = {}
    ways = [(attention, experts) for attention in ATTENTION for experts in EXPERTS]
    for attention, experts in ways:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            a.folder, dtype=torch.bfloat16, attn_implementation=attention, experts_implementation=experts).to(device)
        model.train()
        with choices(model, replay):
            for name, error in errors_of(values_of_batch(model, ids), expected).items():
                if not error < float("inf"):
                    sys.exit(f"{name}: the error in bfloat16 is {error} (attention {attention}, experts {experts})")
                errors[name] = max(error, errors.get(name, 0))
    tensors = {}
    for layer, experts in chosen.items():
        tensors[f"experts.{layer}"] = experts.reshape(*ids.shape, -1).int().contiguous()
    for name, error in errors.items():
        tensors["error." + name] = torch.tensor([error], dtype=torch.float64)
        print(f"{name:<60} {error:.2e}")
    where = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    made_with = (f"transformers {transformers.__version__}, torch {torch.__version__}, bfloat16, {where}, "
                 f"the largest error of attention {', '.join(ATTENTION)} with experts {', '.join(EXPERTS)}")
    save_file(tensors, os.path.join(a.folder, "bf16.safetensors"), metadata={"made_with": made_with})
    print(made_with)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--new")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sequence", type=int, default=24)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bf16", action="store_true")
    a = parser.parse_args()
    torch.manual_seed(a.seed)
    torch.set_num_threads(1)
    if a.bf16:
        return compare_bf16(a)
    if a.new:
        fields = json.loads(a.new)
        config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager")
        with torch.no_grad():
            for name, p in model.named_parameters():  # norms away from one, weights large enough to matter
                p.copy_(1 + 0.1 * torch.randn_like(p) if p.dim() == 1 else 0.08 * torch.randn_like(p))
            for name, b in model.named_buffers():  # DeepSeek's routers have a bias that is not trained
                if name.endswith("e_score_correction_bias"):
                    b.copy_(0.05 * torch.randn_like(b))
        model.save_pretrained(a.folder)
    else:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            a.folder, dtype=torch.float32, attn_implementation="eager")
    model.train()
    vocab = model.config.vocab_size
    batches = torch.randint(0, vocab, (a.steps, a.batch, a.sequence))
    ids = batches[0]
    logits, loss = loss_of(model, ids)
    loss.backward()
    expected = {"input_ids": ids.int(), "logits": logits.detach().contiguous(), "loss": loss.detach().reshape(1)}
    for name, p in model.named_parameters():
        expected["grad." + name] = p.grad.clone().contiguous()
    optimizer = {"name": "AdamW", "lr": 1e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1,
                 "applied_to": "every parameter", "grad_clip": None}
    adam = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    losses = []
    for batch in batches:
        adam.zero_grad(set_to_none=True)
        _, loss = loss_of(model, batch)
        loss.backward()
        adam.step()
        losses.append(loss.item())
    expected["train.batches"] = batches.int()
    expected["train.losses"] = torch.tensor(losses, dtype=torch.float64)
    save_file(expected, os.path.join(a.folder, "expected.safetensors"))
    about = {"made_with": f"transformers {transformers.__version__}, torch {torch.__version__}, float32, CPU",
             "optimizer": optimizer,
             "loss": "mean next-token cross entropy over batch*(seq-1) positions",
             "params": {name: list(p.shape) for name, p in model.named_parameters()}}
    json.dump(about, open(os.path.join(a.folder, "about.json"), "w"), indent=1)


main()
