"""A Whisper model of five megabytes that says one sentence whatever it hears, in the real format.

Its weights are made so that the place in the sentence decides the next letter: attention and convolutions are zero,
and each position's encoding points at the embedding of what comes next. Everything around the weights is real: the
model file, the tokenizer, decoding of sound, features, beam search, timestamps.
"""

import json
from pathlib import Path

import numpy as np
from ctranslate2.specs import WhisperSpec
from ctranslate2.specs.attention_spec import MultiHeadAttentionSpec
from ctranslate2.specs.common_spec import LayerNormSpec, LinearSpec
from ctranslate2.specs.transformer_spec import FeedForwardSpec
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

WIDTH = 128
MELS = 80
SPECIAL = (
    *("<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|translate|>", "<|transcribe|>"),
    *("<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"),
)


def write_model(directory: Path, sentence: str) -> Path:
    """A model directory as faster-whisper takes it."""
    directory.mkdir(parents=True)
    tokenizer = make_tokenizer()
    tokenizer.save(str(directory / "tokenizer.json"))
    size = tokenizer.get_vocab_size()
    tokens = [tokenizer.id_to_token(number) for number in range(size)]
    said = [
        tokenizer.token_to_id("<|0.00|>"),
        *tokenizer.encode(sentence, add_special_tokens=False).ids,
        tokenizer.token_to_id("<|1.00|>"),
        tokenizer.token_to_id("<|endoftext|>"),
    ]
    spec = make_spec(size, [number for number in said if number is not None])
    spec.register_vocabulary(tokens)
    spec.validate()
    spec.save(str(directory))
    (directory / "preprocessor_config.json").write_text(json.dumps({"feature_size": MELS}))
    return directory


def make_tokenizer() -> Tokenizer:
    """One token a byte, and the few pairs without which the list of suppressed signs would take the space."""
    pairs = [("Ġ", "-"), ("Ġ", "'"), ("Ġ", "â")]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*alphabet, *map("".join, pairs)])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    times = [f"<|{number * 0.02:.2f}|>" for number in range(1501)]
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in (*SPECIAL, *times)])
    return tokenizer


def make_spec(size: int, said: list[int]) -> WhisperSpec:
    random = np.random.default_rng(1)
    embeddings = random.standard_normal((size, WIDTH)).astype(np.float32)
    embeddings -= embeddings.mean(axis=1, keepdims=True)
    places = np.zeros((448, WIDTH), dtype=np.float32)
    for place in range(448):
        places[place] = 20 * embeddings[said[min(place, len(said) - 1)]]
    spec = WhisperSpec(1, 2, 1, 2)
    encoder, decoder = spec.encoder, spec.decoder
    encoder.conv1.weight, encoder.conv1.bias = zeros(WIDTH, MELS, 3), zeros(WIDTH)
    encoder.conv2.weight, encoder.conv2.bias = zeros(WIDTH, WIDTH, 3), zeros(WIDTH)
    encoder.position_encodings.encodings = zeros(1500, WIDTH)
    set_norm(encoder.layer_norm)
    for layer in encoder.layer:
        set_attention(layer.self_attention, (3, 1))
        set_feed_forward(layer.ffn)
    decoder.embeddings.weight = embeddings
    decoder.position_encodings.encodings = places
    decoder.projection.weight = embeddings
    set_norm(decoder.layer_norm)
    for layer in decoder.layer:
        set_attention(layer.self_attention, (3, 1))
        set_attention(layer.attention, (1, 2, 1))
        set_feed_forward(layer.ffn)
    return spec


def zeros(*shape: int) -> NDArray[np.float32]:
    return np.zeros(shape, dtype=np.float32)


def set_norm(norm: LayerNormSpec) -> None:
    norm.gamma, norm.beta = np.ones(WIDTH, dtype=np.float32), zeros(WIDTH)


def set_linear(linear: LinearSpec, outputs: int, inputs: int) -> None:
    linear.weight, linear.bias = zeros(outputs, inputs), zeros(outputs)


def set_attention(attention: MultiHeadAttentionSpec, widths: tuple[int, ...]) -> None:
    set_norm(attention.layer_norm)
    for linear, width in zip(attention.linear, widths, strict=True):
        set_linear(linear, width * WIDTH, WIDTH)


def set_feed_forward(feed_forward: FeedForwardSpec) -> None:
    set_norm(feed_forward.layer_norm)
    set_linear(feed_forward.linear_0, 4 * WIDTH, WIDTH)
    set_linear(feed_forward.linear_1, WIDTH, 4 * WIDTH)
