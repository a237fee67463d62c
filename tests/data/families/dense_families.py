"""Families with one feed-forward a layer."""

import torch

from family import (Family, bypassed, rope, sizes, unscaled_embedding, zeroed)
from old_configs import flat, of_gemma3, of_phi3

# Divisors for the 12 pairs that rotate in the two LongRoPE models.
SHORT_FACTORS = [1.0, 1.0, 1.125, 1.25, 1.25, 1.375, 1.5, 1.625, 1.75, 2.0,
                 2.0, 2.25]
LONG_FACTORS = [1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0,
                32.0]


def yarn(**changes):
    values = dict(kind='yarn', factor=4.0, beta_fast=2.0, beta_slow=0.25,
                  original_max_position_embeddings=64)
    values.update(changes)
    return rope(**values)


LLAMA = [
    Family('llama2', 'LlamaConfig',
           sizes(hidden_size=64, num_attention_heads=2, num_key_value_heads=2,
                 **rope()),
           {'rope base': rope(500000.0), 'epsilon': dict(rms_norm_eps=0.01)},
           'llama', dtype=torch.float16, gguf_head_sizes=False,
           old_config=flat('head_dim', 'num_key_value_heads')),
    Family('llama3.1', 'LlamaConfig',
           sizes(num_attention_heads=2, num_key_value_heads=1,
                 **rope(500000.0, 'llama3', factor=8.0, low_freq_factor=1.0,
                        high_freq_factor=4.0,
                        original_max_position_embeddings=64)),
           {'llama3 scaling': rope(500000.0)},
           'llama', shard_bytes=60000, old_config=flat()),
    Family('llama-linear', 'LlamaConfig',
           sizes(num_attention_heads=2, num_key_value_heads=1,
                 tie_word_embeddings=True, **rope(kind='linear', factor=4.0)),
           {'linear scaling': rope()}, 'llama'),
    Family('llama-yarn', 'LlamaConfig',
           sizes(num_attention_heads=2, num_key_value_heads=1,
                 max_position_embeddings=256, tie_word_embeddings=True,
                 **yarn()),
           {'yarn scaling': rope(),
            'yarn attention factor': yarn(attention_factor=1.0),
            'yarn beta_fast': yarn(beta_fast=32.0),
            'yarn beta_slow': yarn(beta_slow=1.0)},
           'llama'),
    Family('llama-dynamic', 'LlamaConfig',
           sizes(num_attention_heads=2, num_key_value_heads=1,
                 tie_word_embeddings=True, **rope(kind='dynamic', factor=4.0)),
           {}, 'llama'),
    Family('llama-biased', 'LlamaConfig',
           sizes(num_attention_heads=2, num_key_value_heads=1,
                 tie_word_embeddings=True, attention_bias=True, **rope()),
           {'query bias': zeroed('q_proj.bias'),
            'key bias': zeroed('k_proj.bias'),
            'value bias': zeroed('v_proj.bias'),
            'output bias': zeroed('o_proj.bias')},
           'llama'),
    Family('mistral', 'MistralConfig',
           sizes(sliding_window=16, num_attention_heads=2,
                 num_key_value_heads=1, **rope(1000000.0)),
           {'window': dict(sliding_window=None)}, 'llama',
           gguf_config=dict(sliding_window=None)),
    Family('smollm2', 'LlamaConfig',
           sizes(tie_word_embeddings=True, num_attention_heads=2,
                 num_key_value_heads=1, **rope(100000.0)),
           {'rope base': rope()}, 'llama', dtype=torch.float32),
    Family('smollm3', 'SmolLM3Config',
           sizes(tie_word_embeddings=True, num_hidden_layers=4,
                 num_attention_heads=2, num_key_value_heads=1,
                 no_rope_layer_interval=4,
                 **rope(2000000.0)),
           {'layers without rope': dict(no_rope_layers=[1, 1, 1, 1])},
           'smollm3', old_config=flat('layer_types')),
    Family('tinyllama', 'LlamaConfig', sizes(**rope()),
           {'rope base': rope(500000.0)}, 'llama'),
]

OTHERS = [
    Family('qwen2', 'Qwen2Config',
           sizes(head_dim=None, hidden_size=64, num_attention_heads=2,
                 num_key_value_heads=1, rms_norm_eps=1e-6,
                 tie_word_embeddings=True, **rope(1000000.0)),
           {'qkv biases': zeroed('_proj.bias')}, 'qwen2',
           # Its window is not used; Qwen2 folders all name one.
           old_config=flat('layer_types', sliding_window=16,
                           max_window_layers=2, use_sliding_window=False)),
    Family('qwen3', 'Qwen3Config',
           sizes(rms_norm_eps=1e-6, tie_word_embeddings=True,
                 **rope(1000000.0)),
           {'q norm': bypassed('q_norm'), 'k norm': bypassed('k_norm')},
           'qwen3'),
    Family('gemma2', 'Gemma2Config',
           sizes(rms_norm_eps=1e-6, tie_word_embeddings=True,
                 query_pre_attn_scalar=20, sliding_window=16,
                 attn_logit_softcapping=4.0, final_logit_softcapping=3.0,
                 hidden_activation='gelu_pytorch_tanh', **rope()),
           {'score cap': dict(attn_logit_softcapping=None),
            'logit cap': dict(final_logit_softcapping=None),
            'window': dict(sliding_window=128),
            'score scale': dict(query_pre_attn_scalar=32),
            'embedding scale': unscaled_embedding,
            'tanh gelu': dict(hidden_activation='silu'),
            'norm after attention': bypassed('post_attention_layernorm'),
            'norm after feed-forward': bypassed('post_feedforward_layernorm')},
           'gemma2', gguf_config=dict(query_pre_attn_scalar=32),
           old_config=flat('layer_types')),
    Family('gemma3', 'Gemma3TextConfig',
           sizes(rms_norm_eps=1e-6, tie_word_embeddings=True,
                 num_hidden_layers=6, num_attention_heads=2,
                 num_key_value_heads=1,
                 query_pre_attn_scalar=32, sliding_window=16,
                 rope_parameters={
                     'full_attention': dict(
                         rope_type='linear', factor=8.0, rope_theta=100000.0),
                     'sliding_attention': dict(
                         rope_type='default', rope_theta=1000.0)}),
           {'window': dict(sliding_window=128),
            'q norm': bypassed('q_norm'), 'k norm': bypassed('k_norm'),
            'global scaling': dict(rope_parameters={
                'full_attention': dict(
                    rope_type='default', rope_theta=100000.0),
                'sliding_attention': dict(
                    rope_type='default', rope_theta=1000.0)}),
            'local rope base': dict(rope_parameters={
                'full_attention': dict(
                    rope_type='linear', factor=8.0, rope_theta=100000.0),
                'sliding_attention': dict(
                    rope_type='default', rope_theta=100000.0)}),
            'embedding scale': unscaled_embedding},
           'gemma3', old_config=of_gemma3),
    Family('phi3', 'Phi3Config',
           sizes(head_dim=None, hidden_size=64, num_attention_heads=2,
                 num_key_value_heads=1, sliding_window=16,
                 tie_word_embeddings=True,
                 original_max_position_embeddings=128, **rope()),
           {'window': dict(sliding_window=None)}, 'phi3'),
    Family('phi3-longrope', 'Phi3Config',
           sizes(head_dim=None, hidden_size=64, num_attention_heads=2,
                 num_key_value_heads=1, original_max_position_embeddings=32,
                 tie_word_embeddings=True,
                 **rope(kind='longrope', partial_rotary_factor=0.75,
                        short_factor=SHORT_FACTORS, long_factor=LONG_FACTORS)),
           {'long factors': rope(
               kind='longrope', partial_rotary_factor=0.75,
               short_factor=SHORT_FACTORS, long_factor=SHORT_FACTORS),
            'attention factor': rope(
                kind='longrope', partial_rotary_factor=0.75,
                short_factor=SHORT_FACTORS, long_factor=LONG_FACTORS,
                attention_factor=1.0),
            'partial rotation': rope(
                kind='longrope', partial_rotary_factor=1.0,
                short_factor=[1.0] * 4 + SHORT_FACTORS,
                long_factor=[1.0] * 4 + LONG_FACTORS)},
           # transformers takes the short factors for prompts within the
           # original context; a server has one set for all of its cache.
           'phi3', prompts=('window', 'long'), old_config=of_phi3),
    Family('phi3-shortrope', 'Phi3Config',
           sizes(head_dim=None, hidden_size=64, num_attention_heads=2,
                 num_key_value_heads=1, max_position_embeddings=256,
                 original_max_position_embeddings=256,
                 tie_word_embeddings=True,
                 **rope(kind='longrope', partial_rotary_factor=0.75,
                        short_factor=SHORT_FACTORS, long_factor=LONG_FACTORS)),
           {'short factors': rope(partial_rotary_factor=0.75)}, 'phi3'),
    Family('olmo2', 'Olmo2Config',
           sizes(head_dim=None, hidden_size=64, num_attention_heads=2,
                 num_key_value_heads=1, rms_norm_eps=1e-6, **rope(500000.0)),
           {'q norm': bypassed('q_norm'), 'k norm': bypassed('k_norm'),
            'norm after attention': bypassed('post_attention_layernorm'),
            'norm after feed-forward': bypassed('post_feedforward_layernorm')},
           'olmo2'),
    Family('granite', 'GraniteConfig',
           sizes(head_dim=None, hidden_size=64, num_attention_heads=2,
                 num_key_value_heads=1, tie_word_embeddings=True,
                 embedding_multiplier=6.0, attention_multiplier=0.25,
                 residual_multiplier=0.375, logits_scaling=4.0, **rope()),
           {'embedding scale': dict(embedding_multiplier=1.0),
            'score scale': dict(attention_multiplier=32 ** -0.5),
            'residual scale': dict(residual_multiplier=1.0),
            'logit scale': dict(logits_scaling=1.0)},
           'granite'),
]
