"""Small models of both kinds, as config.json has them."""

LLAMA = {
    "model_type": "llama",
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 40,
    "vocab_size": 67,
    "max_position_embeddings": 16,
    "rms_norm_eps": 1e-5,
}
GPT2 = {
    "model_type": "gpt2",
    "n_embd": 32,
    "n_layer": 4,
    "n_head": 4,
    "n_inner": 48,
    "vocab_size": 67,
    "n_positions": 16,
}
LAYERS = 6  # of both: embedding, blocks, head
