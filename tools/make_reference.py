"""Makes a reference run for `weft verify` with Hugging Face Transformers (5 or later).

usage: make_reference.py FOLDER                     from the model in FOLDER (config.json, model.safetensors)
       make_reference.py FOLDER --new JSON          from a new random model; JSON is its config
Adds about.json and expected.safetensors: logits, loss and gradients of one batch, then the losses of
training. float32 on the CPU.
"""
import argparse
import json
import os

import torch
import transformers
from safetensors.torch import save_file


def loss_of(model, ids):
    logits = model(input_ids=ids, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())
    return logits, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--new")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sequence", type=int, default=24)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    torch.manual_seed(a.seed)
    torch.set_num_threads(1)
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
