"""Make a model of random weights and a tokenizer, a megabyte of each. Runs where vLLM is installed."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

CONTEXT = 32768
VOCABULARY = 2048


def main(folder: str) -> None:
    # Not imported by name: these are not installed where this file is checked.
    torch, tokenizers, transformers = (import_module(name) for name in ("torch", "tokenizers", "transformers"))
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    tokenizer: Any = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = byte_level(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|bos|>", "<|eos|>", "<|user|>", "<|assistant|>", "<|end|>"],
        initial_alphabet=byte_level.alphabet(),
        show_progress=False,
    )
    texts = [path.read_text(errors="ignore") for path in sorted(Path(os.__file__).parent.glob("*.py"))[:60]]
    tokenizer.train_from_iterator(texts, trainer)
    ends = {"bos_token": "<|bos|>", "eos_token": "<|eos|>"}
    fast: Any = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **ends)
    fast.chat_template = (
        "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    fast.model_max_length = CONTEXT
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    shape = transformers.LlamaConfig(
        vocab_size=max(VOCABULARY, len(fast)),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        bos_token_id=fast.bos_token_id,
        eos_token_id=fast.eos_token_id,
        tie_word_embeddings=True,
    )
    transformers.LlamaForCausalLM(shape).to(torch.bfloat16).save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
