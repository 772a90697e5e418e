"""BERT in plain NumPy float64, written from the papers; what the encoder is compared with.

Sources: Devlin et al. 2019, section 3; Vaswani et al. 2017, sections 3.1 to 3.5 (post-LN);
Xiong et al. 2020, figure 1 (pre-LN); Hendrycks & Gimpel 2016 (both forms of GELU).
"""

from __future__ import annotations

import math

import numpy as np

ERF = np.vectorize(math.erf)
ACTIVATIONS = {
    "gelu_erf": lambda x: x * (1 + ERF(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "relu": lambda x: np.where(x > 0, x, 0.0),
    "tanh": np.tanh,
    "linear": lambda x: x,
}


def weights_of(encoder) -> dict[str, np.ndarray]:
    """Path below the encoder -> float64 array."""
    return {
        variable.path.split("/", 1)[1]: np.array(value, "float64")
        for variable, value in zip(encoder.weights, encoder.get_weights(), strict=True)
    }


def randomise(encoder, seed: int) -> None:
    """Large weights, so that every term and every mistake shows in the output."""
    random = np.random.default_rng(seed)
    values = []
    for variable in encoder.weights:
        centre = 1.0 if variable.path.endswith("gamma") else 0.0
        scale = 0.3 if len(variable.shape) == 2 else 0.2
        values.append(centre + scale * random.standard_normal(variable.shape))
    encoder.set_weights(values)


def bert(config, weights, token_ids, segment_ids, mask) -> dict:
    """The outputs of one text at a time, so that nothing can leak between rows.

    Args:
        config: a BertConfig.
        weights: as `weights_of`.
        token_ids, segment_ids, mask: int [B, S].

    Returns:
        sequence_output [B, S, H], pooled_output [B, H], hidden_states L + 1 of [B, S, H],
        attentions L of [B, N, S, S].
    """
    rows = [_row(config, weights, *row) for row in zip(token_ids, segment_ids, mask, strict=True)]
    return {
        "sequence_output": np.stack([row["sequence_output"] for row in rows]),
        "pooled_output": np.stack([row["pooled_output"] for row in rows]),
        "hidden_states": list(np.stack([row["hidden_states"] for row in rows], axis=1)),
        "attentions": list(np.stack([row["attentions"] for row in rows], axis=1)),
    }


def _row(config, weights, token_ids, segment_ids, mask) -> dict:
    def norm(x, name):
        mean = x.mean(axis=-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
        x = (x - mean) / np.sqrt(variance + config.layer_norm_eps)
        return x * weights[f"{name}/gamma"] + weights[f"{name}/beta"]

    def dense(x, name):
        return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]

    def attention(x, block):
        size = config.hidden_size // config.num_attention_heads
        q, k, v = (dense(x, f"{block}/attention/{name}") for name in ("query", "key", "value"))
        contexts, all_weights = [], []
        for head in range(config.num_attention_heads):
            part = slice(head * size, (head + 1) * size)
            scores = q[:, part] @ k[:, part].T / math.sqrt(size)
            scores = np.where(np.array(mask)[None, :] == 1, scores, -np.inf)
            exp = np.exp(scores - scores.max(axis=-1, keepdims=True))
            all_weights.append(exp / exp.sum(axis=-1, keepdims=True))
            contexts.append(all_weights[-1] @ v[:, part])
        output = dense(np.concatenate(contexts, axis=-1), f"{block}/attention/projection")
        return output, np.stack(all_weights)

    def feed_forward(x, block):
        x = ACTIVATIONS[config.hidden_act](dense(x, f"{block}/intermediate"))
        return dense(x, f"{block}/output_projection")

    x = weights["embeddings/token/embeddings"][token_ids]
    x = x + weights["embeddings/segment/embeddings"][segment_ids] + _positions(config, weights, x)
    x = norm(x, "embeddings/norm")
    hidden_states, attentions = [x], []
    for index in range(config.num_hidden_layers):
        block = f"block_{index}"
        if config.norm_position == "post":
            attended, probabilities = attention(x, block)
            x = norm(x + attended, f"{block}/attention_norm")
            x = norm(x + feed_forward(x, block), f"{block}/output_norm")
        else:
            attended, probabilities = attention(norm(x, f"{block}/attention_norm"), block)
            x = x + attended
            x = x + feed_forward(norm(x, f"{block}/output_norm"), block)
        hidden_states.append(x)
        attentions.append(probabilities)
    if config.norm_position == "pre":
        x = norm(x, "final_norm")
    return {
        "sequence_output": x,
        "pooled_output": np.tanh(dense(x[0], "pooler/dense")),
        "hidden_states": hidden_states,
        "attentions": attentions,
    }


def _positions(config, weights, x):
    length, width = x.shape
    if config.position_embedding_type == "learned":
        return weights["embeddings/position/embeddings"][:length]
    table = np.zeros((length, width))
    for position in range(length):
        for column in range(width):
            angle = position / 10000 ** (2 * (column // 2) / width)
            table[position, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table
