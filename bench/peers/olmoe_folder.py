"""Writes OLMoE-1B-7B with random weights in bf16, as Transformers saves it (13.8 GB), for

    weft train olmoe_7b_gpu checkpoint.pretrained_checkpoint=FOLDER

usage: python3 bench/peers/olmoe_folder.py FOLDER; needs PyTorch, Transformers 5 and a GPU.
"""
import sys

import torch
from transformers import AutoModelForCausalLM, OlmoeConfig


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    config = OlmoeConfig(
        vocab_size=50304,
        hidden_size=2048,
        intermediate_size=1024,
        num_hidden_layers=16,
        num_attention_heads=16,
        num_key_value_heads=16,
        num_experts=64,
        num_experts_per_tok=8,
        max_position_embeddings=4096,
        rms_norm_eps=1e-5,
        norm_topk_prob=False,
        tie_word_embeddings=False,
    )
    torch.manual_seed(1)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(sys.argv[1])
    print(f"{sum(p.numel() for p in model.parameters())} parameters in {sys.argv[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
