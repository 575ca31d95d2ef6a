"""The model of `weft bench step` in plain PyTorch: the same weights, the same tokens, the same optimizer.

usage: torch_step.py FOLDER STYLE   (config.json, model.safetensors, tokens.i32, settings.json; written by weft)
STYLE: modules, the way model code is commonly written (a module an expert with three projections, a mask of
one-hot choices, router weights on the expert outputs, attention with repeated keys and a separate softmax in
fp32), or tuned, with gate and up in one product, stacked experts and router weights on the activation.
Prints one JSON object: the losses of the steps and the median time of a step after two that warm up.
"""
import json
import statistics
import struct
import sys
import time

import numpy
import torch
import torch.nn.functional as F


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = numpy.frombuffer(data[begin:end], dtype=numpy.float32).reshape(entry["shape"]).copy()
        tensors[name] = torch.from_numpy(values)
    return tensors


def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos + turned * sin


class TunedModel:
    def __init__(self, config, tensors, sequence):
        self.c = config
        self.layers = config["num_hidden_layers"]
        self.experts = config.get("num_experts", config.get("num_local_experts"))
        self.top_k = config["num_experts_per_tok"]
        self.heads = config["num_attention_heads"]
        self.groups = config["num_key_value_heads"]
        self.width = config.get("head_dim") or config["hidden_size"] // self.heads
        self.eps = config["rms_norm_eps"]
        self.w = self.stack_experts(tensors)
        for value in self.w.values():
            value.requires_grad_(True)
        rope = config.get("rope_parameters") or {}
        base = config.get("rope_theta", rope.get("rope_theta", 10000.0))
        frequency = base ** (-torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        angle = torch.outer(torch.arange(sequence, dtype=torch.float64), frequency)
        angle = torch.cat((angle, angle), dim=-1)
        self.cos, self.sin = angle.cos().float(), angle.sin().float()
        self.mask = torch.full((sequence, sequence), float("-inf")).triu(1)

    def stack_experts(self, tensors):
        weights = {name: value for name, value in tensors.items() if ".experts." not in name}
        for i in range(self.layers):
            prefix = next((p for p in (f"model.layers.{i}.mlp.experts.", f"model.layers.{i}.block_sparse_moe.experts.")
                           if any(n.startswith(p) for n in tensors)), None)
            names = ("w1", "w3", "w2") if "block_sparse" in prefix else ("gate_proj", "up_proj", "down_proj")
            one = lambda e, name: tensors[f"{prefix}{e}.{name}.weight"]
            weights[f"{i}.fc1"] = torch.stack([torch.cat((one(e, names[0]), one(e, names[1]))) for e in range(self.experts)])
            weights[f"{i}.fc2"] = torch.stack([one(e, names[2]) for e in range(self.experts)])
        return weights

    def attention(self, x, prefix):
        batch, sequence, _ = x.shape
        project = lambda name, heads: F.linear(x, self.w[f"{prefix}.{name}_proj.weight"]).view(batch, sequence, heads, self.width)
        q, k, v = project("q", self.heads), project("k", self.groups), project("v", self.groups)
        if f"{prefix}.q_norm.weight" in self.w:
            weight_q, weight_k = self.w[f"{prefix}.q_norm.weight"], self.w[f"{prefix}.k_norm.weight"]
            if weight_q.numel() == self.width:
                q, k = rms_norm(q, weight_q, self.eps), rms_norm(k, weight_k, self.eps)
            else:
                q = rms_norm(q.flatten(2), weight_q, self.eps).view_as(q)
                k = rms_norm(k.flatten(2), weight_k, self.eps).view_as(k)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        q, k = rotate(q, self.cos, self.sin), rotate(k, self.cos, self.sin)
        out = self.attend(q, k, v).transpose(1, 2).reshape(batch, sequence, -1)
        return F.linear(out, self.w[f"{prefix}.o_proj.weight"])

    def attend(self, q, k, v):
        k = k.repeat_interleave(self.heads // self.groups, dim=1)
        v = v.repeat_interleave(self.heads // self.groups, dim=1)
        scores = q @ k.transpose(-1, -2) * self.width**-0.5 + self.mask
        return scores.softmax(-1) @ v

    def moe(self, x, i, aux):
        flat = x.view(-1, x.shape[-1])
        prefix = f"model.layers.{i}."
        gate = next(self.w[prefix + g] for g in ("mlp.gate.weight", "block_sparse_moe.gate.weight") if prefix + g in self.w)
        scores = F.linear(flat, gate).softmax(-1)
        probabilities, chosen = scores.topk(self.top_k, dim=-1)
        if self.c.get("norm_topk_prob", self.c["model_type"] == "mixtral"):
            probabilities = probabilities / probabilities.sum(-1, keepdim=True)
        counts = torch.bincount(chosen.flatten(), minlength=self.experts)
        aux.append(self.experts / (self.top_k * flat.shape[0] ** 2) * (scores.sum(0) * counts).sum())
        out = torch.zeros_like(flat)
        # unbind: its gradient is one stack, where indexing would add a full tensor an expert.
        fc1, fc2 = self.w[f"{i}.fc1"].unbind(0), self.w[f"{i}.fc2"].unbind(0)
        for e in range(self.experts):
            token, slot = (chosen == e).nonzero(as_tuple=True)
            if token.numel() == 0:
                continue
            gate_h, up = F.linear(flat[token], fc1[e]).chunk(2, dim=-1)
            h = F.silu(gate_h) * up * probabilities[token, slot, None]
            out = out.index_add(0, token, F.linear(h, fc2[e]))
        return out.view_as(x)

    def loss(self, tokens, aux_coefficient):
        ids, labels = tokens[:, :-1], tokens[:, 1:]
        x = F.embedding(ids, self.w["model.embed_tokens.weight"])
        aux = []
        for i in range(self.layers):
            prefix = f"model.layers.{i}."
            x = x + self.attention(rms_norm(x, self.w[prefix + "input_layernorm.weight"], self.eps), prefix + "self_attn")
            x = x + self.moe(rms_norm(x, self.w[prefix + "post_attention_layernorm.weight"], self.eps), i, aux)
        x = rms_norm(x, self.w["model.norm.weight"], self.eps)
        head = self.w.get("lm_head.weight", self.w["model.embed_tokens.weight"])
        loss = F.cross_entropy(F.linear(x, head).flatten(0, 1), labels.flatten())
        return loss, loss + aux_coefficient * sum(aux)


class ModulesModel(TunedModel):
    """Every projection of every expert on its own."""

    def stack_experts(self, tensors):
        return dict(tensors)

    def moe(self, x, i, aux):
        flat = x.view(-1, x.shape[-1])
        prefix = f"model.layers.{i}."
        mixtral = prefix + "block_sparse_moe.gate.weight" in self.w
        prefix += "block_sparse_moe." if mixtral else "mlp."
        names = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
        scores = F.softmax(F.linear(flat, self.w[prefix + "gate.weight"]), dim=-1, dtype=torch.float)
        probabilities, chosen = torch.topk(scores, self.top_k, dim=-1)
        if self.c.get("norm_topk_prob", mixtral):
            probabilities = probabilities / probabilities.sum(-1, keepdim=True)
        counts = torch.bincount(chosen.flatten(), minlength=self.experts)
        aux.append(self.experts / (self.top_k * flat.shape[0] ** 2) * (scores.sum(0) * counts).sum())
        mask = F.one_hot(chosen, self.experts).permute(2, 1, 0)
        out = torch.zeros_like(flat)
        for e in range(self.experts):
            slot, token = torch.where(mask[e])
            rows = flat[token]
            gate, up, down = (self.w[f"{prefix}experts.{e}.{name}.weight"] for name in names)
            y = F.linear(F.silu(F.linear(rows, gate)) * F.linear(rows, up), down)
            out.index_add_(0, token, y * probabilities[token, slot, None])
        return out.view_as(x)

    def attend(self, q, k, v):
        k = k[:, :, None].expand(-1, -1, self.heads // self.groups, -1, -1).reshape(q.shape)
        v = v[:, :, None].expand(-1, -1, self.heads // self.groups, -1, -1).reshape(q.shape)
        scores = torch.matmul(q, k.transpose(2, 3)) * self.width**-0.5
        weights = F.softmax(scores + self.mask, dim=-1, dtype=torch.float32).to(q.dtype)
        return torch.matmul(weights, v)


STYLES = {"modules": ModulesModel, "tuned": TunedModel}


def main(folder, style):
    settings = json.load(open(f"{folder}/settings.json"))
    torch.set_num_threads(settings["threads"])
    config = json.load(open(f"{folder}/config.json"))
    batch, sequence = settings["batch"], settings["sequence"]
    model = STYLES[style](config, read_safetensors(f"{folder}/model.safetensors"), sequence)
    tokens = numpy.fromfile(f"{folder}/tokens.i32", dtype=numpy.int32).reshape(-1, batch, sequence + 1)
    tokens = torch.from_numpy(tokens.astype(numpy.int64))
    matrices = [w for w in model.w.values() if w.dim() > 1]
    vectors = [w for w in model.w.values() if w.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": settings["weight_decay"]}, {"params": vectors, "weight_decay": 0.0}],
        lr=settings["lr"], betas=tuple(settings["betas"]), eps=settings["eps"])
    losses, seconds = [], []
    for step in tokens:
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss, total = model.loss(step, settings["aux_loss_coeff"])
        total.backward()
        if settings["clip_grad"] > 0:
            torch.nn.utils.clip_grad_norm_(list(model.w.values()), settings["clip_grad"])
        optimizer.step()
        seconds.append(time.perf_counter() - start)
        losses.append(loss.item())
    print(json.dumps({"version": torch.__version__, "losses": losses, "step_seconds": statistics.median(seconds[2:])}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
